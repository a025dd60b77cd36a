"""The words of a record as the units of the circuit see them: a group of them, and CONTROL."""

from collections.abc import Iterable
from typing import Any

from amaranth.hdl import Const, Value
from amaranth.lib import data

from ..abi import RECORD, Mode, Op, RecordField
from ..configuration import Configuration

__all__ = [
    "ControlWord",
    "RecordGroup",
    "counts",
    "reads_b",
    "searches",
    "splits_lanes",
    "sums",
]


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


class ControlWord(data.FlexibleLayout):
    """The fields of CONTROL by their names in `abi`, in small letters."""

    def __init__(self) -> None:
        super().__init__(
            32,
            {
                bits.name.lower(): data.Field(bits.width, bits.low)
                for bits in RECORD["CONTROL"].bits
            },
        )


def reads_b(op: Value) -> Value:
    """Return whether an operation, which may not exist, has a second operand."""
    return op.matches(*(each for each in Op if each.reads_b))


def counts(op: Value) -> Value:
    """Return whether an operation, which may not exist, counts."""
    return op.matches(*(each for each in Op if each.counts))


def splits_lanes(op: Value) -> Value:
    """Return whether the result of an operation, which may not exist, depends on the lane."""
    return op.matches(*(each for each in Op if each.splits_lanes))


def sums(control: Any, configuration: Configuration) -> Value:
    """Return whether Y is a SUM. Constant 0 without SUM: such a record is BAD_CONTROL."""
    return control.y_mode == Mode.SUM if Mode.SUM in configuration.modes else Const(0)


def searches(control: Any, configuration: Configuration) -> Value:
    """Return whether the operation is SEARCH. Constant 0 without a search array."""
    return control.op == Op.SEARCH if configuration.search else Const(0)
