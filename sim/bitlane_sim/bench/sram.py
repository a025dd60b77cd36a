"""The engine on one single-port memory, as on a small board: a system of its own to measure."""

from dataclasses import replace
from typing import Any

import numpy as np
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from bitlane.driver import encode
from bitlane_rtl.abi import RING_OFFSET, Op, register
from bitlane_rtl.bus import SramPort
from bitlane_rtl.configurations import full
from bitlane_rtl.engine import Engine
from bitlane_rtl.ports import ControlPort
from cppsim import StorageAccess, StoragePort
from cppsim.circuits import AnyModel
from cppsim.errors import SimulationError

from ..commands import move
from ..device.simulator import load_evaluator

_MEMORY = 1 << 16
_STORAGE = [
    StoragePort(
        buffer="memory",
        access=StorageAccess.READ,
        enable="read",
        address="address",
        data="read_data",
    ),
    StoragePort(
        buffer="memory",
        access=StorageAccess.WRITE,
        enable="write",
        address="address",
        data="write_data",
        mask="strobe",
    ),
]


class SramSystem(wiring.Component):
    """An `Engine` and a memory with one port, whose storage the evaluator serves.

    Parameters
    ----------
    width
        Bits in a beat and in a word of the memory.

    Members
    -------
    control : ``Out(ControlPort())``
    irq : ``Out(1)``
    read, write, address, read_data, write_data, strobe
        The memory's port.
    """

    control: Any
    irq: Signal
    read: Signal
    write: Signal
    address: Signal
    read_data: Signal
    write_data: Signal
    strobe: Signal

    def __init__(self, width: int) -> None:
        self._width = width
        words = _MEMORY * 8 // width
        super().__init__(
            {
                "control": Out(ControlPort()),
                "irq": Out(1),
                "read": Out(1),
                "write": Out(1),
                "address": Out(range(words)),
                "read_data": In(width),
                "write_data": Out(width),
                "strobe": Out(width // 8),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        configuration = replace(full(self._width), memory_bytes=_MEMORY)
        words = _MEMORY * 8 // self._width
        m.submodules.engine = engine = Engine(configuration)
        m.submodules.sram = sram = SramPort(configuration.address_width, self._width, words)
        wiring.connect(m, wiring.flipped(self.control), engine.control)
        wiring.connect(m, engine.read_a, sram.a)
        wiring.connect(m, engine.read_b, sram.b)
        wiring.connect(m, engine.write, sram.write)
        memory = sram.memory
        m.d.comb += [
            self.irq.eq(engine.irq),
            self.read.eq(memory.enable & (memory.strobe == 0)),
            self.write.eq(memory.enable & (memory.strobe != 0)),
            self.address.eq(memory.address),
            memory.read_data.eq(self.read_data),
            self.write_data.eq(memory.write_data),
            self.strobe.eq(memory.strobe),
        ]
        return m


def three_streams(width: int, evaluator: str) -> float:
    """Words written a cycle by a XOR of 16 KiB, from its doorbell to its interrupt.

    Raises ``SimulationError`` if the result is wrong or does not come.
    """
    size = _MEMORY // 4
    memory = np.random.default_rng(0).integers(0, 256, _MEMORY, np.uint8)
    expected = memory[:size] ^ memory[size : 2 * size]
    run = load_evaluator(evaluator)(SramSystem(width), storage=_STORAGE, buffers={"memory": memory})
    try:
        words = encode(move(Op.XOR, size, 0, size, 2 * size), interrupt=True).tolist()
        writes = [(RING_OFFSET + 4 * number, word) for number, word in enumerate(words)]
        writes.append((register("INTERRUPT").offset, register("INTERRUPT")["ENABLE"].insert(1)))
        for offset, word in writes:
            _write(run, offset, word)
        run.step(50)
        start = run.cycles
        _write(run, register("DOORBELL").offset, 1)
        came = run.until("irq", 20 * size)
        cycles = run.cycles - start
    finally:
        run.close()
    if not came or not np.array_equal(memory[2 * size : 3 * size], expected):
        raise SimulationError("bench: XOR on the single-port memory went wrong")
    return size / (width // 8) / cycles


def _write(run: AnyModel, offset: int, word: int) -> None:
    run.set("control__address", offset)
    run.set("control__write_data", word)
    run.set("control__write", 1)
    run.step()
    run.set("control__write", 0)
    run.step()
