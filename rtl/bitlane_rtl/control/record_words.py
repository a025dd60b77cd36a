"""The words of a record as the units of the circuit see them: a group of them, and CONTROL."""

from collections.abc import Iterable
from typing import Any

from amaranth.hdl import Const, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import Out

from ..abi import RECORD, RECORD_WORDS, Mode, Op, RecordField
from ..configuration import Configuration

__all__ = [
    "ControlWord",
    "RecordGroup",
    "column_word",
    "counts",
    "is_field",
    "reads_b",
    "record_word",
    "searches",
    "splits_lanes",
    "sums",
]


class RecordGroup(wiring.Signature):
    """Signature of the words of a record, which arrive ``columns`` at a time.

    Members
    -------
    words
        Words ``position * columns`` and up of the record.
    position
        Number of the group in its record.
    take
        The words are valid in this cycle.
    """

    def __init__(self, columns: int) -> None:
        super().__init__(
            {
                "words": Out(32 * columns),
                "position": Out(range(RECORD_WORDS // columns)),
                "take": Out(1),
            }
        )


def column_word(group: Any, column: int) -> Value:
    """Return the word of ``group`` in ``column``."""
    return group.words[32 * column : 32 * column + 32]


def record_word(group: Any, name: str) -> tuple[Value, Value]:
    """Return the word called ``name``, and whether it is valid in ``group`` in this cycle."""
    position, column = divmod(RECORD[name].word, len(group.words) // 32)
    return column_word(group, column), group.take & (group.position == position)


def is_field(group: Any, column: int, fields: Iterable[RecordField]) -> Value:
    """Return whether the word of ``group`` in ``column`` is one of ``fields``."""
    found = (divmod(field.word, len(group.words) // 32) for field in fields)
    return group.position.matches(*(position for position, at in found if at == column))


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
