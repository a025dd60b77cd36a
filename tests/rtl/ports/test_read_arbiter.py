"""Two readers share a port fairly, and each gets the beats that it asked for."""

import random
from typing import Any

import pytest

from bitlane_rtl.ports.memory_port import request
from bitlane_rtl.ports.read_arbiter import ReadArbiter
from support.rtl.streams import (
    ALL_STALLS,
    NO_STALLS,
    Sink,
    Source,
    Stalls,
    compiled,
    elaborated,
    simulate,
)

B_ADDRESS = 0x8000_0000
"""Reader B's requests have this bit, reader A's do not."""


def requests(count: int, base: int, length: int | None = None) -> list[dict[str, int]]:
    rng = random.Random(base)
    return [
        {"address": base + 64 * index, "length": rng.randrange(16) if length is None else length}
        for index in range(count)
    ]


def beats(of: list[dict[str, int]]) -> list[tuple[int, int, int]]:
    """Data, last and error of all beats that a `Memory` gives for requests."""
    return [
        (entry["address"] + beat & 0xFFFF_FFFF, beat == entry["length"], beat == 13)
        for entry in of
        for beat in range(entry["length"] + 1)
    ]


class Memory:
    """Answers all requests of the shared port in order, ``latency`` cycles after each or later."""

    def __init__(self, dut: ReadArbiter, total: int, latency: int, stalls: Stalls) -> None:
        self._port = dut.port
        self._latency = latency
        self._stalls = stalls
        self._total = total
        self.order: list[int] = []
        self.cycles: list[int] = []
        self.beat_cycles: list[int] = []

    async def run(self, ctx: Any) -> None:
        port = self._port
        ask, answer = self._stalls.lengths("memory ar"), self._stalls.lengths("memory r")
        ask_stall, answer_stall = next(ask), next(answer)
        pending: list[tuple[int, tuple[int, int, int]]] = []
        offered: tuple[int, int] | None = None
        cycle = 0
        while len(self.order) < self._total or pending:
            ctx.set(port.request.ready, not ask_stall)
            valid = bool(pending) and pending[0][0] <= cycle and not answer_stall
            data, last, error = pending[0][1] if valid else (0xDEAD, 1, 1)
            ctx.set(port.data.payload, {"data": data, "last": last, "error": error})
            ctx.set(port.data.valid, valid)
            _, _, asked, address, length, ready = await ctx.tick().sample(
                port.request.valid,
                port.request.payload.address,
                port.request.payload.length,
                port.data.ready,
            )
            if offered is not None:
                assert asked, "request withdrawn"
                assert (address, length) == offered, "request changed before it was taken"
            offered = (address, length) if asked and ask_stall else None
            if valid and ready:
                pending.pop(0)
                self.beat_cycles.append(cycle)
                answer_stall = next(answer)
            elif answer_stall:
                answer_stall -= 1
            if asked and not ask_stall:
                self.order.append(address)
                self.cycles.append(cycle)
                entry = {"address": address, "length": length}
                pending += [(cycle + self._latency, beat) for beat in beats([entry])]
                ask_stall = next(ask)
            elif ask_stall:
                ask_stall -= 1
            cycle += 1


@pytest.mark.parametrize("block_ram", [False, True])
@pytest.mark.parametrize("latency", [1, 12])
@pytest.mark.parametrize("stalls", ALL_STALLS, ids=str)
def test_each_reader_gets_its_own_beats(stalls: Stalls, latency: int, block_ram: bool) -> None:
    dut = compiled(ReadArbiter, 32, 32, 4, block_ram=block_ram)
    of_a, of_b = requests(25, 0), requests(20, B_ADDRESS)
    memory = Memory(dut, 45, latency, stalls)
    data_a = Sink(dut.a.data, len(beats(of_a)), stalls, "a")
    data_b = Sink(dut.b.data, len(beats(of_b)), stalls, "b")
    simulate(
        dut,
        Source(dut.a.request, of_a, stalls, "ask a"),
        Source(dut.b.request, of_b, stalls, "ask b"),
        memory,
        data_a,
        data_b,
    )
    for sink, expected in ((data_a, beats(of_a)), (data_b, beats(of_b))):
        got = [(beat.data, beat.last, beat.error) for beat in sink.payloads]
        assert got == expected, stalls


def test_two_that_ask_are_granted_in_turn_one_a_cycle() -> None:
    dut = elaborated(ReadArbiter, 32, 32, 16)
    of_a, of_b = requests(20, 0, length=0), requests(20, B_ADDRESS, length=0)
    memory = Memory(dut, 40, 1, NO_STALLS)
    simulate(
        dut,
        Source(dut.a.request, of_a),
        Source(dut.b.request, of_b),
        memory,
        Sink(dut.a.data, 20),
        Sink(dut.b.data, 20),
    )
    assert [bool(address & B_ADDRESS) for address in memory.order] == [False, True] * 20
    assert memory.cycles == list(range(40))
    assert memory.beat_cycles == list(range(1, 41))


@pytest.mark.parametrize("stalls", ALL_STALLS, ids=str)
def test_a_stalled_port_is_shared_evenly_too(stalls: Stalls) -> None:
    dut = compiled(ReadArbiter, 32, 32, 4, block_ram=False)
    of_a, of_b = requests(20, 0, length=3), requests(20, B_ADDRESS, length=3)
    memory = Memory(dut, 40, 3, stalls)
    simulate(
        dut,
        Source(dut.a.request, of_a),
        Source(dut.b.request, of_b),
        memory,
        Sink(dut.a.data, 80),
        Sink(dut.b.data, 80),
    )
    assert [bool(address & B_ADDRESS) for address in memory.order] == [False, True] * 20, stalls


@pytest.mark.parametrize("reader", ["a", "b"])
def test_one_that_asks_alone_has_the_whole_port_without_delay(reader: str) -> None:
    dut = elaborated(ReadArbiter, 32, 32, 16)
    alone = getattr(dut, reader)
    of = requests(10, 0x1000, length=3)
    memory = Memory(dut, 10, 1, NO_STALLS)
    ask, data = Source(alone.request, of), Sink(alone.data, 40)
    simulate(dut, ask, memory, data)
    assert ask.cycles == memory.cycles == list(range(10))
    assert data.cycles == memory.beat_cycles == list(range(1, 41))


def test_no_more_bursts_are_in_flight_than_it_can_remember() -> None:
    dut = compiled(ReadArbiter, 32, 32, 4, block_ram=False)

    async def bench(ctx: Any) -> None:
        shape = request(32)
        ctx.set(dut.a.request.payload, shape.const({"address": 64, "length": 0}))
        ctx.set(dut.a.request.valid, 1)
        ctx.set(dut.port.request.ready, 1)
        for cycle in range(8):
            assert ctx.get(dut.port.request.valid) == (cycle < 4)
            assert ctx.get(dut.a.request.ready) == (cycle < 4)
            await ctx.tick()

    simulate(dut, bench)
