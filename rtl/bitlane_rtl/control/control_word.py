"""The CONTROL word of a record as the units of the circuit see it. Layout only."""

from amaranth.hdl import Value
from amaranth.lib import data

from ..abi import RECORD, Op

__all__ = ["ControlWord", "counts", "reads_b", "splits_lanes"]


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
