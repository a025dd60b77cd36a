"""The subcommands `campaign` and `soak` where bitlane is not installed: see the package."""

import argparse
import sys

from bitlane.command_line import UNUSABLE
from bitlane.errors import BitlaneError

from .command import add_campaign, add_soak


def main(words: list[str] | None = None) -> int:
    """Run one of them. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m bitlane_sim.campaigns")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    add_campaign(subparsers)
    add_soak(subparsers)
    arguments = parser.parse_args(words)
    try:
        code: int = arguments.run(arguments)
    except BitlaneError as error:
        print(f"error: {error}", file=sys.stderr)
        return UNUSABLE
    except ModuleNotFoundError as error:
        print(f"error: {error.name} is not installed; give --circuit FOLDER", file=sys.stderr)
        return UNUSABLE
    return code


if __name__ == "__main__":
    sys.exit(main())
