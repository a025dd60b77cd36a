"""A command of the device: the words of its record by their names, and the walks of its streams."""

from collections.abc import Sequence
from math import prod

import numpy as np

from bitlane_rtl.abi import LOGIC_OPS, RECORD, Lane, Mode, Op, loop_word

from ..fields import CONTROL
from .operations import DTYPES
from .walk import AddressWalk


class DecodedCommand:
    """The words of a record that is not refused."""

    def __init__(self, words: Sequence[int]) -> None:
        self._words = words
        self.control = {name: bits.extract(words[0]) for name, bits in CONTROL.items()}
        self.op = Op(self.control["OP"])
        self.run = self.word("RUN")
        self.streams = "ABY" if self.op.reads_b else "AY"
        # Dense logic is the same for each byte, and bytes need no alignment.
        dense = all(self.mode(name) is Mode.DENSE for name in self.streams)
        self._bytewise = dense and self.op in LOGIC_OPS

    @property
    def steps(self) -> int:
        """Elements of A."""
        return self.run * prod(self._words[loop_word(x)] for x in range(1, self.control["LOOPS"]))

    def word(self, name: str) -> int:
        return self._words[RECORD[name].word]

    def mode(self, stream: str) -> Mode:
        return Mode(self.control[f"{stream}_MODE"])

    def lane(self, stream: str) -> Lane:
        return Lane(self.control["OUT_LANE" if stream == "Y" else "LANE"])

    def dtype(self, stream: str) -> "np.dtype[np.unsignedinteger]":
        return DTYPES[Lane.BITS_8 if self._bytewise else self.lane(stream)]

    def bursts(self, stream: str) -> AddressWalk:
        """Return the walk of a stream with a dense run as one iteration, and else an element."""
        size = self.lane(stream).bytes
        if self.mode(stream) is Mode.DENSE:
            return self._walk(stream, 1, 0, size * self.run)
        if self.mode(stream) is Mode.STRIDED:
            return self._walk(stream, self.run, _signed(self.word(f"{stream}_STRIDE")), size)
        return self._walk(stream, 1, 0, size)

    def elements(self, stream: str) -> AddressWalk:
        """Return the walk of a stream element by element: runs of equal length but of a SUM."""
        walk, size = self.bursts(stream), self.dtype(stream).itemsize
        if self.mode(stream) is Mode.DENSE:
            return walk.with_run(walk.size // size, size)
        if self.mode(stream) is Mode.REPEAT:
            return walk.with_run(self.run, 0)
        return walk

    def _walk(self, stream: str, count: int, step: int, size: int) -> AddressWalk:
        loops = []
        for loop in range(1, self.control["LOOPS"]):
            jump = _signed(self.word(f"{stream}_JUMP_{loop}"))
            loops.append((self._words[loop_word(loop)], jump))
        return AddressWalk.of(self.word(f"{stream}_BASE"), (count, step), loops, size)


def _signed(word: int) -> int:
    return word - (1 << 32) if word >> 31 else word
