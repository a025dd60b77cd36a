"""Memory behind an SDRAM chip: what of its peak streams get, refresh included. Compiled only."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from numpy.typing import NDArray

from bitlane.driver import encode
from bitlane_rtl.abi import BEATS_PER_BLOCK, RING_OFFSET, Op, register
from bitlane_rtl.bus import SdramMemory, SdramPins
from bitlane_rtl.configurations import full
from bitlane_rtl.engine import Engine
from bitlane_rtl.ports import ControlPort
from bitlane_rtl.sdram_part import AS4C16M16SA_7, EM638325_6H, SdramPart, SdramTiming
from bitlane_sim.bench.contract import Row
from bitlane_sim.commands import move
from cppsim.errors import SimulationError

from .model import CircuitModel
from .sdram import SdramChip, SdramModel, SplitPins

CLOCK_HZ = 100_000_000
_SIZE = 1 << 18
_PART = AS4C16M16SA_7
_ADDRESS_BITS = (_PART.size - 1).bit_length()


@dataclass(frozen=True, slots=True)
class Transfer:
    """Words of the chip that a job transferred, and its cycles."""

    words: int
    cycles: int

    @property
    def efficiency(self) -> float:
        """Return the share of the chip's peak rate, which is a word a cycle."""
        return self.words / self.cycles


