"""A group of a record's words, as the ring delivers it. It finds words by their names in `abi`."""

from collections.abc import Iterable

from amaranth.hdl import Value

from ..abi import RECORD, RecordField

__all__ = ["RecordGroup"]


class RecordGroup:
    """The words that arrive in a cycle: words ``position * columns`` and up of the record."""

    def __init__(self, words: Value, position: Value, columns: int) -> None:
        self._words = words
        self._position = position
        self._columns = columns

    def column(self, number: int) -> Value:
        """Return the word in column ``number``."""
        return self._words[32 * number : 32 * number + 32]

    def word(self, name: str) -> tuple[Value, Value]:
        """Return the word called ``name``, and whether it is in this group."""
        group, column = divmod(RECORD[name].word, self._columns)
        return self.column(column), self._position == group

    def is_any(self, number: int, fields: Iterable[RecordField]) -> Value:
        """Return whether the word in column ``number`` is one of ``fields``."""
        groups = (divmod(field.word, self._columns) for field in fields)
        return self._position.matches(*(group for group, column in groups if column == number))
