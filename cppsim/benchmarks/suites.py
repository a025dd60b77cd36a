"""Measure suites of other projects: python cppsim/benchmarks/suites.py CLONES --python PYTHON.

Processor time of each suite under cppsim and in Amaranth's simulator, with an empty and with a full
cache; `--help` has the options. Exits with status 1 if a test passes in one and not in the other.
"""

import sys
from pathlib import Path
from pkgutil import resolve_name

if __name__ == "__main__":
    # In place of this folder, whose module has the name of the package.
    sys.path[0] = str(Path(__file__).parents[1] / "tools")
    sys.exit(resolve_name("suites.run:main")())
