"""Records of many instances taken apart, and the code that each is refused with."""

from dataclasses import dataclass

import numpy as np

from bitlane_rtl.abi import (
    COUNT_OPS,
    RECORD,
    RECORD_SEAL,
    RECORD_WORDS,
    SHIFT_OPS,
    Mode,
    Op,
    Status,
    loop_word,
)
from bitlane_rtl.configuration import Configuration

from ..draws import Array

__all__ = ["Fields", "is_one_of", "refusals"]

_CONTROL = {bits.name: bits for bits in RECORD["CONTROL"].bits}
_KNOWN = sum(((1 << bits.width) - 1) << bits.low for bits in _CONTROL.values())
_WITH_B = frozenset(op for op in Op if op.reads_b)
_MOST_LOOPS = 6


def is_one_of(values: Array, members: Array) -> Array:
    """Where ``values``, less than 64, are numbers of ``members``."""
    mask = sum(1 << int(member) for member in members)
    return (np.uint64(mask) >> values.astype(np.uint64)) & np.uint64(1) != 0


@dataclass(frozen=True, slots=True)
class Fields:
    """A command of each instance. All arrays are of ``int64``, with an axis of instances."""

    words: Array
    """(instances, 32)."""

    def control(self, name: str) -> Array:
        bits = _CONTROL[name]
        return (self.words[:, 0] >> bits.low) & ((1 << bits.width) - 1)

    def word(self, name: str) -> Array:
        return self.words[:, RECORD[name].word]

    @property
    def op(self) -> Array:
        return self.control("OP")

    @property
    def loops(self) -> Array:
        return self.control("LOOPS")

    @property
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
        return (self.words[:, loop_word(loop)] - 1) * (loop < self.loops) + 1

    def jump(self, stream: str, loop: int) -> Array:
        place = loop_word(loop) + {"A": 1, "Y": 2, "B": 3}[stream]
        return self.words[:, place] * (loop < self.loops)

    @property
    def with_b(self) -> Array:
        return is_one_of(self.op, _WITH_B)

    @property
    def counts_bits(self) -> Array:
        return is_one_of(self.op, COUNT_OPS)

    @property
    def splits(self) -> Array:
        """Whether the lane matters to the result."""
        return is_one_of(self.op, COUNT_OPS | SHIFT_OPS)

    @property
    def sums(self) -> Array:
        return self.has_mode("Y", Mode.SUM)

    def any_mode(self, *modes: Mode) -> Array:
        a, b, y = (is_one_of(self.mode(stream), modes) for stream in "ABY")
        return a | b | y

    @property
    def used(self) -> Array:
        """Words in use, as the contract counts them."""
        loops = self.loops
        loops = loops + (1 - loops) * ((loops < 1) | (loops > _MOST_LOOPS))
        short = 6 + 2 * self.with_b
        nested = (loops > 1) | self.any_mode(Mode.STRIDED)
        return short + (12 + 4 * (loops - 1) - short) * nested


def refusals(fields: Fields, configuration: Configuration) -> Array:
    """The code of `Status` that refuses each command, or OK."""
    result = fields.op * 0
    # The lowest code that applies is the one that counts.
    for status, applies in reversed(_checks(fields, configuration)):
        result = result + (int(status) - result) * applies
    return result


def _checks(fields: Fields, configuration: Configuration) -> list[tuple[Status, Array]]:
    exists = is_one_of(fields.op, configuration.bit_ops)
    return [
        (Status.BAD_SEAL, _seal(fields) != RECORD_SEAL),
        (Status.BAD_OP, ~exists),
        (Status.BAD_LANE, _bad_lane(fields, configuration)),
        (Status.BAD_CONTROL, _bad_control(fields, configuration)),
        (Status.BAD_SIZE, _bad_size(fields, configuration)),
        (Status.MISALIGNED, _misaligned(fields)),
        (Status.PAST_MEMORY, _past_memory(fields, configuration)),
    ]


def _seal(fields: Fields) -> Array:
    folded = fields.op * 0
    for number in range(RECORD_WORDS):
        folded = folded ^ fields.words[:, number] * (number < fields.used)
    folded = folded ^ folded >> 16
    return (folded ^ folded >> 8) & 0xFF


def _bad_lane(fields: Fields, configuration: Configuration) -> Array:
    lane, out_lane = fields.control("LANE"), fields.control("OUT_LANE")
    counted = (out_lane == 2) | ((out_lane == 0) & ~fields.sums)
    fits = (fields.counts_bits & counted) | (~fields.counts_bits & (out_lane == lane))
    by_elements = ~fields.has_mode("A", Mode.DENSE) | ~fields.has_mode("B", Mode.DENSE)
    by_elements = by_elements | is_one_of(fields.mode("Y"), (Mode.STRIDED, Mode.REPEAT))
    lacking = ~is_one_of(lane, configuration.lanes) & (fields.splits | by_elements)
    wide = by_elements & (fields.size("A") > configuration.data_bytes)
    return ~fits | lacking | wide


def _bad_control(fields: Fields, configuration: Configuration) -> Array:
    lacking = fields.any_mode(*(mode for mode in Mode if mode not in configuration.modes))
    return (
        (fields.words[:, 0] & ~_KNOWN != 0)
        | lacking
        | fields.has_mode("Y", Mode.REPEAT)
        | fields.has_mode("A", Mode.SUM)
        | fields.has_mode("B", Mode.SUM)
        | (fields.sums & ~fields.counts_bits)
        | (~fields.with_b & ~fields.has_mode("B", Mode.DENSE))
        | (fields.loops < 1)
        | (fields.loops > configuration.loops)
        | ((fields.used > RECORD["RESERVED"].word) & (fields.word("RESERVED") != 0))
    )


def _bad_size(fields: Fields, configuration: Configuration) -> Array:
    size, out_size = fields.size("A"), fields.size("Y")
    widest = size + (out_size - size) * ((out_size > size) & ~fields.sums)
    size_of_run = fields.run * widest
    bad = (size_of_run == 0) | (size_of_run >= 1 << configuration.length_bits)
    for loop in range(1, _MOST_LOOPS):
        count = fields.count(loop)
        bad = bad | (count == 0) | (count >= 1 << configuration.count_bits)
    return bad


def _misaligned(fields: Fields) -> Array:
    bad = fields.op < 0
    plain = ~fields.any_mode(Mode.STRIDED, Mode.REPEAT, Mode.SUM)
    for stream in "ABY":
        if stream == "Y":
            matters = fields.splits | ~plain
        else:
            matters = ~fields.has_mode(stream, Mode.DENSE)
            if stream == "B":
                matters = matters & fields.with_b
        below = fields.size(stream) - 1
        folded = fields.word(f"{stream}_BASE")
        folded = folded | fields.word(f"{stream}_STRIDE") * (fields.used > 8)
        for loop in range(1, _MOST_LOOPS):
            folded = folded | fields.jump(stream, loop)
        bad = bad | (matters & (folded & below != 0))
    return bad


def _past_memory(fields: Fields, configuration: Configuration) -> Array:
    bad = fields.op < 0
    for stream in "ABY":
        outside = fields.op < 0
        for end in ("BASE", "LAST"):
            address = fields.word(f"{stream}_{end}")
            outside = outside | (address < configuration.memory_base)
            outside = outside | (address > configuration.memory_last)
        bad = bad | (outside & fields.with_b if stream == "B" else outside)
    return bad
