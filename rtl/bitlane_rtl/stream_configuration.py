"""The parameters of a stream unit, and the codes of its control inputs. Plain data only."""

from dataclasses import dataclass, field

from .abi import BIT_OPS, COUNT_OPS, SHIFT_OPS, Code, Lane, Op

__all__ = ["WIDTHS", "PacketReduction", "StreamConfiguration"]

WIDTHS = (8, 16, 32, 64, 128)
"""The widths of a beat, in bits."""

_SUM_BITS = 32
"""Bits of a sum, which is one beat or a part of it."""


class PacketReduction(Code):
    """The result of a packet of counts."""

    NONE = 0, "the elements of the packet"
    SUM = 1, "one element of 32 bits: the sum of the counts, or of the tests, modulo 2**32"
    ANY = 2, "one byte: 1 if any bit is 1, else 0; with NEGATE 1 if no bit is 1, else 0"


@dataclass(frozen=True, kw_only=True, slots=True)
class StreamConfiguration:
    """Parameters of a stream unit. The constructor completes ``lanes`` and ``reduces``.

    Raises ``ValueError`` on a value that no unit can be built with.
    """

    data_width: int = 64
    """Bits in a beat: 8, 16, 32, 64 or 128."""

    user_width: int = 1
    """Bits of TUSER of A, 0 to 32, which pass to Y."""

    ops: frozenset[Op] = BIT_OPS
    """Operations to build; others cost nothing."""

    lanes: frozenset[Lane] = field(default_factory=lambda: frozenset(Lane))
    """Lanes of shifts and counts. The constructor removes those that are wider than a beat, and all
    of them if no operation depends on a lane."""

    reduces: bool | None = None
    """Whether a packet of counts can become one sum or truth value. None: if an operation counts,
    and a beat has 32 bits or more."""

    def __post_init__(self) -> None:
        if self.data_width not in WIDTHS:
            raise ValueError(
                f"data_width: {self.data_width} is not supported; expected 8, 16, 32, 64 or 128"
            )
        if not 0 <= self.user_width <= 32:
            raise ValueError(f"user_width: {self.user_width} is outside 0 to 32")
        if not self.ops:
            raise ValueError("ops: empty; expected at least one operation")
        if not self.ops <= BIT_OPS:
            raise ValueError("ops: SEARCH needs memory; expected operations of the bit unit alone")
        fitting = {lane for lane in self.lanes if lane.bits <= self.data_width}
        splits = any(op.splits_lanes for op in self.ops)
        if splits and not fitting:
            raise ValueError(
                f"lanes: none fits into a beat of {self.data_width} bits; shifts and counts need"
                " at least one"
            )
        wide = self.data_width >= _SUM_BITS
        if self.reduces and not wide:
            raise ValueError(
                f"reduces: a sum has 32 bits, and a beat {self.data_width}; expected a beat of"
                " 32, 64 or 128 bits"
            )
        if self.reduces and not self.counts:
            raise ValueError("reduces: no operation counts; expected a count in ops, or False")
        # The only way to set a field of a frozen dataclass; no field changes after this.
        object.__setattr__(self, "lanes", frozenset(fitting if splits else ()))
        if self.reduces is None:
            object.__setattr__(self, "reduces", self.counts and wide)

    @property
    def data_bytes(self) -> int:
        """Bytes in a beat."""
        return self.data_width // 8

    @property
    def has_b(self) -> bool:
        """Whether any operation has a second operand."""
        return any(op.reads_b for op in self.ops)

    @property
    def counts(self) -> bool:
        """Whether any operation counts."""
        return bool(self.ops & COUNT_OPS)

    @property
    def shifts(self) -> bool:
        """Whether any operation shifts."""
        return bool(self.ops & SHIFT_OPS)

    @property
    def control(self) -> dict[str, int]:
        """Bits of each control input; 0 bits for one on which nothing depends."""
        lanes = 2 if self.lanes else 0
        return {
            "op": 4 if len(self.ops) > 1 else 0,
            "lane": lanes,
            "out_lane": lanes if self.counts else 0,
            "saturate": int(self.shifts),
            "arithmetic": int(self.shifts),
            "test": int(self.counts),
            "negate": int(self.counts),
            "reduction": 2 if self.reduces else 0,
        }
