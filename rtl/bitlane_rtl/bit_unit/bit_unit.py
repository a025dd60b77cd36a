"""The bit unit: logic, shifts and counts on a stream of beats. Must never reorder or drop a beat.

It handles no addresses: each beat carries its position in its run.
"""

from collections.abc import Collection
from typing import Any

from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..abi import COUNT_OPS, Lane, Op
from ..streams import Operands, Result
from .beat_pairs import AddPairs, PairBeats, SplitBeats
from .pipeline import Pipeline

__all__ = ["BitUnit"]


class BitUnit(wiring.Component):
    """Computes one beat of results a cycle.

    Latency: ``latency`` cycles, which the parameters decide: 3 with a shift, with sums, or with a
    count of 64-bit lanes in beats of 64 bits or more; else 2 with a count; else 1.
    Throughput: one beat a cycle.

    The test of an element takes the place of its count, in the same cycle.

    A run that is summed is counted in the widest lane that is built. All its results but the last
    are ``partial``; the last one has the sum in every 32 bits and the lane of 32 bits. A beat in
    error is not ``partial``, because the rest of its run may never arrive.

    If ``data_width`` is 32 and ``lanes`` has 64-bit lanes, an element of 64 bits takes two beats in
    a shift or count: a pair, the low half first. A run of pairs consists of whole pairs.

    - A shift gives both results ``latency + 1`` cycles after their beats. An idle cycle of the
      output may precede the first result of a pair, which has ``last`` and ``end`` clear.
    - A count gives a first result that is ``partial``, and a second one with the lane of 32 bits
      and half the ``slot``.
    - A result that depends on both beats is in error if either beat is.

    Size and clock out of context (Yosys 0.70, nextpnr 0.11.1, all lanes; ECP5 speed 6 with
    ``-nowidelut`` but for logic alone; a CCU2C beside LUT4 is two more):

    ==================== ========== ============================== ======= =========================
    Operations           Width      Area                           MHz     Slowest path
    ==================== ========== ============================== ======= =========================
    all                  64, ECP5   939 LUT4, 22 CCU2C, 506 FF     150     ones of 32 bits
    all                  32, ECP5   897 LUT4, 13 CCU2C, 491 FF     147     excess to whole bytes
    logic, counts        64, ECP5   257 LUT4, 22 CCU2C, 280 FF     159     ones of 32 bits
    logic                64, ECP5   129 LUT4, 77 FF                320     ``o.ready`` to the stage
    AND, OR, XOR, NOT    64, ECP5   65 LUT4, 77 FF                 327     ``o.ready`` to the stage
    NOT                  32, ECP5   33 LUT4, 45 FF                 398     ``o.ready`` to the stage
    logic, counts        32, iCE40  169 LUT4, 118 FF (HX8K)        138     ``i`` to ones of 8 bits
    all                  32, iCE40  931 LUT4, 491 FF (HX8K)        127     ``SplitBeats`` to 1
    ==================== ========== ============================== ======= =========================

    Parameters
    ----------
    data_width, ops, lanes
        Bits of a beat, and the operations and lanes that are built.
    sums
        Whether counts of runs can be summed; this needs a count in ``ops``.

    Members
    -------
    i
        Beats of both operands. The result of an operation that is not in ``ops``, and of a shift or
        count in a lane that is not in ``lanes``, is undefined.
    o
        Results, in the same order. ``lane`` is the lane of the data: a count is in the low bits of
        its lane, zero-extended.

    Raises ``ValueError`` if ``ops`` is empty, or needs lanes and none of ``lanes`` can be built.
    """

    def __init__(
        self,
        data_width: int,
        ops: Collection[Op],
        lanes: Collection[Lane],
        *,
        sums: bool = False,
    ) -> None:
        super().__init__(
            {
                "i": In(stream.Signature(Operands(data_width))),
                "o": Out(stream.Signature(Result(data_width))),
            }
        )
        if not ops:
            raise ValueError("ops: empty; expected at least one operation")
        self._data_width = data_width
        self._ops = frozenset(ops)
        two_beats = data_width < Lane.BITS_64.bits and Lane.BITS_64 in lanes
        self._adds_pairs = two_beats and bool(self._ops & COUNT_OPS)
        self._pipeline = Pipeline(data_width, self._ops, frozenset(lanes), sums=sums)

    @property
    def latency(self) -> int:
        """Cycles from a beat to its result."""
        return self._pipeline.latency

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.pipeline = pipeline = self._pipeline
        units: list[Any] = [pipeline]
        if pipeline.paired:
            m.submodules.pair_beats = pair_beats = PairBeats(self._data_width, self._ops)
            m.submodules.split_beats = split_beats = SplitBeats(self._data_width)
            units = [pair_beats, pipeline, split_beats]
        if self._adds_pairs:
            m.submodules.add_pairs = add_pairs = AddPairs()
            units.append(add_pairs)
        source = wiring.flipped(self.i)
        for unit in units:
            wiring.connect(m, source, unit.i)
            source = unit.o
        wiring.connect(m, source, wiring.flipped(self.o))
        return m
