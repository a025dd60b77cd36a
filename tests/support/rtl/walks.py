"""Random loop nests, for tests of address generators: made from steps, encoded as jumps.

The addresses are computed from the steps, independently of the circuit's method. `Walked` is a
reader or writer beside the nest that walks its commands, as they are in the data path.
"""

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In

from bitlane_rtl.abi import Lane, Mode
from bitlane_rtl.addresses import LoopNest
from bitlane_rtl.command import STREAMS, CheckedCommand, LoopRegisters, StreamFormat
from bitlane_rtl.configuration import Configuration
from bitlane_rtl.datapath import Reader, Writer
from bitlane_rtl.datapath.stages import stages
from support.rtl.streams import to_bits

OPERAND_MODES = (Mode.DENSE, Mode.STRIDED, Mode.REPEAT)
"""Modes that A and B can have."""


@dataclass
class Walk:
    """The loop nest of a stream: ``counts`` of elements and ``steps`` in bytes, innermost first."""

    base: int
    counts: list[int]
    steps: list[int]
    mode: Mode
    lane: Lane
    out_lane: Lane = field(default=Lane.BITS_8)

    def runs(self) -> Iterator[int]:
        """Yield the start of each run."""
        outer = [range(count) for count in reversed(self.counts[1:])]
        for index in itertools.product(*outer):
            yield self.base + sum(
                i * step for i, step in zip(reversed(index), self.steps[1:], strict=True)
            )

    def elements(self, start: int) -> list[int]:
        """Return the addresses of the elements of the run that begins at ``start``."""
        if self.mode is Mode.SUM:
            return [start]
        return [start + i * self.element_step for i in range(self.counts[0])]

    @property
    def element_step(self) -> int:
        if self.mode is Mode.REPEAT:
            return 0
        return self.lane.bytes if self.mode is Mode.DENSE else self.steps[0]

    def jumps(self) -> list[int]:
        """Return ``JUMP_k`` as `abi.RECORD` defines it."""
        result = []
        inner = (self.counts[0] - 1) * self.steps[0] if self.mode is Mode.STRIDED else 0
        for count, step in zip(self.counts[1:], self.steps[1:], strict=True):
            result.append(step - inner)
            inner += step * (count - 1)
        return result

    def bytes(self) -> Iterator[int]:
        for start in self.runs():
            for element in self.elements(start):
                yield from range(element, element + self.lane.bytes)

    def track(self, configuration: Configuration) -> dict[str, Any]:
        mask = (1 << configuration.address_width) - 1
        jumps = [jump & mask for jump in self.jumps()]
        jumps += [0] * (configuration.loops - 1 - len(jumps))
        stride = self.steps[0] & mask if self.mode is Mode.STRIDED else 0
        return {"stride": stride, "jumps": jumps}

    def start(self, configuration: Configuration, y: "Walk") -> dict[str, int]:
        """Return a constant of ``StreamStart(configuration)`` for a stream with this one's lane."""
        offset = y.base % configuration.data_bytes if y.mode is Mode.DENSE else 0
        return {
            "address": self.base,
            "offset": offset,
            "lane_offset": offset * self.lane.bytes // y.lane.bytes,
            "extent": self.counts[0] * self.lane.bytes - 1,
            "mode": self.mode,
        }


def walked_steps(counts: list[int], strided: bool) -> list[dict[str, int]]:
    """Return a stream's steps through loops with these ``counts``, the run's first.

    In the last step of the command ``advances`` is 0, because no loop advances.
    """
    steps = []
    runs = itertools.product(*(range(count) for count in reversed(counts[1:])))
    for indices in runs:
        loops = enumerate(zip(reversed(indices), counts[1:], strict=True), 1)
        left = [loop for loop, (index, count) in loops if index < count - 1]
        steps += [{"advances": 0, "last": 0, "end": 0}] * ((counts[0] - 1) * strided)
        steps.append({"advances": left[0] if left else 0, "last": 1, "end": int(not left)})
    return steps


def command_constant(configuration: Configuration, a: Walk, b: Walk, y: Walk) -> dict[str, Any]:
    """Return a constant of ``CheckedCommand(configuration)``, without the bit unit's fields."""
    dense = all(walk.mode is not Mode.STRIDED for walk in (a, b, y))
    return {
        "a": a.start(configuration, y),
        "b": b.start(configuration, y),
        "y": y.start(configuration, y),
        "form": {
            "lane": a.lane,
            "out_lane": y.lane,
            "widens": a.lane < y.lane,
            "ratio": abs(a.lane - y.lane),
            "y_dense": y.mode is Mode.DENSE,
        },
        "loops": len(a.counts) - 1,
        "plain": dense and len(a.counts) == 1,
    }


