"""The circuit that is simulated: core, AXI4 memory, control manager and monitor.

The names of its ports and their values are plain data; components are imported, with Amaranth,
when one is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from .ports import (
    AXI_CHANNELS,
    EVENTS_BIT,
    RECORD,
    STORAGE_BUFFER,
    Hang,
    Response,
    Violation,
    Where,
)

if TYPE_CHECKING:
    from .axi4_memory import Axi4Memory
    from .axi4_memory.interface import AddressRange, MemoryControl, ReadStorage, WriteStorage
    from .monitor import Monitor
    from .monitor.recorder import Recorder
    from .system import System

__all__ = [
    "AXI_CHANNELS",
    "EVENTS_BIT",
    "RECORD",
    "STORAGE_BUFFER",
    "AddressRange",
    "Axi4Memory",
    "Hang",
    "MemoryControl",
    "Monitor",
    "ReadStorage",
    "Recorder",
    "Response",
    "System",
    "Violation",
    "Where",
    "WriteStorage",
]

_MODULES = {
    "AddressRange": "axi4_memory.interface",
    "Axi4Memory": "axi4_memory",
    "MemoryControl": "axi4_memory.interface",
    "Monitor": "monitor",
    "ReadStorage": "axi4_memory.interface",
    "Recorder": "monitor.recorder",
    "System": "system",
    "WriteStorage": "axi4_memory.interface",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_MODULES[name]}", __name__), name)
