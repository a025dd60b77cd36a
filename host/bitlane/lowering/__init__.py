"""Lowering of operations on strided tensors to the fewest commands, and fences between these."""

from .cost import beats, cycles
from .fences import CommandGroup, insert_fences, insert_fences_labelled, lower_group
from .lower import lower
from .moves import ByteOffsets, MovedBlock, Moves, group_moves, lower_moves
from .offsets import BlockOffsets
from .routes import ARITHMETIC, LOGICAL, Options
from .self_overlap import overlaps_itself
from .strided import (
    Streams,
    View,
    broadcast_shapes,
    broadcast_strides,
    order_of,
    overlap,
    packed_strides,
    span,
)

__all__ = [
    "ARITHMETIC",
    "LOGICAL",
    "BlockOffsets",
    "ByteOffsets",
    "CommandGroup",
    "MovedBlock",
    "Moves",
    "Options",
    "Streams",
    "View",
    "beats",
    "broadcast_shapes",
    "broadcast_strides",
    "cycles",
    "group_moves",
    "insert_fences",
    "insert_fences_labelled",
    "lower",
    "lower_group",
    "lower_moves",
    "order_of",
    "overlap",
    "overlaps_itself",
    "packed_strides",
    "span",
]
