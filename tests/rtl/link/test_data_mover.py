"""Movers access the memory once for each part of a request; a datagram passes if its CRC is right.

Parts are accessed in order, at any alignment. The CRC is zlib's.
"""

import random
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from amaranth.back import rtlil

from bitlane_rtl.abi import BEATS_PER_BLOCK, FRAME_DATA_BYTES, GOODBYE, Request
from bitlane_rtl.configuration import Configuration
from bitlane_rtl.link import Crc32, DatagramCheck, DataMover, WordMover
from cppsim import Model
from support.ethernet.datagrams import datagram_of, frames_in, goodbye
from support.ethernet.line import run
from support.rtl.memory import Memory, ReadServer, WriteServer
from support.rtl.streams import NO_STALLS, Sink, Source, Stalls, compiled, simulate
from support.seeds import seeds
from support.serial.frames import hello, random_request, read, request, with_crc, write

SIZE = 1 << 13
WIDTHS = [32, 64, 128]


@dataclass(frozen=True)
class Move:
    """A transfer; a WRITE has ``data``."""

    address: int
    size: int
    data: bytes | None = None

    @property
    def words(self) -> range:
        return range(self.address & ~3, self.address + self.size, 4)

    def payloads(self) -> list[dict[str, int]]:
        """Return the words to write. Bytes beside those to write are not 0."""
        first = self.address % 4
        data = (b"\xa5" * first + (self.data or b"")).ljust(4 * len(self.words), b"\xa5")
        return [
            {
                "data": int.from_bytes(data[at : at + 4], "little"),
                "strobe": sum(1 << n for n in range(4) if first <= at + n < first + self.size),
                "last": word == self.words[-1],
            }
            for at, word in zip(range(0, len(data), 4), self.words, strict=True)
        ]


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
        self.words: list[int] = []
        """The words that were read."""
        self.cycles: list[tuple[int, int, int]] = []
        """The cycles with ``start``, with the first word, and with the last one or ``done``."""
        self.answered: list[int] = []
        """The responses that came before the end of each transfer."""

    def run(self, moves: Sequence[Move]) -> None:
        """Make the transfers ``moves``."""
        transfer, rests = self.dut.transfer, self.stalls.lengths("moves")

        async def order(ctx: Any) -> None:
            for number, move in enumerate(moves):
                ctx.set(transfer.address, move.address)
                ctx.set(transfer.size_less_1, move.size - 1)
                ctx.set(transfer.write, move.data is not None)
                ctx.set(transfer.start, 1)
                await ctx.tick()
                ctx.set(transfer.start, 0)
                start, done = self.reads.cycle, move.data is None
                given = move.payloads()
                source = Source(transfer.words, given, self.stalls, f"words {number}")
                sink = Sink(transfer.read, len(move.words), self.stalls, f"words {number}", idle=0)
                side = sink if done else source
                await side.run(ctx)
                ctx.set(transfer.read.ready, 0)
                self.words += sink.bits
                last = side.cycles[-1]
                while not done:
                    _, _, done = await ctx.tick().sample(transfer.done)
                    last += 1
                self.cycles.append((start, start + 1 + side.cycles[0], start + 1 + last))
                self.answered.append(len(self.writes.responses))
                await ctx.tick().repeat(1 + next(rests))

        background = [self.reads, self.writes]
        simulate(self.dut, order, background=background, deadline=200_000)

    def check(self, moves: Sequence[Move]) -> None:
        """Make transfers, and compare answers, memory and bursts with what they must be."""
        model = self.memory.data.copy()
        bursts, read_bursts, written = [0], 0, 0
        expected: list[tuple[int, int]] = []
        for move in moves:
            place = slice(move.address, move.address + move.size)
            block = BEATS_PER_BLOCK * self.beat
            blocks = (place.stop - 1) // block - place.start // block + 1
            if move.data is None:
                for word in move.words:
                    inside = [place.start <= word + lane < place.stop for lane in range(4)]
                    mask = sum(0xFF << 8 * lane for lane in range(4) if inside[lane])
                    value = int.from_bytes(model[word : word + 4].tobytes(), "little")
                    expected.append((mask, value & mask))
                read_bursts += blocks
            else:
                model[place] = list(move.data)
                written += move.size
            bursts.append(bursts[-1] + (blocks if move.data is not None else 0))
        self.run(moves)
        found = [word & mask for word, (mask, _) in zip(self.words, expected, strict=True)]
        assert found == [word for _, word in expected]
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


