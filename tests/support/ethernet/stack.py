"""A `UdpStack` on a line, whose user sends each datagram back; in simulation with three clocks."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

import numpy as np
from amaranth.hdl import ClockDomain, Elaboratable, Module, Signal
from amaranth.lib import wiring
from numpy.typing import NDArray

import cppsim
from bitlane_rtl.ethernet.udp_stack import UdpStack
from support.ethernet.line import Burst, bursts_on, checked, gmii, on_line
from support.ethernet.packets import BOARD
from support.rtl.streams import Driven

PERIODS = {"rx": 8.0e-9, "tx": 8.0008e-9, "sync": 20e-9}
"""Seconds. The two clocks of the line differ by 100 ppm; the user's is slow."""


class Loop(Elaboratable):
    """A stack whose datagrams are sent back; with ``check``, it accepts those of the link alone."""

    def __init__(self, *, check: bool = False) -> None:
        self.stack = UdpStack(BOARD, check=check)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.stack = stack = self.stack
        wiring.connect(m, stack.received, stack.sent)
        return m


class LineBench:
    """Runs a circuit, which is compiled once, at its ``rx`` and ``tx``.

    ``sync``: the period of that clock; the others are those of PERIODS.
    """

    def __init__(self, circuit: Any, ports: Any, sync: float = PERIODS["sync"]) -> None:
        self._ports = ports
        self._cycle = Signal(32)
        m = Module()
        for name in PERIODS:
            m.domains += ClockDomain(name)
        m.submodules.circuit = circuit
        m.d.tx += self._cycle.eq(self._cycle + 1)
        self._simulator = cppsim.Simulator(m)
        for number, (domain, period) in enumerate((PERIODS | {"sync": sync}).items()):
            self._simulator.add_clock(period, phase=period * (0.3 + 0.1 * number), domain=domain)
        self._simulator.add_testbench(self._send)
        self._simulator.add_testbench(self._listen, background=True)
        self._ran = False

    def on_line(self, bursts: Sequence[Burst], after: int) -> list[Burst]:
        """Return what is sent from the reset on while ``bursts`` come, and ``after`` cycles."""
        self._line = gmii(bursts, after)
        self._heard: list[tuple[int, ...]] = []
        if self._ran:
            self._simulator.reset()
        self._ran = True
        self._simulator.run()
        return bursts_on(self._columns())

    async def _send(self, ctx: Any) -> None:
        rx = self._ports.rx
        drive, tick = Driven(ctx, rx.valid, rx.error, rx.data), ctx.tick("rx")
        columns = [self._line[name].tolist() for name in ("valid", "error", "data")]
        for values, cycles in groupby(zip(*columns, strict=True)):
            drive(*values)
            await tick.repeat(sum(1 for _ in cycles))

    async def _listen(self, ctx: Any) -> None:
        """Note the cycles in which ``tx`` is valid: number, byte and error."""
        tx = self._ports.tx
        tick = ctx.tick("tx").sample(tx.data, tx.error, tx.valid)
        while True:
            data, error, valid = await tick.until(tx.valid)
            cycle = int(ctx.get(self._cycle)) - 1
            while valid:
                self._heard.append((cycle, data, error, valid))
                *_, data, error, valid = await tick
                cycle += 1

    def _columns(self) -> dict[str, NDArray[Any]]:
        """Return the line ``tx`` in every cycle, up to the last that is valid."""
        cycle, *values = np.array(self._heard, int).reshape(-1, 4).T
        columns = np.zeros((3, cycle.max(initial=-1) + 1), np.uint8)
        columns[:, cycle] = values
        return dict(zip(("data", "error", "valid"), columns, strict=True))


class StackBench(LineBench):
    """Runs a `Loop`."""

    def __init__(self, *, check: bool = False) -> None:
        loop = Loop(check=check)
        super().__init__(loop, loop.stack)

    def run(self, bursts: Sequence[Burst], after: int = 4000) -> list[Burst]:
        """Return what the stack transmits while it receives ``bursts``, and ``after`` cycles."""
        return self.on_line(bursts, after)

    def answers(self, frames: Iterable[Any], idle: int = 600) -> list[bytes]:
        """Return the legal frames that answer ``frames`` or bursts, which come after a reset."""
        bursts = [x if isinstance(x, Burst) else on_line(bytes(x), idle) for x in frames]
        return [checked(burst) for burst in self.run(bursts)]
