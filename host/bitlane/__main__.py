"""`python -m bitlane`: the same as the command `bitlane`."""

import sys

from .command_line.cli import main

sys.exit(main())
