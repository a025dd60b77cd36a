"""The bit unit: logic, shifts and counts on lanes. It handles neither memory nor addresses."""

from .beat_pairs import AddPairs, PairBeats
from .bit_unit import BitUnit
from .lane_tests import LaneTests
from .lanes import any_in_lane
from .logic import Logic
from .popcount import Popcount
from .row_sum import RowSum
from .shift import Shifter

__all__ = [
    "AddPairs",
    "BitUnit",
    "LaneTests",
    "Logic",
    "PairBeats",
    "Popcount",
    "RowSum",
    "Shifter",
    "any_in_lane",
]
