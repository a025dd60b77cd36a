"""The mover reads and writes exactly the bytes of a request, at any address, in few bursts."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any

import numpy as np
import pytest

from bitlane_rtl.abi import BEATS_PER_BLOCK
from bitlane_rtl.configuration import Configuration
from bitlane_rtl.link.data_mover import DataMover
from support.ethernet.datagrams import padded
from support.rtl.memory import Memory, ReadServer, WriteServer
from support.rtl.streams import ALL_STALLS, NO_STALLS, Sink, Source, Stalls, compiled, simulate
from support.seeds import seeds

SIZE = 1 << 13
WIDTHS = [32, 64, 128]


@dataclass(frozen=True)
class Move:
    """A transfer; a WRITE has ``data``."""

    address: int
    size: int
    data: bytes | None = None
    execute: bool = True


def words(data: bytes) -> list[int]:
    return [int.from_bytes(data[first : first + 4], "little") for first in range(0, len(data), 4)]


class Counted(Memory):
    """A memory that counts the bytes that are written."""

    written = 0

    def write(self, address: int, value: int, strobe: int) -> bool:
        self.written += strobe.bit_count()
        return super().write(address, value, strobe)


class Bench:
    """A mover between words and a memory."""

    def __init__(self, width: int, stalls: Stalls = NO_STALLS, latency: int = 0) -> None:
        self.dut = compiled(
            DataMover, Configuration(data_width=width, address_width=16, memory_bytes=1 << 16)
        )
        self.beat = width // 8
        content = np.frombuffer(random.Random(width).randbytes(SIZE), np.uint8).copy()
        self.memory = Counted(content, self.beat)
        self.reads = ReadServer(self.dut.read, self.memory, latency, stalls)
        self.writes = WriteServer(self.dut.write, self.memory, latency, stalls)
        self.stalls = stalls
        self.times: list[tuple[int, int]] = []
        """The cycles with the first ``valid`` and with ``done`` of each transfer."""
        self.answered: list[int] = []
        """The responses that came before each ``done``."""

    def run(self, moves: Sequence[Move], fill: int = 0) -> bytes:
        """Make transfers, and return the answers. Bytes behind data to write are ``fill``."""
        to_write = [move.data for move in moves if move.data is not None]
        filled = [data + bytes([fill]) * (-len(data) % 4) for data in to_write]
        self.source = Source(self.dut.i, words(b"".join(filled)), self.stalls)
        expected = [move.size for move in moves if move.data is None]
        ends = [last for size in expected for last in [*[0] * ((size - 1) // 4), 1]]
        self.sink = Sink(self.dut.o, len(ends), self.stalls)

        async def order(ctx: Any) -> None:
            cycle, transfer = 0, self.dut.transfer
            for move in moves:
                ctx.set(transfer.address, move.address)
                ctx.set(transfer.size_less_1, move.size - 1)
                ctx.set(transfer.write, move.data is not None)
                ctx.set(transfer.execute, move.execute)
                ctx.set(transfer.valid, 1)
                first, done = cycle, False
                while not done:
                    _, _, done = await ctx.tick().sample(transfer.done)
                    cycle += 1
                self.times.append((first, cycle - 1))
                self.answered.append(len(self.writes.responses))
                ctx.set(transfer.valid, 0)
                await ctx.tick()
                cycle += 1

        simulate(
            self.dut,
            order,
            self.source,
            self.sink,
            background=[self.reads, self.writes],
            deadline=200_000,
        )
        assert [word["last"] for word in self.sink.payloads] == ends
        return b"".join(word["data"].to_bytes(4, "little") for word in self.sink.payloads)

    def check(self, moves: Sequence[Move], fill: int = 0) -> None:
        """Make transfers, and compare answers, memory and bursts with what they must be."""
        model = self.memory.data.copy()
        answers, bursts, read_bursts, written = [], [0], 0, 0
        for move in moves:
            place = slice(move.address, move.address + move.size)
            block = BEATS_PER_BLOCK * self.beat
            blocks = (place.stop - 1) // block - place.start // block + 1
            if move.data is None:
                answers.append(padded(model[place].tobytes()))
                read_bursts += blocks
            elif move.execute:
                model[place] = list(move.data)
                written += move.size
            bursts.append(bursts[-1] + (blocks if move.data is not None and move.execute else 0))
        assert self.run(moves, fill) == b"".join(answers)
        assert self.memory.data.tobytes() == model.tobytes()
        assert self.memory.written == written, "more was written than asked for"
        assert (len(self.reads.requests), len(self.writes.requests)) == (read_bursts, bursts[-1])
        assert self.answered == bursts[1:], "a WRITE was done before its response"


def edges(width: int) -> Iterator[tuple[int, int]]:
    """Yield the addresses and sizes of accesses whose ends are all bytes of beats and blocks."""
    beat = width // 8
    block = BEATS_PER_BLOCK * beat
    for offset in range(beat):
        yield from ((offset, size) for size in range(1, 2 * beat + 6))
        for before, behind in ((1, 0), (1, 1), (beat + 1, beat - 1), (7, 2 * beat + 3)):
            yield 2 * block - before - offset, before + offset + behind
    for size in (511, 512):
        for offset in (0, 1, beat - 1, block - 1):
            yield block + offset, size
    yield SIZE - 512, 512
    yield SIZE - 1, 1


@pytest.mark.parametrize("width", WIDTHS)
def test_every_end_of_an_access(width: int) -> None:
    rng = random.Random(width)
    moves = []
    for address, size in edges(width):
        moves += [Move(address, size, rng.randbytes(size)), Move(address, size)]
    Bench(width).check(moves, fill=0xFF)


def random_move(rng: random.Random) -> Move:
    size = rng.choice([rng.randint(1, 12), rng.randint(1, 512)])
    address = rng.randrange(SIZE - size + 1)
    if rng.random() < 0.5:
        return Move(address, size)
    return Move(address, size, rng.randbytes(size), execute=rng.random() < 0.8)


@pytest.mark.parametrize("stalls", ALL_STALLS, ids=["full", "halves", "long"])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("seed", seeds(1, 5))
def test_all_sides_may_wait(width: int, stalls: Stalls, seed: int) -> None:
    rng = random.Random(seed)
    bench = Bench(width, stalls, latency=rng.choice([0, 12, 40]))
    bench.check([random_move(rng) for _ in range(60)], fill=0xFF)


@pytest.mark.parametrize("width", WIDTHS)
def test_dropped_data(width: int) -> None:
    """A WRITE that is refused may have any SIZE below 1,024 and any address."""
    rng = random.Random(1)
    moves = [
        Move(address, size, rng.randbytes(size), execute=False)
        for size in (1, 3, 4, 5, 512, 513, 1020, 1021, 1022, 1023)
        for address in (0, 1, 3, 0xFFFF)
    ]
    Bench(width).check([*moves, Move(5, 9, b"executed!"), Move(0, 32)])


class _Late(Stalls):
    """A side that is not ready until all beats of a READ have arrived."""

    def lengths(self, salt: str) -> Iterator[int]:
        return chain([200], repeat(0))


@pytest.mark.parametrize("width", WIDTHS)
def test_beats_are_never_refused(width: int) -> None:
    bench = Bench(width)
    bench.stalls = _Late()
    bench.check([Move(width // 8 - 1, 512)])
    assert bench.reads.beats[-1] < bench.sink.cycles[0]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("size", [4, 64, 480, 512])
def test_cycles(width: int, size: int) -> None:
    """With a memory that is always ready, whose beats and responses come after 12 cycles."""
    bench = Bench(width, latency=11)
    bench.check([Move(0, size), Move(0, size, bytes(size)), Move(1, size)])
    read, write, misaligned = (done - asked for asked, done in bench.times)
    assert bench.reads.requests[0][0] == 1
    assert read == 12 + 5 + size // 4
    assert write == 12 + 2 + size // 4
    assert misaligned == read + 1
