"""``python -m cppsim cache``: show the cache of compiled designs; ``--clear`` empties it."""

import argparse

from .compiling import CACHE
from .errors import SimulationError


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m cppsim")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    cache = commands.add_parser("cache", help="show the cache of compiled designs")
    cache.add_argument("--clear", action="store_true", help="remove all entries")
    arguments = parser.parse_args()
    try:
        if arguments.clear:
            count, size = CACHE.clear()
            print(f"{CACHE.folder()}: {count} entries removed, {size:,} bytes")
        else:
            found, limit = CACHE.entries(), CACHE.limit()
            size = sum(entry.size for entry in found)
            print(f"{CACHE.folder()}: {len(found)} entries, {size:,} bytes of {limit:,}")
    except (OSError, RuntimeError, SimulationError) as error:
        parser.exit(1, f"{parser.prog}: {error}\n")


if __name__ == "__main__":
    main()
