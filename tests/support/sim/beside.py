"""Circuits beside the device `numpy`: the same accesses for both, and their counters. No tests."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from bitlane.links import Link
from bitlane_boards.board import Board, MemoryKind
from bitlane_boards.flow import BURSTS, SINGLE_PORT
from bitlane_boards.predicted import predicted_boards
from bitlane_rtl.abi import (
    CONTROL_BASE,
    RECORD,
    RECORD_BYTES,
    REGISTERS,
    RING_OFFSET,
    WORD_BYTES,
    register,
)
from bitlane_rtl.bus import BankedMemory, BlockRam, SdramMemory, SramPort
from bitlane_rtl.engine import Engine
from bitlane_rtl.ports import ControlPort, ReadArbiter, WriteArbiter
from bitlane_rtl.sdram_part import SdramTiming
from bitlane_sim.circuit_options import configuration_of
from bitlane_sim.device import open_link as open_circuit
from bitlane_sim.numpy_device import CounterValues, PredictedCounters, SdramRows
from bitlane_sim.numpy_device import open_link as open_numpy
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


Records = Sequence[Sequence[int]]


def raw_record(fields: Mapping[str, int], **words: int) -> list[int]:
    """Return the words of a record, unsealed; those and the fields of CONTROL not named are 0."""
    control = sum(bits.insert(fields.get(bits.name, 0)) for bits in RECORD["CONTROL"].bits)
    return [(words | {"CONTROL": control}).get(name, 0) for name in RECORD]


def read_words(link: Link, offset: int, count: int = 1) -> list[int]:
    found: list[int] = link.read(CONTROL_BASE + offset, count * WORD_BYTES).view("<u4").tolist()
    return found


class PairedLinks:
    """A compiled circuit and the model of it, which get the same writes of the control window."""

    stalls: tuple[tuple[str, ...], int] = (("a_stalls", "b_stalls"), 4)
    """Counters that are compared within a tenth of the cycles, or so many cycles."""
    equal = "a_beats", "b_beats", "y_beats", "y_stalls"

    def __init__(self, options: str = "", latency: int = 0) -> None:
        self.options = f"{options}&latency={latency}".lstrip("&")
        self.configuration = configuration_of(f"sim?{options}".rstrip("?"))
        self.circuit = open_circuit(f"sim:compiled?{self.options}")
        self.model = open_numpy(f"numpy?{self.options}")
        self.links: tuple[Link, Link] = self.circuit, self.model
        self.index = 0
        self.log: list[str] = []

    def close(self) -> None:
        for link in self.links:
            link.close()

    def write(self, offset: int, *words: int) -> None:
        self.log.append(f"write {offset:#x}: {[hex(word) for word in words]}")
        for link in self.links:
            link.write(CONTROL_BASE + offset, np.array(words, "<u4"))

    def fill(self, words: Sequence[int], *, ring: bool) -> None:
        """Write a record into the next slot, and ring the doorbell at the end of a job."""
        self.write(RING_OFFSET + self.index % self.configuration.slots * RECORD_BYTES, *words)
        self.index += 1
        if ring:
            self.write(register("DOORBELL").offset, self.index % (1 << 16))

    def execute(self, records: Records) -> tuple[CounterValues, CounterValues]:
        """Submit ``records`` with one doorbell. Return the counters of both links."""
        self.write(register("COUNTERS_CLEAR").offset, 1)
        for number, words in enumerate(records, 1):
            self.fill(words, ring=number == len(records))
        for _ in range(20_000):
            self.circuit.simulator.step(50)
            if not read_words(self.circuit, register("STATUS").offset)[0] & 1:
                break
        first, count = register("BUSY_CYCLES").offset, len(CounterValues._fields)
        circuit, model = (CounterValues(*read_words(x, first, count)) for x in self.links)
        return circuit, model


def submit(
    counters: PredictedCounters, records: Records, wrote: Sequence[tuple[int, bool]] = ((32, True),)
) -> CounterValues:
    """Return the predicted counters of a job.

    ``wrote``: the words of each write before the job, and whether it was to the ring.
    """
    counters.clear()
    for words, ring in wrote:
        counters.wrote(words, ring=ring)
    counters.submitted(
        tuple(np.array(each, "<u4").tobytes().ljust(RECORD_BYTES, b"\0") for each in records)
    )
    return counters.counts()


EARLIER = (32, True), (20, False)
"""Writes after which the records have been in the ring for a while."""


class PairedBoard:
    """The simulated engine of a board on its memory, and the prediction of its counters.

    Stalls of a board without counters cannot be read. ``due``: cycles to the next refresh.
    """

    equal = "a_beats", "b_beats", "y_beats"

    def __init__(self, board: Board, due: int) -> None:
        self.options = f"{board.name}, refresh in {due}"
        self.memory = predicted_boards()[board.name].memory
        if isinstance(self.memory, SdramRows):
            self.memory = replace(self.memory, due=due)
        self.configuration = replace(board.configuration, counters=True)
        names = ("a_stalls", "b_stalls", "y_stalls") if board.configuration.counters else ()
        self.stalls: tuple[tuple[str, ...], int] = (names, 10)
        self._board = SimulatedBoard(board, due)
        self._counters = PredictedCounters(self.configuration, self.memory)
        self.close = self._board.close

    def execute(self, records: Records) -> tuple[CounterValues, CounterValues]:
        return self._board.execute(records), submit(self._counters, records, EARLIER)
