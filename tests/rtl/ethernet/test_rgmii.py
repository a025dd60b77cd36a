"""Bytes cross the pins of RGMII as two nibbles, at the edges that its specification gives them."""

import random
import re
from typing import Any

from amaranth.back import rtlil
from amaranth.hdl import Fragment, Module
from amaranth.lib import io
from amaranth.sim import Simulator
from amaranth_boards.colorlight_5a75b_r7_0 import (
    Colorlight_5A75B_R70Platform,
)

from bitlane_rtl.ethernet.rgmii import RgmiiReceiver, RgmiiTransmitter
from support.ethernet.pins import PLATFORM

PERIOD = 8e-9


def ports(direction: str, *widths: int) -> list[io.SimulationPort]:
    return [io.SimulationPort(direction, width) for width in widths]


def simulate(circuit: Any, testbench: Any) -> None:
    simulator = Simulator(Fragment.get(circuit, PLATFORM))
    simulator.add_clock(PERIOD, phase=PERIOD)  # rises at every multiple of the period
    simulator.add_testbench(testbench)
    simulator.run()


def random_line(seed: int) -> list[tuple[int, int, int]]:
    rng = random.Random(seed)
    return [(rng.randrange(256), rng.randrange(2), rng.randrange(2)) for _ in range(200)]


def test_receiver() -> None:
    data, control = ports("i", 4, 1)
    circuit = RgmiiReceiver(data, control)
    line = random_line(1)
    received: list[tuple[int, int, int]] = []

    async def testbench(ctx: Any) -> None:
        await ctx.delay(0.75 * PERIOD)
        for byte, valid, error in line:
            for nibble, level in ((byte & 15, valid), (byte >> 4, valid ^ error)):
                ctx.set(data.i, nibble)
                ctx.set(control.i, level)
                await ctx.delay(0.5 * PERIOD)
            o = circuit.o
            received.append((ctx.get(o.data), ctx.get(o.valid), ctx.get(o.error)))

    simulate(circuit, testbench)
    # The edges of a byte are 0.25 and 0.75 of a period after its start; it is valid in the next.
    assert received[1:] == line[:-1]


def test_transmitter() -> None:
    data, control, clock = ports("o", 4, 1, 1)
    circuit = RgmiiTransmitter(data, control, clock)
    line = random_line(2)
    sent: list[tuple[int, int, int]] = []

    async def testbench(ctx: Any) -> None:
        i = circuit.i
        await ctx.delay(0.75 * PERIOD)
        for byte, valid, error in line:
            ctx.set(i.data, byte)
            ctx.set(i.valid, valid)
            ctx.set(i.error, error)
            halves = []
            for half in range(2):
                await ctx.delay(0.5 * PERIOD)
                assert ctx.get(clock.o) == 1 - half
                halves.append((ctx.get(data.o), ctx.get(control.o)))
            (low, first), (high, second) = halves
            sent.append((low | high << 4, first, first ^ second))

    simulate(circuit, testbench)
    assert sent == line


def test_pins_of_a_board_are_cells_with_a_double_data_rate() -> None:
    platform = Colorlight_5A75B_R70Platform()
    pins = platform.request("eth_rgmii", 0, dir="-")
    m = Module()
    m.submodules.receiver = RgmiiReceiver(pins.rx_data, pins.rx_ctl)
    m.submodules.transmitter = RgmiiTransmitter(pins.tx_data, pins.tx_ctl, pins.tx_clk)
    text = rtlil.convert(Fragment.get(m, platform), ports=[])
    cells = re.findall(r"cell \\(\w+) ", text)
    assert cells.count("IDDRX1F") == 5
    assert cells.count("ODDRX1F") == 6
