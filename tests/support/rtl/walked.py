"""A reader or a writer beside the nest that walks its commands, as they are in the data path."""

from typing import Any

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In

from bitlane_rtl.abi import Mode
from bitlane_rtl.configuration import Configuration
from bitlane_rtl.datapath.datapath import stages
from bitlane_rtl.datapath.reader import Reader
from bitlane_rtl.datapath.writer import Writer
from bitlane_rtl.walk.loops import Command, Form, Loops
from bitlane_rtl.walk.nest import STREAMS, Nest
from support.rtl.walks import Walk, loop_constants

__all__ = ["Walked"]


class Walked(wiring.Component):
    """``unit`` takes commands from ``i``, every third cycle at most, as the stream ``name``.

    Its commands share ``loops``; the nest tells no other stream of them.
    """

    i: stream.Interface
    loops: Any

    def __init__(self, configuration: Configuration, unit: Reader | Writer, name: str) -> None:
        self._configuration = configuration
        self._name = name
        self.unit: Any = unit
        super().__init__(
            {
                "i": In(stream.Signature(Command(configuration))),
                "loops": In(Loops(configuration)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        unit, command = self.unit, self.i.p
        m.submodules.unit = unit
        m.submodules.nest = nest = Nest(self._configuration, stages(self._configuration)["steps"])
        form: Any = Signal(Form())
        go, ready = Signal(), Signal()
        modes = (command.a.mode, command.b.mode, command.y.mode)
        m.d.sync += ready.eq(~nest.walking & ~go)
        with m.If(~nest.walking):
            m.d.sync += form.eq(command.form)
        m.d.comb += [
            self.i.ready.eq(ready),
            go.eq(self.i.valid & ready),
            nest.start.eq(go),
            nest.used.eq(1 << STREAMS.index(self._name)),
            nest.plain.eq(command.plain),
            nest.strided.eq(Cat(mode == Mode.STRIDED for mode in modes)),
            nest.in_use.eq(command.loops),
            nest.loops.eq(self.loops),
            unit.idle.eq(~nest.walking),
            unit.begin.eq(getattr(command, self._name)),
            unit.form.eq(form),
            unit.track.eq(getattr(self.loops, self._name)),
        ]
        if isinstance(unit, Reader):
            m.d.comb += unit.offsets.eq(self.loops.y)
        wiring.connect(m, getattr(nest, self._name), unit.steps)
        return m

    async def set_loops(self, ctx: Any, a: Walk, y: Walk) -> None:
        ctx.set(self.loops, loop_constants(self._configuration, a, a, y))