def test_every_end_of_an_access(width: int) -> None:
    rng = random.Random(width)
    moves = []
    for address, size in edges(width):
        moves += [Move(address, size, rng.randbytes(size)), Move(address, size)]
    Bench(width).check(moves)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("seed", seeds(1, 5))
def test_all_sides_may_wait(width: int, stalls: Stalls, seed: int) -> None:
    rng = random.Random(seed)
    bench = Bench(width, stalls, latency=rng.choice([0, 12, 40]))
    moves = []
    for _ in range(60):
        size = rng.choice([rng.randint(1, 12), rng.randint(1, 512)])
        data = rng.choice([None, rng.randbytes(size)])
        moves.append(Move(rng.randrange(SIZE - size + 1), size, data))
    bench.check(moves)


class _Late(Stalls):
    """A side that is not ready until all beats of a READ have arrived."""

    def lengths(self, salt: str) -> Iterator[int]:
        yield 200
        while True:
            yield 0


@pytest.mark.parametrize("width", WIDTHS)
def test_beats_are_never_refused(width: int) -> None:
    bench = Bench(width)
    bench.stalls = _Late()
    bench.check([Move(width // 8 - 1, 512)])
    assert bench.reads.beats[-1] < bench.cycles[0][1]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("size", [4, 64, 480, 512])
def test_cycles(width: int, size: int) -> None:
    """With a memory that is always ready, whose beats and responses come after 12 cycles."""
    bench = Bench(width, latency=11)
    bench.check([Move(0, size), Move(0, size, bytes(size)), Move(1, size)])
    read, write, misaligned = bench.cycles
    assert bench.reads.requests[0][0] == 1
    words = size // 4
    assert (read[1] - read[0], read[2] - read[1]) == (12 + 4, words - 1)
    assert (write[1] - write[0], write[2] - write[1]) == (1, words - 1 + 12 + 2)
    assert misaligned[2] - misaligned[0] == read[2] - read[0] + 1


@pytest.mark.parametrize("width", WIDTHS)
def test_the_buffer_is_as_small_as_the_beats_of_a_read_allow(width: int) -> None:
    mover = DataMover(Configuration(data_width=width, address_width=16, memory_bytes=1 << 16))
    memories = re.findall(r"memory width (\d+) size (\d+)", rtlil.convert(mover))
    beats = FRAME_DATA_BYTES // (width // 8) + 1  # of data that are not aligned
    assert memories == [(f"{width}", f"{1 << beats.bit_length()}")]


# --- the mover of words ---------------------------------------------------------------------------


FIRST, WORDS = 0x1230, 20


@pytest.mark.parametrize("haste", [1.0, 0.4])
@pytest.mark.parametrize("write", [False, True])
def test_each_word_is_accessed_once(write: bool, haste: float) -> None:
    dut = compiled(WordMover, 16)
    rng = random.Random(1)
    data = [rng.getrandbits(32) for _ in range(WORDS)]
    seen: list[tuple[int, int, int]] = []
    moved: list[int] = []
    cycles = 0

    async def memory(ctx: Any) -> None:
        port = dut.memory
        access = (port.enable, port.address, port.strobe, port.write_data)
        while True:
            ready = rng.random() < haste
            ctx.set(port.ready, ready)
            *_, enable, address, strobe, word = await ctx.tick().sample(*access)
            ctx.set(port.read_data, rng.getrandbits(32))
            if enable and ready:
                seen.append((address, strobe, word if strobe else 0))
                if not strobe:
                    ctx.set(port.read_data, data[(address - FIRST) // 4])

    async def executor(ctx: Any) -> None:
        nonlocal cycles
        transfer = dut.transfer
        for number in range(WORDS):
            ctx.set(transfer.address, FIRST + 4 * number)
            ctx.set(transfer.words.p.data, data[number])
            ctx.set(transfer.words.p.strobe, number % 15 + 1)
            ctx.set(transfer.words.valid, write)
            ctx.set(transfer.read.ready, not write)
            done = 0
            while not done:
                sampled = ctx.tick().sample(
                    transfer.words.ready if write else transfer.read.valid, transfer.read.payload
                )
                *_, done, word = await sampled
                cycles += 1
            moved.append(word)
        ctx.set(transfer.words.valid, 0)
        ctx.set(transfer.read.ready, 0)
        await ctx.tick().repeat(4)

    simulate(dut, executor, background=[memory])
    assert [address for address, _, _ in seen] == [FIRST + 4 * n for n in range(WORDS)]
    if write:
        assert [(strobe, word) for _, strobe, word in seen] == [
            (n % 15 + 1, data[n]) for n in range(WORDS)
        ]
    else:
        assert moved == data
    if haste == 1.0:
        assert cycles == WORDS * (1 if write else 2)


SESSION = 0x01020304


@pytest.fixture(scope="module")
def model() -> Model:
    return Model(DatagramCheck())


def verdicts(model: Model, payloads: Sequence[bytes], gaps: random.Random | None) -> list[bool]:
    """Return whether each datagram is good. With ``gaps``, bytes do not follow each other."""
    byte, valid, reset = bytearray(), bytearray(), bytearray()
    ends = []
    for payload in payloads:
        byte.append(0)
        valid.append(0)
        reset.append(1)
        for each in payload:
            idle = gaps.choice([0, 0, 1, 3]) if gaps else 0
            byte += bytes([0xA5] * idle + [each])
            valid += bytes(idle) + b"\1"
            reset += bytes(idle + 1)
        ends.append(len(byte) + 1)
        byte += bytes(3)
        valid += bytes(3)
        reset += bytes(3)
    columns = {"byte": byte, "valid": valid, "reset": reset}
    inputs = {name: np.frombuffer(bytes(each), np.uint8) for name, each in columns.items()}
    good = run(model, inputs, ["good"])["good"]
    return [bool(good[end]) for end in ends]


def whole(*contents: bytes, session: int = SESSION) -> bytes:
    return datagram_of(session, contents)


GOOD = {
    "read": whole(read(1, 2, 3)),
    "write": whole(write(1, 2, b"abc")),
    "write of nothing": whole(write(1, 2, b"")),
    "hello": whole(hello(1, 2)),
    "goodbye": whole(goodbye(1)),
    "several": whole(*(write(n, n, bytes(range(n))) for n in range(20))),
    "unknown kinds": whole(*(request(1, kind, 2, 1023) for kind in (4, 8, 129, 130, 131, 255))),
    **{f"a write of {n}": whole(write(1, 2, b"\xff" * n)) for n in range(1020, 1024)},
    "a long read": whole(read(1, 2, 1023)),
    "full": whole(write(0, 0, bytes(512)), write(1, 0, bytes(512)), write(2, 0, bytes(416))),
    # The CRC looks like the head of a frame; these are those of a HELLO, GOODBYE and WRITE.
    **{
        f"CRC that looks like kind {kind}": next(
            payload
            for nonce in range(1 << 16)
            for payload in [whole(read(1, nonce, 3))]
            if payload[-3] == kind and payload[-1]
        )
        for kind in (Request.WRITE, Request.HELLO, GOODBYE)
    },
}
BAD = {
    "nothing": b"",
    "no frame": whole(),
    "half a frame": with_crc(whole(read(1, 2, 3))[:8]),
    "data missing": with_crc(whole(write(1, 2, b"abcde"))[:-8]),
    "data too long": with_crc(whole(write(1, 2, b"abcde"))[:-4] + bytes(4)),
    "a byte more": with_crc(whole(read(1, 2, 3))[:-4] + b"\0"),
    "a byte less": with_crc(whole(read(1, 2, 3))[:-5]),
    "data at an offset, a word too short": whole(request(1, Request.WRITE, 3, 2) + bytes(4)),
    "data at an offset, a word too long": whole(request(1, Request.WRITE, 3, 1) + bytes(8)),
    "SESSION 0": whole(read(1, 2, 3), session=0),
    "a HELLO before a read": whole(hello(1, 2), read(2, 2, 4)),
    "a HELLO behind a read": whole(read(1, 2, 4), hello(2, 2)),
    "a GOODBYE before a read": whole(goodbye(1), read(2, 2, 4)),
    "a GOODBYE behind a write": whole(write(1, 2, b"abcd"), goodbye(2)),
    **{
        f"kind {kind} of SIZE {size}": whole(request(1, kind, 2, size))
        for kind in (Request.HELLO, GOODBYE)
        for size in (1, 256, 512, 1023)
    },
}


@pytest.mark.parametrize("gaps", [None, random.Random(1)])
def test_kinds_of_datagrams(model: Model, gaps: random.Random | None) -> None:
    payloads = [*GOOD.values(), *BAD.values()]
    rng = random.Random(2)
    order = rng.choices(range(len(payloads)), k=400)
    found = verdicts(model, [payloads[place] for place in order], gaps)
    names = [*GOOD, *BAD]
    verdict = {(names[place], good) for place, good in zip(order, found, strict=True)}
    assert verdict == {*((name, True) for name in GOOD), *((name, False) for name in BAD)}


def test_a_write_needs_its_data(model: Model) -> None:
    payloads = [whole(request(1, Request.WRITE, 2, size)) for size in range(1024)]
    assert verdicts(model, payloads, None) == [True, *[False] * 1023]


def test_every_wrong_bit_is_noticed(model: Model) -> None:
    payload = whole(write(1, 2, b"abcdef"), read(2, 3, 4))
    damaged = [
        (int.from_bytes(payload, "little") ^ 1 << bit).to_bytes(len(payload), "little")
        for bit in range(8 * len(payload))
    ]
    assert not any(verdicts(model, damaged, None))


@pytest.mark.parametrize("seed", seeds(3, 30))
def test_random_datagrams_with_a_right_crc(model: Model, seed: int) -> None:
    """Headers are mutated, bytes removed or added, and the CRC computed anew."""
    rng = random.Random(seed)
    payloads = []
    for _ in range(500):
        contents = [random_request(rng, n, 30) for n in range(rng.randrange(1, 5))]
        content = bytearray(whole(*contents)[:-4])
        for _ in range(rng.randrange(3)):
            place = rng.randrange(len(content))
            choice = rng.randrange(4)
            if choice == 0:
                content[place] = rng.choice([0, 1, 2, 3, 4, rng.randrange(256)])
            elif choice == 1:
                del content[place & ~3 :][: rng.choice([4, 8])]
            elif choice == 2:
                content[place & ~3 : place & ~3] = rng.randbytes(rng.choice([1, 4, 4, 8]))
            elif len(content) > 8:
                content[5] = rng.choice([1, 2, 3])
        payloads.append(with_crc(bytes(content)))
    expected = [frames_in(payload) is not None for payload in payloads]
    assert verdicts(model, payloads, None) == expected
    assert 50 < sum(expected) < 450


# --- the CRC of words -----------------------------------------------------------------------------


@pytest.mark.parametrize("width", [8, 16, 32])
def test_random_words(width: int) -> None:
    """Some cycles have no word, and some words are ignored because the CRC is cleared."""
    rng = random.Random(width)
    cycles = 500
    words = [rng.getrandbits(width) for _ in range(cycles)]
    valid = [rng.random() < 0.7 for _ in range(cycles)]
    clear = [rng.random() < 0.05 for _ in range(cycles)]
    found = run(
        Model(Crc32(width)),
        {
            "data": np.array(words, np.uint32),
            "valid": np.array(valid, np.uint8),
            "clear": np.array(clear, np.uint8),
        },
        ["crc"],
    )["crc"]
    covered, lengths = b"", set()
    for cycle, word in enumerate(words):
        assert int(found[cycle]) == zlib.crc32(covered), f"cycle {cycle}"
        covered += word.to_bytes(width // 8, "little") if valid[cycle] else b""
        covered = b"" if clear[cycle] else covered
        lengths.add(len(covered))
    assert max(lengths) >= 20 * width // 8
