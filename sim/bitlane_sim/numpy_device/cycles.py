"""The formulas of a prediction: what a command moves, and how long each stage of the engine takes.

`timeline` puts them together. Nothing here is measured: each number is the latency, throughput or
capacity that a component of the circuit states in its docstring, and its name is beside the number.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod
from typing import NamedTuple, Self

from bitlane_rtl.abi import BEATS_PER_BLOCK, COUNT_OPS, SHIFT_OPS, Lane, Mode, Op
from bitlane_rtl.configuration import Configuration

from .walk import AddressWalk

_CLUSTER = 4
"""Units that share an entry of the chain of hits: ``CLUSTER`` of `search.layouts`."""


class CounterValues(NamedTuple):
    """The counters from BUSY_CYCLES on, in the order of their registers."""

    busy: int = 0
    a_beats: int = 0
    a_stalls: int = 0
    b_beats: int = 0
    b_stalls: int = 0
    y_beats: int = 0
    y_stalls: int = 0

    @property
    def beats(self) -> int:
        """Beats of all ports."""
        return self.a_beats + self.b_beats + self.y_beats

    def plus(self, other: "CounterValues", times: int = 1) -> "CounterValues":
        """Return the sum of these counts and ``times`` the ``other`` ones."""
        return CounterValues(*(a + b * times for a, b in zip(self, other, strict=True)))


@dataclass(frozen=True, slots=True)
class Latencies:
    """Cycles and capacities of the stages between a doorbell and the last response.

    The numbers of the stage buffers are those of `datapath.stages`.
    """

    fetch: int
    """Words of a record that `Fetch` reads at once."""
    fetched: int
    """From the last write to the ring to the first group, and from the last group to the start."""
    nested: int
    """`LoopNest`: cycles more for a command that is not a single run."""
    spans: int
    """Cycles between the spans of a reader: 1 with the ``gap`` of its `Splitter`."""
    data: int
    """From a beat on the read port to the pairing: ``moved``, ``words`` and ``operands``."""
    dual: bool
    """Whether the `Realigner` sends a flush beside the next beat; else the port waits a cycle."""
    bit_unit: int
    """From the pairing to `Repack`: `BitUnit.latency` and the FIFO ``results``."""
    repack: int
    """`Repack`: 1 cycle with counts."""
    fifo: int
    """``fifo_beats`` less the block and two beats that a reader leaves free, see `Reader`."""
    bursts: int
    """Bursts of a stream in flight."""
    ahead: int
    """Spans in the writer's FIFO ``spans``."""
    results: int
    """Results in flight, `datapath.stages.RESULTS`."""
    slices: int
    """Payloads in the slices of steps, requests and bursts: 1 in a `HalfRateRegister`."""
    order: int
    """`ReadArbiter`: from a request to its first beat at least."""

    @classmethod
    def of(cls, circuit: Configuration) -> Self:
        """Return the numbers of a circuit."""
        narrow = circuit.data_width < Lane.BITS_64.bits or circuit.single_runs
        registered = not narrow or circuit.block_ram
        widest = max((each for each in circuit.lanes if each.bits <= circuit.data_width), default=0)
        shifts, counts = bool(circuit.ops & SHIFT_OPS), circuit.counts
        sums = Mode.SUM in circuit.modes
        three = shifts or sums or (counts and widest == Lane.BITS_64)
        wired = circuit.single_runs and circuit.single_op is not None
        return cls(
            fetch=circuit.data_width // 32,
            fetched=5,
            nested=1,
            spans=1 if circuit.single_runs else 0,
            data=(0 if narrow else 1) + (2 if registered else 1) + circuit.operand_registers,
            dual=not (narrow or circuit.block_ram),
            bit_unit=(3 if three else 2 if counts else 1) + (0 if wired else 1),
            repack=1 if counts else 0,
            fifo=circuit.fifo_beats - BEATS_PER_BLOCK - 2,
            bursts=circuit.bursts,
            ahead=circuit.ahead,
            results=16,
            slices=1 if circuit.single_runs else 2,
            order=2 if circuit.block_ram else 1,
        )


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream of a command: ``walk`` has a dense run as one iteration, and else an element."""

    walk: AddressWalk
    mode: Mode

    @property
    def spans(self) -> int:
        """Contiguous segments that are read or written one by one."""
        return prod(self.walk.counts)

    def addresses(self) -> Iterator[int]:
        """Yield the address of each run."""
        counts, steps = self.walk.counts[:-1], self.walk.steps[:-1]
        for place in product(*map(range, counts)):
            yield self.walk.base + sum(i * step for i, step in zip(place, steps, strict=True))

    def residues(self, modulo: int) -> dict[int, int]:
        """Return how many spans begin at each offset in ``modulo`` bytes, a power of two.

        A loop only turns the offsets by its step, so that no iteration is visited one by one.
        """
        found = {self.walk.base % modulo: 1}
        for count, step in zip(self.walk.counts, self.walk.steps, strict=True):
            turns: dict[int, int] = {}
            # Offsets repeat after this many iterations.
            period = modulo // _common(step, modulo)
            for first in range(min(period, count)):
                offset = first * step % modulo
                turns[offset] = turns.get(offset, 0) + (count - first - 1) // period + 1
            moved: dict[int, int] = {}
            for offset, spans in found.items():
                for turn, times in turns.items():
                    place = (offset + turn) % modulo
                    moved[place] = moved.get(place, 0) + spans * times
            found = moved
        return found

    def beats(self, data_bytes: int) -> int:
        """Return the words of memory that the stream reads or writes: a span has whole words."""
        last = self.walk.size - 1
        offsets = self.residues(data_bytes)
        return sum(((at + last) // data_bytes + 1) * spans for at, spans in offsets.items())


def _common(step: int, modulo: int) -> int:
    """Return the largest power of two that divides both."""
    return min(step & -step, modulo) if step % modulo else modulo


@dataclass(frozen=True)
class CommandShape:
    """The part of a command that its cycles depend on.

    ``lane`` and ``out_lane`` are in bytes; ``words`` are those of the record in use.
    """

    op: Op
    lane: int
    out_lane: int
    run: int
    words: int
    fence: bool
    a: Stream
    b: Stream | None
    y: Stream

    @cached_property
    def runs(self) -> int:
        """Runs of every stream."""
        return prod(self.a.walk.counts[:-1])

    @property
    def streams(self) -> tuple[Stream, ...]:
        return (self.a, self.y) if self.b is None else (self.a, self.b, self.y)

    @property
    def strided(self) -> bool:
        """Whether the loop nest steps through elements."""
        return any(stream.mode is Mode.STRIDED for stream in self.streams)

    @property
    def plain(self) -> bool:
        """Whether the command is one run, so that its steps are sent at once."""
        return len(self.a.walk.counts) == 1 and not self.strided

    @property
    def sums(self) -> bool:
        return self.y.mode is Mode.SUM

    @property
    def pairs(self) -> bool:
        """Whether the elements of shifts and counts take two beats of 32 bits."""
        return self.lane == Lane.BITS_64.bytes and self.op in COUNT_OPS | SHIFT_OPS

    @property
    def least(self) -> int:
        """Bytes of the narrowest element."""
        return min(self.lane, self.lane if self.sums else self.out_lane)

    def period(self, data_bytes: int) -> int:
        """Return the elements after which each stream is at the same offset of a block again."""
        return BEATS_PER_BLOCK * data_bytes // self.least

    def beats(self, data_bytes: int) -> CounterValues:
        """Return the beats of each port."""
        b = self.b.beats(data_bytes) if self.b else 0
        return CounterValues(
            a_beats=self.a.beats(data_bytes), b_beats=b, y_beats=self.y.beats(data_bytes)
        )


def search_cycles(configuration: Configuration, rows: int, queries: int) -> float:
    """Expected cycles of a search of random rows, from its first beat to the one behind its last.

    The first tile begins when the queries and its rows are stored. Each tile takes its loads and
    queries, or the beats of the next one. Meanwhile its hits leave: those rows that are among the
    nearest of the rows that the lists have seen. A hit is a cycle, and one more with the first of a
    cluster. Hits that wait stall the queries when the FIFOs are half full, and delay the lists. At
    last the lists leave, two words an entry.
    """
    search, width = configuration.search, configuration.data_width
    assert search is not None
    units, nearest, beats = search.units, search.nearest, search.row_bits // width
    clusters = -(-units // _CLUSTER)
    row_levels = search.row_bits.bit_length() - 1
    latency = -(-row_levels // _LEVELS)
    # `Cluster.depth`: the FIFO of hits; half of it is for queries in flight.
    depth = 2 << (latency + 2 * clusters + 7).bit_length()
    seen_late = latency + _HIT + _LISTED
    total = float(queries * beats + min(units, rows) * beats + _STORED + _LOADED)
    waiting, some, hits = 0.0, 1.0, 0.0
    for first in range(0, rows, units):
        there = min(units, rows - first)
        following = min(units, rows - first - units)
        taken = float(max(there + queries + 1, following * beats))
        # While hits of the tile before wait, a query finds half of them unseen, on average.
        unseen = seen_late / taken + min(1.0, waiting / max(hits, 1.0)) / 2
        seen = max(0.0, first - units * unseen)
        chance = min(1.0, nearest / (seen + 1))
        some = 1 - (1 - chance) ** (there * queries)
        hits = queries * (there * chance + clusters * (1 - (1 - chance) ** min(_CLUSTER, there)))
        # Earlier hits leave during the loads, and while the next rows come.
        waiting = max(0.0, waiting - there - 1)
        waiting = max(0.0, waiting + hits - queries + 1)
        stalled = max(0.0, waiting - depth / 2 * (units + clusters))
        total += taken + stalled
        waiting = max(0.0, waiting - stalled - taken + there + queries + 1)
    # A hit of the last query leaves while the feeder ends, which takes it a cycle.
    # The hits of the farthest cluster pass all others, also those of units without a row.
    late = max(waiting, some * 2 * clusters)
    total += depth + _HIT + some * (latency + _HIT - 1) + late
    return total + queries * (2 + nearest * 64 // width)


_LEVELS = 2
"""Levels of additions between registers: ``_PER_STAGE`` of `search.unit`."""

_STORED, _LOADED = 2, 3
"""`Intake`, from the last beat of a row, and `Feeder`, from the last row of a tile to its load."""

_HIT = 5
"""`Cluster`: beside the latency of its units, until a hit leaves. `SearchArray`: beside the depth
of a FIFO of hits, until the first list is opened."""

_LISTED = 5
"""The FIFO of candidates, 2 cycles, and `Lists`, 3 cycles."""
