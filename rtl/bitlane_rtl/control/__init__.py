"""The host's side of the engine: registers, command ring, checks and sequencer. Moves no data."""

from .read_activity import ReadActivity
from .refusals import Refusals
from .registers import EVENTS, Registers
from .retirement import Retirement
from .ring import Completions, Ring
from .sequencer import Sequencer, ring_columns

__all__ = [
    "EVENTS",
    "Completions",
    "ReadActivity",
    "Refusals",
    "Registers",
    "Retirement",
    "Ring",
    "Sequencer",
    "ring_columns",
]
