"""The host reaches every byte of the engine's memory, at the cost of a cycle each."""

import random
from typing import Any

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring

from bitlane_rtl.bus.shared_sram import SharedSram
from bitlane_rtl.bus.storage import BlockRam
from support.rtl.bursts import BYTES, WORDS, Host, blocks, check_at_random, transfer_bursts
from support.rtl.streams import ALL_STALLS, Stalls, compiled, simulate


class Circuit(wiring.Component):
    def __init__(self, read_ports: int = 2, width: int = 8 * BYTES) -> None:
        self._width = width
        self.dut = SharedSram(32, width, WORDS, read_ports=read_ports)
        super().__init__({})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = self.dut
        m.submodules.storage = storage = BlockRam(WORDS, self._width)
        wiring.connect(m, self.dut.memory, storage.memory)
        return m


@pytest.mark.parametrize("read_ports", [1, 2])
@pytest.mark.parametrize("stalls", ALL_STALLS, ids=str)
def test_engine_and_host_reach_the_right_bytes(stalls: Stalls, read_ports: int) -> None:
    circuit = compiled(Circuit, read_ports)
    check_at_random(circuit, read_ports, stalls)


def test_the_host_never_waits_and_each_access_takes_one_cycle_from_the_engine() -> None:
    circuit = compiled(Circuit, read_ports=1)
    dut = circuit.dut
    host = Host(dut.host, [(0, None), (WORDS * BYTES - 1, 7), (1, None)], wait=10)
    ran = transfer_bursts(circuit, host, a=blocks(3, 0))
    assert host.cycles == [10, 11, 12]
    assert ran.a.cycles == [*range(1, 11), *range(14, 52)]


@pytest.mark.parametrize("width", [32, 64, 128])
def test_the_host_reaches_every_byte_of_a_beat(width: int) -> None:
    circuit = compiled(Circuit, read_ports=1, width=width)
    order = random.Random(width).sample(range(64), 64)
    writes = [(byte, byte + 1) for byte in order]
    host = Host(circuit.dut.host, [*writes, *((byte, None) for byte in range(64))])
    simulate(circuit, host)
    assert host.read == [*range(1, 65)]


def test_a_host_that_has_every_second_cycle_leaves_the_others() -> None:
    circuit = compiled(Circuit, read_ports=1)
    dut = circuit.dut

    async def host(ctx: Any) -> None:
        for cycle in range(64):
            ctx.set(dut.host.enable, cycle % 2 == 0)
            await ctx.tick()

    ran = transfer_bursts(circuit, host, write=blocks(2, 0))
    assert ran.beats.cycles == list(range(1, 64, 2))
