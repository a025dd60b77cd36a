"""Records taken apart, and the code that each is refused with: those of many instances, or one.

The rules are arithmetic alone, so that they hold for arrays and for Python's numbers.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, NamedTuple, TypeAlias

from bitlane_rtl.abi import (
    COUNT_OPS,
    RECORD,
    RECORD_SEAL,
    RECORD_WORDS,
    SHIFT_OPS,
    Lane,
    Mode,
    Op,
    Status,
    loop_word,
)
from bitlane_rtl.configuration import Search

Array: TypeAlias = Any
"""An array of NumPy's or of CuPy's, or a number of Python's."""

CONTROL = {bits.name: bits for bits in RECORD["CONTROL"].bits}
"""The fields of a record's word ``CONTROL``, by name."""
_KNOWN = sum(((1 << bits.width) - 1) << bits.low for bits in CONTROL.values())
_WITH_B = frozenset(op for op in Op if op.reads_b)
_EVERY_MODE = frozenset(Mode)
_BY_ELEMENTS = frozenset({Mode.STRIDED, Mode.REPEAT, Mode.SUM})
_COUNTS_OR_SHIFTS = COUNT_OPS | SHIFT_OPS
_MOST_LOOPS = 6


def is_one_of(values: Array, members: Iterable[int]) -> Array:
    """Return where ``values``, less than 63, are numbers of ``members``."""
    return (_bits_of(frozenset(members)) >> values) & 1 != 0


@cache
def _bits_of(members: frozenset[int]) -> int:
    return sum(1 << int(member) for member in members)


def _not(mask: Array) -> Array:
    """Invert a mask of an array, or one of Python's truth values, which ``~`` would not."""
    return mask ^ True


class Limits(NamedTuple):
    """The properties of a circuit that decide about refusals."""

    ops: frozenset[Op]
    lanes: frozenset[Lane]
    modes: frozenset[Mode]
    data_bytes: int
    loops: int
    length_bits: int
    count_bits: int
    memory_base: int
    memory_last: int
    search: Search | None

    @classmethod
    def of(cls, circuit: object) -> "Limits":
        """Return the limits of a `Configuration`, or of an object with the same attributes."""
        return cls(*(getattr(circuit, name) for name in cls._fields))


@dataclass(frozen=True)
class Fields:
    """A command of each instance, in arrays of ``int64`` with an axis of instances.

    Of a single command all are numbers.
    """

    words: Array
    """The words of records, (32, instances); or the 32 words of one record."""

    def control(self, name: str) -> Array:
        bits = CONTROL[name]
        return (self.words[0] >> bits.low) & ((1 << bits.width) - 1)

    def word(self, name: str) -> Array:
        return self.words[RECORD[name].word]

    @cached_property
    def op(self) -> Array:
        return self.control("OP")

    @cached_property
    def loops(self) -> Array:
        return self.control("LOOPS")

    @cached_property
    def run(self) -> Array:
        return self.word("RUN")

    def mode(self, stream: str) -> Array:
        return self.control(f"{stream}_MODE")

    def has_mode(self, stream: str, mode: Mode) -> Array:
        # CuPy takes no enumeration as an operand.
        return self.mode(stream) == int(mode)

    def size(self, stream: str) -> Array:
        """Bytes of an element."""
        return 1 << self.control("OUT_LANE" if stream == "Y" else "LANE")

    def count(self, loop: int) -> Array:
        """Iterations of a loop outside the run; 1 of those that are not in use."""
        return (self.words[loop_word(loop)] - 1) * (loop < self.loops) + 1

    def jump(self, stream: str, loop: int) -> Array:
        place = loop_word(loop) + {"A": 1, "Y": 2, "B": 3}[stream]
        return self.words[place] * (loop < self.loops)

    @cached_property
    def with_b(self) -> Array:
        return is_one_of(self.op, _WITH_B)

    @cached_property
    def counts_bits(self) -> Array:
        return is_one_of(self.op, COUNT_OPS)

    @cached_property
    def splits(self) -> Array:
        """Whether the lane matters to the result."""
        return is_one_of(self.op, _COUNTS_OR_SHIFTS)

    @cached_property
    def searches(self) -> Array:
        return self.op == int(Op.SEARCH)

    @cached_property
    def sums(self) -> Array:
        return self.has_mode("Y", Mode.SUM)

    def any_mode(self, modes: Iterable[Mode]) -> Array:
        a, b, y = (is_one_of(self.mode(stream), modes) for stream in "ABY")
        return a | b | y

    @cached_property
    def used(self) -> Array:
        """Words in use, as the contract counts them."""
        loops = self.loops
        loops = loops + (1 - loops) * ((loops < 1) | (loops > _MOST_LOOPS))
        short = 6 + 2 * self.with_b
        nested = (loops > 1) | self.any_mode({Mode.STRIDED})
        return short + (12 + 4 * (loops - 1) - short) * nested


def refusals(fields: Fields, limits: Limits) -> Array:
    """Return the code of `Status` that refuses each command, or OK."""
    result = fields.op * 0
    # The lowest code that applies is the one that counts.
    for status, applies in reversed(_checks(fields, limits)):
        result = result + (int(status) - result) * applies
    return result


