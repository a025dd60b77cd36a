"""Numbers as words of 64 bits, the least significant first."""

from collections.abc import Iterable

WORD = 64
"""Bits of a word."""

_MASK = (1 << WORD) - 1


def word_count(width: int) -> int:
    """Return the number of words that hold ``width`` bits."""
    return -(-width // WORD)


def to_words(value: int, count: int) -> list[int]:
    """Return the low ``count`` words of ``value``, which may be negative."""
    return [value >> WORD * k & _MASK for k in range(count)]


def from_words(words: Iterable[int]) -> int:
    """Return the unsigned number of ``words``."""
    return sum(int(word) << WORD * k for k, word in enumerate(words))
