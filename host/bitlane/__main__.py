"""`python -m bitlane`: the same as the command `bitlane`."""

import sys

from .cli import main

sys.exit(main())
