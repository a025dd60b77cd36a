"""A `UdpStack` on a line, whose user sends each datagram back; in simulation with three clocks."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from amaranth.hdl import ClockDomain, Elaboratable, Module
from amaranth.lib import wiring

import cppsim
from bitlane_rtl.ethernet.udp_stack import UdpStack
from support.ethernet.line import Burst, bursts_on, gmii
from support.ethernet.packets import BOARD
from support.rtl.streams import Driven

PERIODS = {"rx": 8.0e-9, "tx": 8.0008e-9, "sync": 20e-9}
"""Seconds. The two clocks of the line differ by 100 ppm; the user's is slow."""


class Loop(Elaboratable):
    """A stack whose datagrams are sent back."""

    def __init__(self) -> None:
        self.stack = UdpStack(BOARD)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for name in PERIODS:
            m.domains += ClockDomain(name)
        m.submodules.stack = stack = self.stack
        wiring.connect(m, stack.received, stack.sent)
        return m


class LineBench:
    """Runs a circuit, which is compiled once, at its ``rx`` and ``tx``.

    ``sync``: the period of that clock; the others are those of PERIODS.
    """

    def __init__(self, circuit: Any, ports: Any, sync: float = PERIODS["sync"]) -> None:
        self._ports = ports
        self._simulator = cppsim.Simulator(circuit)
        for number, (domain, period) in enumerate((PERIODS | {"sync": sync}).items()):
            self._simulator.add_clock(period, phase=period * (0.3 + 0.1 * number), domain=domain)
        self._simulator.add_testbench(self._send)
        self._simulator.add_testbench(self._listen, background=True)
        self._ran = False

    def on_line(self, bursts: Sequence[Burst], after: int) -> list[Burst]:
        """Return what is sent from the reset on while ``bursts`` come, and ``after`` cycles."""
        self._line = gmii(bursts, after)
        self._heard: dict[str, list[int]] = {"data": [], "valid": [], "error": []}
        if self._ran:
            self._simulator.reset()
        self._ran = True
        self._simulator.run()
        return bursts_on({name: np.array(column) for name, column in self._heard.items()})

    async def _send(self, ctx: Any) -> None:
        rx = self._ports.rx
        drive, tick = Driven(ctx, rx.valid, rx.error, rx.data), ctx.tick("rx")
        columns = [self._line[name].tolist() for name in ("valid", "error", "data")]
        for valid, error, data in zip(*columns, strict=True):
            drive(valid, error, data)
            await tick
        self.dropped = int(ctx.get(self._ports.dropped))

    async def _listen(self, ctx: Any) -> None:
        tx = self._ports.tx
        async for *_, data, valid, error in ctx.tick("tx").sample(tx.data, tx.valid, tx.error):
            self._heard["data"].append(data)
            self._heard["valid"].append(valid)
            self._heard["error"].append(error)


class StackBench(LineBench):
    """Runs a `Loop`."""

    def __init__(self) -> None:
        loop = Loop()
        super().__init__(loop, loop.stack)

    def run(self, bursts: Sequence[Burst], after: int = 4000) -> list[Burst]:
        """Return what the stack transmits while it receives ``bursts``, and ``after`` cycles."""
        return self.on_line(bursts, after)
