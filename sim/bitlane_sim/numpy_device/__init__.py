"""The device ``numpy``: an interpreter of commands on NumPy bytes, without a circuit.

It is written from the contract, `bitlane_rtl.abi`, and knows neither the driver nor the circuit's
components. Where the contract leaves a value open, it takes any that the contract allows: commands
run one after the other, and one that fails on its way has written nothing.

Its counters are predicted, by the formulas of `cycles` in the order of `timeline`. A command that
fails counts nothing, and no time passes while the engine is stopped.
"""

from .control import ControlWindow
from .counters import PredictedCounters, shape_of
from .cycles import CommandShape, CounterValues, search_cycles
from .interpreter import ENDLESS, Interpreter, Stop
from .line_time import gigabit_line, serial_line
from .link import NumpyLink, open_link
from .memories import Memory, OneRam, RamBanks, SdramRows
from .operations import nearest
from .row_sets import RowSets
from .walk import AddressWalk

__all__ = [
    "ENDLESS",
    "AddressWalk",
    "CommandShape",
    "ControlWindow",
    "CounterValues",
    "Interpreter",
    "Memory",
    "NumpyLink",
    "OneRam",
    "PredictedCounters",
    "RamBanks",
    "RowSets",
    "SdramRows",
    "Stop",
    "gigabit_line",
    "nearest",
    "open_link",
    "search_cycles",
    "serial_line",
    "shape_of",
]
