"""Write a design as C++.

Only what needs no Amaranth is imported here.
"""

from .code import Snippet, assignment, block, in_reach, lines_of
from .words import BitField, Words, adjacent, literal, operation, repeated, words_of
from .writer import element_bits

__all__ = [
    "BitField",
    "Snippet",
    "Words",
    "adjacent",
    "assignment",
    "block",
    "element_bits",
    "in_reach",
    "lines_of",
    "literal",
    "operation",
    "repeated",
    "words_of",
]
