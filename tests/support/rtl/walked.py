"""A reader or a writer beside the nest that walks its commands, as they are in the data path."""

from typing import Any

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In

from bitlane_rtl.abi import Mode
from bitlane_rtl.addresses.loop_nest import LoopNest
from bitlane_rtl.command import STREAMS, CheckedCommand, LoopRegisters, StreamFormat
from bitlane_rtl.configuration import Configuration
from bitlane_rtl.datapath.reader import Reader
from bitlane_rtl.datapath.stages import stages
from bitlane_rtl.datapath.writer import Writer
from support.rtl.streams import to_bits
from support.rtl.walks import Walk, loop_constants

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
