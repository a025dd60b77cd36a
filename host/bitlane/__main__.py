"""`python -m bitlane` and the command `bitlane`, which is the same.

It must import nothing before it is ready for Ctrl-C.
"""

import sys


def main() -> int:
    """Run the process's command line, and return its exit code."""
    try:
        from .command_line import cli

        return cli.main()
    except KeyboardInterrupt:
        # While it was imported, or when it was about to end.
        print("bitlane: stopped", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
