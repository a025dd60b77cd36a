"""Bursts for tests of memories behind the engine's ports, and a host that accesses them by bytes.

Words of ``BYTES`` bytes; word ``i`` starts as ``filled(i)``, if the test fills the memory.
"""

import random
from collections.abc import Iterable
from typing import Any

from support.rtl.streams import NO_STALLS, Sink, Source, Stalls, simulate

__all__ = [
    "BASE",
    "BYTES",
    "WORDS",
    "Host",
    "beats_to_write",
    "blocks",
    "bursts",
    "check_at_random",
    "expected_words",
    "filled",
    "lasts_of",
    "merged",
    "read_words",
    "words_of",
]

WORDS = 256
BYTES = 4
BASE = 0x4000_0000
"""Any multiple of the memory's size: the bits above it are ignored."""


def filled(word: int) -> int:
    """What a word holds at first."""
    return word * 0x01010101 & 0xFFFF_FFFF


def bursts(rng: random.Random, count: int, low: int, high: int) -> list[dict[str, int]]:
    """Bursts of words ``low`` to ``high - 1`` that stay within blocks of 16 words."""
    result = []
    for _ in range(count):
        word = rng.randrange(low, high)
        longest = min(16 - word % 16, high - word)
        length = rng.choice([0, longest - 1, rng.randrange(longest)])
        result.append({"address": BASE + word * BYTES, "length": length})
    return result


def blocks(count: int, first: int) -> list[dict[str, int]]:
    """``count`` bursts of 16 words, one after the other."""
    return [{"address": BASE + 64 * (first + index), "length": 15} for index in range(count)]


def words_of(requests: list[dict[str, int]]) -> list[int]:
    return [
        (entry["address"] - BASE) // BYTES + beat
        for entry in requests
        for beat in range(entry["length"] + 1)
    ]


def lasts_of(requests: list[dict[str, int]]) -> list[int]:
    return [int(i == entry["length"]) for entry in requests for i in range(entry["length"] + 1)]


def beats_to_write(requests: list[dict[str, int]], rng: random.Random) -> list[dict[str, int]]:
    return [
        {"data": rng.getrandbits(32), "strobe": rng.randrange(16), "last": last}
        for last in lasts_of(requests)
    ]


def merged(word: int, beat: dict[str, int]) -> int:
    """``word`` after ``beat`` has been written to it."""
    mask = sum(0xFF << 8 * byte for byte in range(4) if beat["strobe"] >> byte & 1)
    return word & ~mask | beat["data"] & mask


def read_words(sink: Sink) -> list[tuple[int, int, int]]:
    return [(beat.data, beat.last, beat.error) for beat in sink.payloads]


def expected_words(requests: list[dict[str, int]]) -> list[tuple[int, int, int]]:
    return [
        (filled(word), last, 0)
        for word, last in zip(words_of(requests), lasts_of(requests), strict=True)
    ]


class Host:
    """Accesses bytes one after the other, each ``(byte address, value to write or None)``.

    ``read`` becomes what the reads gave, ``cycles`` when the accesses took place.
    """

    def __init__(
        self,
        port: Any,
        accesses: Iterable[tuple[int, int | None]],
        stalls: Stalls = NO_STALLS,
        *,
        wait: int = 0,
    ) -> None:
        self._port = port
        self._accesses = list(accesses)
        self._stalls = stalls.lengths("host")
        self._wait = wait
        self.read: list[int] = []
        self.cycles: list[int] = []

    async def run(self, ctx: Any) -> None:
        port = self._port
        cycle = self._wait
        if cycle:
            await ctx.tick().repeat(cycle)
        for address, value in self._accesses:
            ctx.set(port.address, BASE + address)
            ctx.set(port.write, value is not None)
            ctx.set(port.write_data, value or 0)
            ctx.set(port.enable, 1)
            ready = False
            while not ready:
                _, _, ready = await ctx.tick().sample(port.ready)
                cycle += 1
            ctx.set(port.enable, 0)
            ctx.set(port.address, 0)
            self.cycles.append(cycle - 1)
            if value is None:
                self.read.append(ctx.get(port.read_data))
            for _ in range(next(self._stalls)):
                await ctx.tick()
                cycle += 1


