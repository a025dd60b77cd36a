"""A field of a 32-bit word, as registers and records have them. Plain data only."""

from dataclasses import dataclass

from .codes import Code

__all__ = [
    "Bits",
]


@dataclass(frozen=True, slots=True)
class Bits:
    """A field of a word: ``width`` bits from bit ``low``.

    ``codes``: the names of its values, if they have names. ``clears``: writing 1 makes it 0.
    """

    name: str
    low: int
    width: int
    summary: str = ""
    codes: type[Code] | None = None
    clears: bool = False

    def extract(self, word: int) -> int:
        return (word >> self.low) & ((1 << self.width) - 1)

    def insert(self, value: int) -> int:
        """Insert ``value`` into a word of zeros. Raises ``ValueError`` if it does not fit."""
        if not 0 <= value < 1 << self.width:
            raise ValueError(f"{self.name}: {value} is outside 0 to {(1 << self.width) - 1}")
        return value << self.low
