"""A device over its link: registers, memory, and a ring of commands. Never sees a data type."""

from .allocator import ALIGNMENT, Allocation, Allocator, round_up
from .commands import Command, Walk, encode
from .control import Control, status_name
from .driver import Driver, Storage, expected_timeout
from .dry_run import LARGEST_GEOMETRY, DryRunDriver, LabelledCommands, RecordingDriver
from .fork import fork_safe_lock
from .geometry import Abilities, ArraySizes, Geometry
from .queue import Read, Words, Write

__all__ = [
    "ALIGNMENT",
    "LARGEST_GEOMETRY",
    "Abilities",
    "Allocation",
    "Allocator",
    "ArraySizes",
    "Command",
    "Control",
    "Driver",
    "DryRunDriver",
    "Geometry",
    "LabelledCommands",
    "Read",
    "RecordingDriver",
    "Storage",
    "Walk",
    "Words",
    "Write",
    "encode",
    "expected_timeout",
    "fork_safe_lock",
    "round_up",
    "status_name",
]
