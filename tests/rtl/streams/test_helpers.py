"""The test helpers themselves: they must see every breach of the stream contract."""

from typing import Any

import pytest
from amaranth.hdl import Elaboratable, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from support.rtl.streams import NO_STALLS, STALLS, Sink, Source, Stalls, simulate, transfer


class Register(wiring.Component):
    """A one-deep pipeline register, with a bug to plant."""

    i: In(stream.Signature(8))
    o: Out(stream.Signature(8))

    def __init__(self, bug: str = "") -> None:
        super().__init__()
        self._bug = bug

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.comb += self.i.ready.eq(~self.o.valid | self.o.ready)
        with m.If(self.i.ready):
            m.d.sync += [self.o.valid.eq(self.i.valid), self.o.payload.eq(self.i.payload)]
        with m.Elif(self._bug == "withdraws"):
            m.d.sync += self.o.valid.eq(0)
        with m.Elif(self._bug == "changes"):
            m.d.sync += self.o.payload.eq(self.o.payload + 1)
        return m


class Repeater(wiring.Component):
    """Never stops sending."""

    i: In(stream.Signature(8))
    o: Out(stream.Signature(8))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.comb += [self.i.ready.eq(1), self.o.valid.eq(1)]
        return m


def test_payloads_arrive_in_order(stalls: Stalls) -> None:
    circuit = Register()
    sent = list(range(100))
    source, sink = transfer(circuit, sent, len(sent), stalls)
    assert sink.payloads == sent
    assert all(got > put for put, got in zip(source.cycles, sink.cycles, strict=True))
    if stalls is NO_STALLS:
        assert source.cycles == list(range(100))
        assert sink.cycles == list(range(1, 101))


@pytest.mark.parametrize(
    ("bug", "message"),
    [("withdraws", "withdrawn"), ("changes", "changed"), ("repeats", "more than")],
)
def test_a_breach_of_the_contract_is_seen(bug: str, message: str) -> None:
    circuit = Repeater() if bug == "repeats" else Register(bug)
    with pytest.raises(AssertionError, match=message):
        transfer(circuit, range(50), 50, STALLS[1])


def test_a_circuit_that_hangs_meets_the_deadline() -> None:
    circuit = Register()
    with pytest.raises(AssertionError, match="not finished after 100 cycles"):
        simulate(circuit, Source(circuit.i, range(3)), Sink(circuit.o, 4), deadline=100)


def test_a_circuit_without_registers_can_be_simulated() -> None:
    class Wire(Elaboratable):
        i = Signal(8)
        o = Signal(8)

        def elaborate(self, platform: object) -> Module:
            m = Module()
            m.d.comb += self.o.eq(~self.i)
            return m

    circuit = Wire()

    async def drive(ctx: Any) -> None:
        ctx.set(circuit.i, 0x5A)
        await ctx.tick()
        assert ctx.get(circuit.o) == 0xA5

    simulate(circuit, drive)
