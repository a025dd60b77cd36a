"""Command records: the fields of a command, and its words as the circuit reads them.

Everything about the layout comes from ``bitlane_rtl.abi``. Nothing here touches tensors.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bitlane_rtl.abi import MAX_LOOPS, RECORD, Bits, Lane, Mode, Op, record_words, seal

_MODULUS: Final = 1 << 32
_WORD: Final = {name: field.word for name, field in RECORD.items()}
_CONTROL: Final[dict[str, Bits]] = {bits.name: bits for bits in RECORD["CONTROL"].bits}


@dataclass(frozen=True, slots=True)
class Walk:
    """The addresses of one stream of a command, in bytes; strides and jumps are signed."""

    base: int
    """Address of the first element."""
    last: int
    """Highest address of a byte that the command touches."""
    mode: Mode = Mode.DENSE
    stride: int = 0
    """From an element of a run to the next, if STRIDED; else 0."""
    jumps: tuple[int, ...] = ()
    """One a loop outside the run, innermost first."""

    def moved(self, offset: int) -> "Walk":
        return Walk(self.base + offset, self.last + offset, self.mode, self.stride, self.jumps)


@dataclass(frozen=True, slots=True)
class Command:
    """One command, before it is packed into words."""

    op: Op
    lane: Lane
    out_lane: Lane
    run: int
    """Elements in a run."""
    a: Walk
    b: Walk | None
    y: Walk
    counts: tuple[int, ...] = ()
    """Iterations of the loops outside the run, innermost first."""
    saturate: bool = False
    arithmetic: bool = False
    test: bool = False
    negate: bool = False
    fence: bool = False

    @property
    def title(self) -> str:
        """The operation, with what becomes of its counts: ``COUNT_XOR TEST NEGATE``."""
        flags = {"TEST": self.test, "NEGATE": self.negate}
        return " ".join([self.op.name, *(name for name, is_set in flags.items() if is_set)])

    @property
    def loops(self) -> int:
        """Nested loops in use, the run included."""
        return 1 + len(self.counts)

    def moved(self, a: int, b: int, y: int, *, fence: bool) -> "Command":
        """Return the same work with each stream's addresses increased by the given bytes."""
        # As dataclasses.replace does it, in a third of the time.
        return Command(
            self.op,
            self.lane,
            self.out_lane,
            self.run,
            self.a.moved(a),
            None if self.b is None else self.b.moved(b),
            self.y.moved(y),
            self.counts,
            self.saturate,
            self.arithmetic,
            self.test,
            self.negate,
            fence,
        )


def encode(command: Command, *, interrupt: bool = False) -> NDArray[np.uint32]:
    """Return the words of the record that the command uses, sealed.

    Raises ``ValueError`` if a number does not fit its field.
    """
    if command.loops > MAX_LOOPS:
        raise ValueError(f"command: {command.loops} loops; a record has room for {MAX_LOOPS}")
    a, b, y = command.a, command.b, command.y
    b_mode = Mode.DENSE if b is None else b.mode
    words = [0] * record_words(command.op, command.loops, (a.mode, b_mode, y.mode))
    words[_WORD["RUN"]] = command.run
    for name, walk in (("A", a), ("B", b), ("Y", y)):
        if walk is None:
            continue
        words[_WORD[name + "_BASE"]] = walk.base
        words[_WORD[name + "_LAST"]] = walk.last
        if walk.mode is Mode.STRIDED:
            words[_WORD[name + "_STRIDE"]] = walk.stride % _MODULUS
        for loop, jump in enumerate(walk.jumps, 1):
            words[_WORD[f"{name}_JUMP_{loop}"]] = jump % _MODULUS
    for loop, count in enumerate(command.counts, 1):
        words[_WORD[f"COUNT_{loop}"]] = count

    control = _Control(
        command.op,
        command.lane,
        command.out_lane,
        a.mode,
        b_mode,
        y.mode,
        command.loops,
        command.saturate,
        command.arithmetic,
        command.fence,
        interrupt,
        command.test,
        command.negate,
    )
    words[_WORD["CONTROL"]] = _pack(control)
    words[_WORD["CONTROL"]] = seal(words)
    try:
        return np.array(words, dtype="<u4")
    except OverflowError as error:
        raise ValueError(f"command: a word is outside 0 to {_MODULUS - 1}: {command}") from error


class _Control(NamedTuple):
    """The fields of the word CONTROL, but for its seal. Named and ordered as in the record."""

    op: Op
    lane: Lane
    out_lane: Lane
    a_mode: Mode
    b_mode: Mode
    y_mode: Mode
    loops: int
    saturate: bool
    arithmetic: bool
    fence: bool
    interrupt: bool
    test: bool
    negate: bool


@lru_cache(maxsize=512)
def _pack(control: _Control) -> int:
    """Return the word CONTROL without its seal."""
    fields = zip(control._fields, control, strict=True)
    return sum(_CONTROL[name.upper()].insert(value) for name, value in fields)