def check_at_random(circuit: Any, dut: Any, read_ports: int, stalls: Stalls) -> None:
    """Readers, writer and host at once on a memory that holds zeros, each checked.

    The writer fills the lower half of the memory, which the readers and the host then read while
    the writer has the third quarter and the host the fourth. At last the upper half is read back.
    """
    rng = random.Random(stalls.seed)
    half, quarter = WORDS // 2, WORDS // 4
    asked = [bursts(rng, 25, 0, half) for _ in range(read_ports)]
    written = bursts(rng, 25, half, half + quarter)
    beats = beats_to_write(written, rng)
    accesses: list[tuple[int, int | None]] = []
    upper = [0] * half
    reads = []
    for _ in range(80):
        if rng.random() < 0.5:
            byte = rng.randrange(half * BYTES)
            accesses.append((byte, None))
            reads.append(filled(byte // BYTES) >> 8 * (byte % BYTES) & 0xFF)
        else:
            byte, value = rng.randrange(quarter * BYTES), rng.randrange(256)
            accesses.append(((half + quarter) * BYTES + byte, value))
            beat = {"data": value * 0x01010101, "strobe": 1 << byte % BYTES}
            word = quarter + byte // BYTES
            upper[word] = merged(upper[word], beat)
    for word, beat in zip(words_of(written), beats, strict=True):
        upper[word - half] = merged(upper[word - half], beat)

    ports = [dut.a, dut.b] if read_ports == 2 else [dut.a]
    sinks = [
        Sink(port.data, len(words_of(requests)), stalls, f"data {index}")
        for index, (port, requests) in enumerate(zip(ports, asked, strict=True))
    ]
    sources = [
        Source(port.request, requests, stalls, f"ask {index}")
        for index, (port, requests) in enumerate(zip(ports, asked, strict=True))
    ]
    responses = Sink(dut.write.response, len(written), stalls, "response")
    writer = Source(dut.write.request, written, stalls, "write")
    data = Source(dut.write.data, beats, stalls, "beats")
    host = Host(dut.host, accesses, stalls)
    found: list[int] = []
    done: list[int] = []

    async def fill(ctx: Any) -> None:
        first = blocks(half // 16, 0)
        ctx.set(dut.write.response.ready, 1)
        for request in first:
            ctx.set(dut.write.request.payload.address, request["address"])
            ctx.set(dut.write.request.valid, 1)
            ctx.set(dut.write.data.valid, 1)
            ctx.set(dut.write.data.payload.strobe, 0xF)
            for beat, word in enumerate(words_of([request])):
                ctx.set(dut.write.data.payload.data, filled(word))
                ctx.set(dut.write.data.payload.last, beat == 15)
                _, _, ready = await ctx.tick().sample(dut.write.data.ready)
                assert ready, "nothing else asks"
        ctx.set(dut.write.request.valid, 0)
        ctx.set(dut.write.data.valid, 0)
        await ctx.tick()
        ctx.set(dut.write.response.ready, 0)
        done.append(1)

    def after_fill(bench: Any) -> Any:
        async def run(ctx: Any) -> None:
            while not done:
                await ctx.tick()
            await bench.run(ctx)
            done.append(1)

        return run

    benches = [*sources, *sinks, writer, data, responses, host]

    async def read_back(ctx: Any) -> None:
        while len(done) <= len(benches):
            await ctx.tick()
        ctx.set(dut.a.data.ready, 1)
        for word in range(half, WORDS):
            ctx.set(dut.a.request.payload.address, BASE + BYTES * word)
            ctx.set(dut.a.request.payload.length, 0)
            ctx.set(dut.a.request.valid, 1)
            taken = False
            while not taken:
                _, _, taken = await ctx.tick().sample(dut.a.request.ready)
            ctx.set(dut.a.request.valid, 0)
            valid = False
            while not valid:
                data = dut.a.data.payload.data
                _, _, valid, word_read = await ctx.tick().sample(dut.a.data.valid, data)
            found.append(word_read)

    simulate(circuit, fill, *(after_fill(bench) for bench in benches), read_back)
    for sink, requests in zip(sinks, asked, strict=True):
        assert read_words(sink) == expected_words(requests), stalls
    assert responses.bits == [0] * len(written), stalls
    assert host.read == reads, stalls
    assert found == upper, stalls
