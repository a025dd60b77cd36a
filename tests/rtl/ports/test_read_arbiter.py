"""Two readers share a port fairly, and each gets the beats that it asked for."""

import random
from typing import Any

import pytest

from bitlane_rtl.ports.read_arbiter import ReadArbiter
from bitlane_rtl.ports.signatures import request
from support.rtl.bursts import transfer_bursts
from support.rtl.memory import ReadServer
from support.rtl.streams import ALL_STALLS, Stalls, compiled, elaborated, simulate

B_ADDRESS = 0x8000_0000
"""Reader B's requests have this bit, reader A's do not."""
TURNS = [0, B_ADDRESS] * 20


def requests(count: int, base: int, length: int | None = None) -> list[dict[str, int]]:
    """Return bursts that begin a block of 16 words each."""
    rng = random.Random(base)
    return [
        {"address": base + 64 * index, "length": rng.randrange(16) if length is None else length}
        for index in range(count)
    ]


class Memory:
    """Words that hold their own address; number 13 of each block cannot be read."""

    beat_bytes = 4

    def read(self, address: int) -> tuple[int, bool]:
        return address, address // 4 % 16 == 13


def beats(of: list[dict[str, int]]) -> list[tuple[int, int, int]]:
    """Return data, last and error of all beats of some requests."""
    return [
        (entry["address"] + 4 * beat, beat == entry["length"], beat == 13)
        for entry in of
        for beat in range(entry["length"] + 1)
    ]


@pytest.mark.parametrize("block_ram", [False, True])
@pytest.mark.parametrize("latency", [1, 12])
@pytest.mark.parametrize("stalls", ALL_STALLS, ids=str)
def test_each_reader_gets_its_own_beats(stalls: Stalls, latency: int, block_ram: bool) -> None:
    dut = compiled(ReadArbiter, 32, 32, 4, block_ram=block_ram)
    of_a, of_b = requests(25, 0), requests(20, B_ADDRESS)
    memory = ReadServer(dut.port, Memory(), latency - 1, stalls)
    ran = transfer_bursts(dut, a=of_a, b=of_b, stalls=stalls, background=[memory])
    for sink, expected in ((ran.a, beats(of_a)), (ran.b, beats(of_b))):
        got = [(beat.data, beat.last, beat.error) for beat in sink.payloads]
        assert got == expected, stalls


def test_two_that_ask_are_granted_in_turn_one_a_cycle() -> None:
    dut = elaborated(ReadArbiter, 32, 32, 16)
    memory = ReadServer(dut.port, Memory())
    transfer_bursts(dut, a=requests(20, 0, 0), b=requests(20, B_ADDRESS, 0), background=[memory])
    assert [address & B_ADDRESS for _, address, _ in memory.requests] == TURNS
    assert [cycle for cycle, _, _ in memory.requests] == list(range(40))
    assert memory.beats == list(range(1, 41))


@pytest.mark.parametrize("stalls", ALL_STALLS, ids=str)
def test_a_stalled_port_is_shared_evenly_too(stalls: Stalls) -> None:
    dut = compiled(ReadArbiter, 32, 32, 4, block_ram=False)
    memory = ReadServer(dut.port, Memory(), 2, stalls)
    transfer_bursts(dut, a=requests(20, 0, 3), b=requests(20, B_ADDRESS, 3), background=[memory])
    assert [address & B_ADDRESS for _, address, _ in memory.requests] == TURNS, stalls


@pytest.mark.parametrize("reader", ["a", "b"])
def test_one_that_asks_alone_has_the_whole_port_without_delay(reader: str) -> None:
    dut = elaborated(ReadArbiter, 32, 32, 16)
    memory = ReadServer(dut.port, Memory())
    ran = vars(transfer_bursts(dut, **{reader: requests(10, 0x1000, 3)}, background=[memory]))
    accepted = [cycle for cycle, _, _ in memory.requests]
    assert ran[f"ask_{reader}"].cycles == accepted == list(range(10))
    assert ran[reader].cycles == memory.beats == list(range(1, 41))


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
