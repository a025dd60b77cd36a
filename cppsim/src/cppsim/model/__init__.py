"""One circuit with ports by name: compiled, or in Amaranth's simulator; its RAM may lie outside.

Only what an exported batch takes along is imported here.
"""

from .ports import PortLayout, Words, as_words, counted, extended, found
from .program import Encoded, Item, Opcode, Port, Program, expect_program

__all__ = [
    "Encoded",
    "Item",
    "Opcode",
    "Port",
    "PortLayout",
    "Program",
    "Words",
    "as_words",
    "counted",
    "expect_program",
    "extended",
    "found",
]