def _checks(fields: Fields, limits: Limits) -> list[tuple[Status, Array]]:
    return [
        (Status.BAD_SEAL, _seal(fields) != RECORD_SEAL),
        (Status.BAD_OP, _not(is_one_of(fields.op, limits.ops))),
        (Status.BAD_LANE, _bad_lane(fields, limits)),
        (Status.BAD_CONTROL, _bad_control(fields, limits)),
        (Status.BAD_SIZE, _bad_size(fields, limits)),
        (Status.MISALIGNED, _misaligned(fields)),
        (Status.PAST_MEMORY, _past_memory(fields, limits)),
    ]


def _seal(fields: Fields) -> Array:
    folded, used = fields.op * 0, fields.used
    for number in range(RECORD_WORDS):
        folded = folded ^ fields.words[number] * (number < used)
    folded = folded ^ folded >> 16
    return (folded ^ folded >> 8) & 0xFF


def _bad_lane(fields: Fields, limits: Limits) -> Array:
    lane, out_lane = fields.control("LANE"), fields.control("OUT_LANE")
    counts, searches = fields.counts_bits, fields.searches
    counted = (out_lane == 2) | ((out_lane == 0) & _not(fields.sums))
    fits = (counts & counted) | (_not(counts | searches) & (out_lane == lane))
    fits = fits | (searches & (lane == 0) & (out_lane == 2))
    by_elements = _not(fields.has_mode("A", Mode.DENSE) & fields.has_mode("B", Mode.DENSE))
    by_elements = by_elements | is_one_of(fields.mode("Y"), (Mode.STRIDED, Mode.REPEAT))
    lacking = _not(is_one_of(lane, limits.lanes)) & (fields.splits | by_elements)
    wide = by_elements & (fields.size("A") > limits.data_bytes)
    # A SEARCH that does not walk densely is refused for its modes.
    return _not(fits) | ((lacking | wide) & _not(searches))


def _bad_control(fields: Fields, limits: Limits) -> Array:
    lacking = fields.any_mode(_EVERY_MODE - limits.modes)
    nested = (fields.loops != 1) | fields.any_mode(_BY_ELEMENTS)
    return (
        (fields.words[0] & ~_KNOWN != 0)
        | lacking
        | fields.has_mode("Y", Mode.REPEAT)
        | fields.has_mode("A", Mode.SUM)
        | fields.has_mode("B", Mode.SUM)
        | ((fields.sums | (fields.control("TEST") != 0)) & _not(fields.counts_bits))
        | (fields.control("NEGATE") > fields.control("TEST"))
        | (_not(fields.with_b) & _not(fields.has_mode("B", Mode.DENSE)))
        | (fields.loops < 1)
        | (fields.loops > limits.loops)
        | ((fields.used > RECORD["RESERVED"].word) & (fields.word("RESERVED") != 0))
        | (fields.searches & nested)
    )


def _bad_size(fields: Fields, limits: Limits) -> Array:
    size, out_size = fields.size("A"), fields.size("Y")
    only_lane = fields.sums | fields.searches
    widest = size + (out_size - size) * ((out_size > size) & _not(only_lane))
    size_of_run = fields.run * widest
    bad = (size_of_run == 0) | (size_of_run >= 1 << limits.length_bits)
    for loop in range(1, _MOST_LOOPS):
        count = fields.count(loop)
        bad = bad | (count == 0) | (count >= 1 << limits.count_bits)
    if limits.search is not None:
        bad = bad | (fields.searches & _bad_search(fields, limits.search))
    return bad


def _bad_search(fields: Fields, search: Search) -> Array:
    """Return where the sizes of rows, queries and results do not fit together."""
    row = search.row_bits // 8
    b, y = (fields.word(f"{x}_LAST") - fields.word(f"{x}_BASE") + 1 for x in "BY")
    fits = (fields.run % row == 0) & (b % row == 0) & (b > 0) & (b <= search.queries * row)
    return _not(fits & (y == b // row * search.nearest * 8))


def _misaligned(fields: Fields) -> Array:
    plain = _not(fields.any_mode(_BY_ELEMENTS))
    searches, with_stride = fields.searches, fields.used > 8
    bad = searches & (fields.word("Y_BASE") % 8 != 0)
    for stream in "ABY":
        if stream == "Y":
            matters = fields.splits | _not(plain)
        else:
            matters = _not(fields.has_mode(stream, Mode.DENSE))
            if stream == "B":
                matters = matters & fields.with_b
        below = fields.size(stream) - 1
        folded = fields.word(f"{stream}_BASE")
        folded = folded | fields.word(f"{stream}_STRIDE") * with_stride
        for loop in range(1, _MOST_LOOPS):
            folded = folded | fields.jump(stream, loop)
        bad = bad | (matters & (folded & below != 0) & _not(searches))
    return bad


def _past_memory(fields: Fields, limits: Limits) -> Array:
    bad = fields.op < 0
    for stream in "ABY":
        outside = fields.op < 0
        for end in ("BASE", "LAST"):
            address = fields.word(f"{stream}_{end}")
            outside = outside | (address < limits.memory_base) | (address > limits.memory_last)
        bad = bad | (outside & fields.with_b if stream == "B" else outside)
    return bad