def loop_constants(configuration: Configuration, a: Walk, b: Walk, y: Walk) -> dict[str, Any]:
    """Return a constant of ``LoopRegisters(configuration)``. Unused loops have iterations, too."""
    counts = [count - 2 for count in a.counts[1:]]
    return {
        "run": a.counts[0] - 2,
        "counts": counts + [3] * (configuration.loops - 1 - len(counts)),
        "a": a.track(configuration),
        "b": b.track(configuration),
        "y": y.track(configuration),
    }


def random_walk(
    generator: random.Random,
    configuration: Configuration,
    counts: list[int],
    mode: Mode,
    lane: Lane,
    *,
    size: int,
    aligned: bool,
    disjoint: bool = False,
) -> Walk:
    """Return a walk in ``size`` bytes; ``disjoint``: no byte twice; ``aligned``: to the element."""
    unit = lane.bytes if aligned or mode is not Mode.DENSE else 1
    while True:
        steps = []
        if mode is Mode.STRIDED:
            steps.append(generator.choice([-3, -1, 2, 3, 5]) * lane.bytes)
        else:
            steps.append(lane.bytes)
        single = mode in (Mode.REPEAT, Mode.SUM)
        extent = lane.bytes if single else abs(steps[0]) * counts[0]
        for count in counts[1:]:
            if disjoint:
                step = (extent + generator.choice([0, 1, 5]) * unit) * generator.choice([1, -1])
                step = step // unit * unit
                extent = max(abs(step) * count, extent)
            else:
                step = generator.choice([0, 1, -1, 3, 7, extent // unit]) * unit
            steps.append(step)
        walk = Walk(0, counts, steps, mode, lane)
        touched = list(walk.bytes())
        low, high = min(touched), max(touched)
        if high - low < size and (not disjoint or len(set(touched)) == len(touched)):
            room = size - (high - low) - 1
            walk.base = -low + generator.randrange(0, room // unit + 1) * unit
            walk.base += -walk.base % unit
            if walk.base + high < size and walk.base + low >= 0:
                return walk


_WALK = {"setup", "steps"}
"""Members of a reader or a writer that walk it."""


class Walked(wiring.Component):
    """A reader or writer that takes ``commands``, every third cycle at most, as stream ``name``.

    Its commands share ``loops``; the loop nest has no other stream. All other members are those of
    ``unit``.
    """

    commands: stream.Interface
    loops: Any

    def __init__(self, configuration: Configuration, unit: Reader | Writer, name: str) -> None:
        self._configuration = configuration
        self._name = name
        self._unit: Any = unit
        members = unit.signature.members
        self._others = {each: members[each] for each in members if each not in _WALK}
        super().__init__(
            {
                "commands": In(stream.Signature(CheckedCommand(configuration))),
                "loops": In(LoopRegisters(configuration)),
                **self._others,
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        unit, command = self._unit, self.commands.p
        m.submodules.unit = unit
        m.submodules.nest = nest = LoopNest(self._configuration, stages(self._configuration).steps)
        form: Any = Signal(StreamFormat())
        go, ready = Signal(), Signal()
        m.d.sync += ready.eq(~nest.walking & ~go)
        with m.If(~nest.walking):
            m.d.sync += form.eq(command.form)
        m.d.comb += [
            self.commands.ready.eq(ready),
            go.eq(self.commands.valid & ready),
            nest.start.eq(go),
            nest.used[self._name].eq(1),
            nest.plain.eq(command.plain),
            *(nest.strided[x].eq(command[x].mode == Mode.STRIDED) for x in STREAMS),
            nest.in_use.eq(command.loops),
            nest.loops.eq(self.loops),
            unit.setup.idle.eq(~nest.walking),
            unit.setup.begin.eq(getattr(command, self._name)),
            unit.setup.form.eq(form),
            unit.setup.strides.eq(getattr(self.loops, self._name)),
        ]
        if isinstance(unit, Reader):
            m.d.comb += unit.setup.output_strides.eq(self.loops.y)
        wiring.connect(m, getattr(nest, self._name), unit.steps)
        for name, member in self._others.items():
            outer, inner = getattr(self, name), getattr(unit, name)
            if member.is_signature:
                wiring.connect(m, wiring.flipped(outer), inner)
            else:
                inwards = member.flow is In
                m.d.comb += inner.eq(outer) if inwards else outer.eq(inner)
        return m

    async def set_loops(self, ctx: Any, a: Walk, y: Walk) -> None:
        loops = loop_constants(self._configuration, a, a, y)
        ctx.set(Value.cast(self.loops), to_bits(self.loops.shape(), loops))


def walked_reader(configuration: Configuration) -> Walked:
    """Return a reader of the operand A."""
    return Walked(configuration, Reader(configuration, stages(configuration)), "a")


def walked_writer(configuration: Configuration) -> Walked:
    return Walked(configuration, Writer(configuration, stages(configuration)), "y")