class SdramSystem(wiring.Component):
    """An `Engine` on a chip.

    Members
    -------
    control : ``Out(ControlPort())``
    irq : ``Out(1)``
    sdram : ``Out(SdramPins(part))``
    """

    control: Any
    irq: Signal
    sdram: Any

    def __init__(self, width: int, part: SdramPart) -> None:
        address_bits = (part.size - 1).bit_length()
        self._part = part
        self._configuration = replace(
            full(width), address_width=address_bits, memory_bytes=part.size
        )
        super().__init__(
            {
                "control": Out(ControlPort()),
                "irq": Out(1),
                "sdram": Out(SdramPins(part)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        configuration, part = self._configuration, self._part
        timing = SdramTiming.of(part, CLOCK_HZ)
        m.submodules.engine = engine = Engine(configuration)
        m.submodules.memory = memory = SdramMemory(
            configuration.address_width, configuration.data_width, part, timing
        )
        wiring.connect(m, wiring.flipped(self.control), engine.control)
        wiring.connect(m, engine.read_a, memory.a)
        wiring.connect(m, engine.read_b, memory.b)
        wiring.connect(m, engine.write, memory.write)
        wiring.connect(m, memory.pins, wiring.flipped(self.sdram))
        m.d.comb += self.irq.eq(engine.irq)
        return m


class _Streams(wiring.Component):
    """Readers that ask for blocks, one after the other, and take every beat.

    ``first``: byte of each one's first block. ``done`` once each has read ``blocks``; ``go`` lets
    them begin.
    """

    go: Signal
    done: Signal
    sdram: Any

    def __init__(self, width: int, blocks: int, first: tuple[int, ...]) -> None:
        self._width = width
        self._blocks = blocks
        self._first = first
        super().__init__({"go": In(1), "done": Out(1), "sdram": Out(SdramPins(_PART))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        timing = SdramTiming.of(_PART, CLOCK_HZ)
        readers = len(self._first)
        memory = SdramMemory(_ADDRESS_BITS, self._width, _PART, timing, read_ports=readers)
        m.submodules.memory = memory
        wiring.connect(m, memory.pins, wiring.flipped(self.sdram))
        finished = []
        for name, first in zip(("a", "b"), self._first, strict=False):
            finished.append(self._read(m, memory, name, first))
        m.d.comb += self.done.eq(self.go & Cat(finished).all())
        return m

    def _read(self, m: Module, memory: SdramMemory, name: str, first: int) -> Signal:
        port = getattr(memory, name)
        asked, come = Signal(range(self._blocks + 1)), Signal(range(self._blocks + 1))
        block = BEATS_PER_BLOCK * self._width // 8
        finished = Signal()
        m.d.comb += [
            port.request.valid.eq(self.go & (asked != self._blocks)),
            port.request.p.address.eq(first + block * asked),
            port.request.p.length.eq(BEATS_PER_BLOCK - 1),
            port.data.ready.eq(1),
            finished.eq(come == self._blocks),
        ]
        m.d.sync += [
            asked.eq(asked + (port.request.valid & port.request.ready)),
            come.eq(come + (port.data.valid & port.data.p.last)),
        ]
        return finished


@contextmanager
def powered(
    component: wiring.Component, stops: str, part: SdramPart = _PART
) -> Iterator[SdramModel]:
    """``component`` with a chip that has been started. ``stops`` is a port that is low until then.

    Raises ``SimulationError``.
    """
    model = SdramModel(CircuitModel(SplitPins(component)), part, CLOCK_HZ)
    try:
        timing = SdramTiming.of(part, CLOCK_HZ)
        model.run_until(stops, timing.pause + 100)
        yield model
    finally:
        model.close()


def placed(chip: SdramChip, data_width: int, first: int, count: int) -> NDArray[np.int64]:
    """Return the positions of ``count`` words from byte ``first`` on in ``chip.words``, flat."""
    (banks, rows, columns), width = chip.words.shape, chip.part.width
    number = first * 8 // width + np.arange(count)
    block = BEATS_PER_BLOCK * data_width // width
    above = number // block // banks
    bank, row, column = (
        number // block % banks,
        above // (columns // block),
        above % (columns // block) * block + number % block,
    )
    return (bank * rows + row) * columns + column


def reads(width: int, size: int, first: tuple[int, ...]) -> Transfer:
    """As many readers as ``first`` has addresses, each of ``size`` bytes from there on."""
    blocks = size // (BEATS_PER_BLOCK * width // 8)
    with powered(_Streams(width, blocks, first), "done") as model:
        model.set("go", 1)
        start = model.chip.counts.edges
        if not model.run_until("done", 8 * size * len(first)):
            raise SimulationError("bench: the readers do not come to an end")
        words = len(first) * size * 8 // _PART.width
        assert model.chip.counts.words_read == words
        return Transfer(words, model.chip.counts.edges - start)


def logic(width: int, op: Op, size: int, part: SdramPart = _PART) -> Transfer:
    """``op`` on ``size`` bytes, its operands and output one behind the other, from its doorbell to
    its interrupt.

    Raises ``SimulationError`` if the result is wrong or does not come.
    """
    random = np.random.default_rng(0)
    count = size * 8 // part.width
    with powered(SdramSystem(width, part), "irq", part) as model:
        flat = model.chip.words.reshape(-1)
        a, b, y = (placed(model.chip, width, first, count) for first in (0, size, 2 * size))
        flat[a] = random.integers(0, 1 << part.width, count)
        flat[b] = random.integers(0, 1 << part.width, count)
        record = encode(move(op, size, 0, size if op.reads_b else None, 2 * size), interrupt=True)
        for number, word in enumerate(record.tolist()):
            _write(model, RING_OFFSET + 4 * number, word)
        enable = register("INTERRUPT")
        _write(model, enable.offset, enable["ENABLE"].insert(1))
        model.run_until("irq", 50)
        before = model.chip.counts
        _write(model, register("DOORBELL").offset, 1)
        came = model.run_until("irq", 20 * size)
        cycles = model.chip.counts.edges - before.edges
        # The engine raises its interrupt while the last words are still in flight.
        for _ in range(16):
            model.run_until("irq", 1)
        after = model.chip.counts
        right = flat[y] == (
            flat[a] ^ flat[b] if op is Op.XOR else flat[a] ^ ((1 << part.width) - 1)
        )
        if not came or not right.all():
            raise SimulationError(f"bench: {op.name} on SDRAM went wrong")
    words = after.words_read - before.words_read + after.words_written - before.words_written
    return Transfer(words, cycles)


def sdram_rows(width: int) -> Iterator[Row]:
    """Yield the contract's rows of memory behind an SDRAM chip, for ``width`` bits.

    The chip runs at 100 MHz and has words of 16 bits unless the row names others.
    Raises ``SimulationError`` without a C++ compiler, or if a result is wrong.
    """

    def row(work: str, goal: float, transfer: Transfer) -> Row:
        return Row(work, width, "word/cycle", 1.0, goal, None, transfer.efficiency)

    yield row("256 KiB read from SDRAM, with refresh", 0.90, reads(width, _SIZE, (0,)))
    two = reads(width, _SIZE, (0, 4 * _SIZE))
    yield row("two times 256 KiB read from SDRAM, with refresh", 0.90, two)
    work = "256 KiB XOR on SDRAM, all three streams, with refresh"
    yield row(work, 0.80, logic(width, Op.XOR, _SIZE))
    work = "256 KiB XOR on SDRAM of 32 bits without masks, with refresh"
    yield row(work, 0.80, logic(width, Op.XOR, _SIZE, EM638325_6H))


def _write(model: SdramModel, offset: int, word: int) -> None:
    model.set("control__address", offset)
    model.set("control__write_data", word)
    model.set("control__write", 1)
    model.run_until("irq", 1)
    model.set("control__write", 0)
