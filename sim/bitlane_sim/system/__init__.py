"""The circuit that is simulated: core, AXI4 memory, control manager and monitor."""

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

__all__ = [
    "AXI_CHANNELS",
    "EVENTS_BIT",
    "RECORD",
    "STORAGE_BUFFER",
    "Hang",
    "Response",
    "Violation",
    "Where",
]
