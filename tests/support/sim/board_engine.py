"""The engine and the memory of a board, without its line: for the cycles of its commands."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from bitlane_boards.board import Board, MemoryKind
from bitlane_boards.flow.top import BURSTS, SINGLE_PORT
from bitlane_rtl.abi import RECORD_BYTES, REGISTERS, RING_OFFSET, register
from bitlane_rtl.bus.banks import BankedMemory
from bitlane_rtl.bus.sdram.memory import SdramMemory
from bitlane_rtl.bus.sdram.part import SdramTiming
from bitlane_rtl.bus.sram import SramPort
from bitlane_rtl.bus.storage import BlockRam
from bitlane_rtl.engine import Engine
from bitlane_rtl.ports.read_arbiter import ReadArbiter
from bitlane_rtl.ports.signatures import ControlPort
from bitlane_rtl.ports.write_arbiter import WriteArbiter
from bitlane_sim.numpy_device.cycles import CounterValues
from cppsim import Model

_PAUSE = 20
"""Cycles until an SDRAM chip starts here: the times of its accesses are those of the board."""

_FIRST = register("BUSY_CYCLES").offset
_COUNTERS = [each.offset for each in REGISTERS if each.offset >= _FIRST]


class BoardEngine(wiring.Component):
    """The `Engine` of a board, with counters, on its memory; nobody else uses the memory."""

    def __init__(self, board: Board) -> None:
        self._board = board
        super().__init__({"control": Out(ControlPort())})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        board = self._board
        configuration = replace(board.configuration, counters=True)
        widths = configuration.address_width, configuration.data_width
        read_ports = 1 + configuration.two_ports
        m.submodules.engine = engine = Engine(configuration)
        wiring.connect(m, wiring.flipped(self.control), engine.control)
        memory: Any
        if board.sdram:
            timing = replace(SdramTiming.of(board.sdram, board.clock_hz), pause=_PAUSE)
            memory = SdramMemory(*widths, board.sdram, timing, read_ports=read_ports)
        elif board.memory is MemoryKind.BANKS:
            memory = BankedMemory(*widths, board.words, banks=board.banks, read_ports=read_ports)
        else:
            memory = SramPort(*widths, board.words, read_ports=read_ports)
            # The RAM of iCE40 UP cannot be simulated; block RAM has the same times.
            m.submodules.storage = storage = BlockRam(board.words, configuration.data_width)
            wiring.connect(m, memory.memory, storage.memory)
        m.submodules.memory = memory
        read, write = engine.read_a, engine.write
        if board.ethernet or board.memory not in SINGLE_PORT:
            # The board's bridge shares both ports.
            m.submodules.reads = reads = ReadArbiter(*widths, BURSTS[board.memory])
            m.submodules.writes = writes = WriteArbiter(*widths, BURSTS[board.memory])
            wiring.connect(m, read, reads.a)
            wiring.connect(m, write, writes.a)
            read, write = reads.port, writes.port
        wiring.connect(m, read, memory.a)
        wiring.connect(m, write, memory.write)
        if configuration.two_ports:
            wiring.connect(m, engine.read_b, memory.b)
        return m


class SimulatedBoard:
    """A compiled `BoardEngine`, which executes jobs one after the other.

    ``due``: the cycles from each DOORBELL to the next refresh.
    """

    def __init__(self, board: Board, due: int = 1) -> None:
        self._run = Model(BoardEngine(board))
        self._slots = board.configuration.slots
        self._index = 0
        self._interval, self.due = 0, due
        if board.sdram:
            self._interval = SdramTiming.of(board.sdram, board.clock_hz).refresh_interval
        self._run.step(1000)

    def close(self) -> None:
        self._run.close()

    def execute(self, records: Sequence[Sequence[int]]) -> CounterValues:
        """Execute ``records`` by one DOORBELL, `due` cycles before a refresh. Return the counters.

        The refresh before has closed all rows.
        """
        run = self._run
        for words in records:
            slot = RING_OFFSET + self._index % self._slots * RECORD_BYTES
            for number, word in enumerate(words):
                self._write(slot + 4 * number, word)
            self._index += 1
        self._write(register("COUNTERS_CLEAR").offset, 1)
        run.step(20)
        if interval := self._interval:
            run.step(3 * interval - self.due - (run.cycles - 1) % interval)
        self._write(register("DOORBELL").offset, self._index % (1 << 16))
        status = register("STATUS")
        for _ in range(100_000):
            if self._read(status.offset) & 1 == 0:
                break
            run.step(20)
        assert self._read(status.offset) & 3 == 0, "no fault, and idle"
        return CounterValues(*map(self._read, _COUNTERS))

    def _write(self, offset: int, word: int) -> None:
        run = self._run
        run.set("control__address", offset)
        run.set("control__write_data", word)
        run.set("control__write", 1)
        run.step()
        run.set("control__write", 0)

    def _read(self, offset: int) -> int:
        run = self._run
        run.set("control__address", offset)
        run.set("control__read", 1)
        run.step()
        run.set("control__read", 0)
        return run.get("control__read_data")
