"""Bursts for tests of memories behind the engine's ports, and a host that accesses them by bytes.

Words of ``BYTES`` bytes; word ``i`` starts as ``filled(i)``, if the test fills the memory.
"""

import random
from collections.abc import Callable, Iterable, Sequence
from types import SimpleNamespace
from typing import Any

from support.rtl.streams import NO_STALLS, Sink, Source, Stalls, Testbench, simulate

WORDS = 256
BYTES = 4
BASE = 0x4000_0000
"""Any multiple of the memory's size: the memory ignores the bits above it."""


BLOCKS = 2
"""Blocks of 16 beats that `ragged` writes: few, so that bursts meet in one beat."""


PARTIAL = {
    "none": (frozenset[int](), 0, 0),
    "first": (frozenset({0}), 0, 1),
    "last": (frozenset({15}), 15, 1),
    "middle": (frozenset({5}), 5, 1),
    "between": (frozenset({3, 9}), 3, 7),
    "ends": (frozenset({0, 15}), 0, 16),
}
"""Beats of a burst of 16 that lack a byte; the first beat to read, and the number of beats."""


def beats_but(partial: frozenset[int], width: int, length: int = 15) -> list[dict[str, int]]:
    """Return a burst's beats, numbered, of which those of ``partial`` lack their lowest byte."""
    full = (1 << width // 8) - 1
    return [
        {"data": beat, "strobe": full - (beat in partial), "last": beat == length}
        for beat in range(length + 1)
    ]


def filled(word: int) -> int:
    """Return the initial content of a word: its bytes differ, also from those of nearby words."""
    return (word * 0x01010101 + 0xC080_4000) & 0xFFFF_FFFF


def bursts(rng: random.Random, count: int, low: int, high: int) -> list[dict[str, int]]:
    """Return bursts of words ``low`` to ``high - 1`` that stay within blocks of 16 words."""
    result = []
    for _ in range(count):
        word = rng.randrange(low, high)
        longest = min(16 - word % 16, high - word)
        length = rng.choice([0, longest - 1, rng.randrange(longest)])
        result.append({"address": BASE + word * BYTES, "length": length})
    return result


def blocks(count: int, first: int) -> list[dict[str, int]]:
    """Return ``count`` bursts of 16 words, one after the other."""
    return [{"address": BASE + 64 * (first + index), "length": 15} for index in range(count)]


def words_of(requests: list[dict[str, int]]) -> list[int]:
    return [
        (entry["address"] - BASE) // BYTES + beat
        for entry in requests
        for beat in range(entry["length"] + 1)
    ]


def lasts_of(requests: Sequence[dict[str, int]]) -> list[int]:
    return [int(i == entry["length"]) for entry in requests for i in range(entry["length"] + 1)]


def beats_to_write(
    requests: Sequence[dict[str, int]], rng: random.Random, width: int = 8 * BYTES
) -> list[dict[str, int]]:
    return [
        {"data": rng.getrandbits(width), "strobe": rng.getrandbits(width // 8), "last": last}
        for last in lasts_of(requests)
    ]


def ragged(
    rng: random.Random, width: int, count: int
) -> tuple[list[dict[str, int]], list[dict[str, int]]]:
    """Return bursts in `BLOCKS`, and their beats: whole, of runs with ragged ends, any strobes."""
    bytes_ = width // 8
    full = (1 << bytes_) - 1
    asked, beats = [], []
    for _ in range(count):
        beat = rng.randrange(16)
        length = rng.choice([0, 15 - beat, rng.randrange(16 - beat)])
        address = BASE + (16 * rng.randrange(BLOCKS) + beat) * bytes_
        asked.append({"address": address, "length": length})
        strobes = [full] * (length + 1)
        kind = rng.randrange(4)
        if kind & 1:
            strobes[0] = full & full << rng.randrange(bytes_)
        if kind & 2:
            strobes[-1] &= full >> rng.randrange(bytes_)
        if rng.random() < 0.2:
            strobes = [rng.randrange(full + 1) for _ in strobes]
        beats += [
            {"data": rng.getrandbits(width), "strobe": strobe, "last": index == length}
            for index, strobe in enumerate(strobes)
        ]
    return asked, beats


def stored(
    asked: list[dict[str, int]], beats: list[dict[str, int]], width: int, before: bytes = b""
) -> list[int]:
    """Return the bytes of the blocks after all ``beats``, as a memory with masks has them.

    ``before``: the content at first, by default zeros.
    """
    content = bytearray(before or BLOCKS * 16 * width // 8)
    given = iter(beats)
    for burst in asked:
        for index in range(burst["length"] + 1):
            beat, at = next(given), burst["address"] - BASE + index * width // 8
            for byte in range(width // 8):
                if beat["strobe"] >> byte & 1:
                    content[at + byte] = beat["data"] >> 8 * byte & 0xFF
    return list(content)


def bursts_of(
    dut: Any,
    *,
    a: Sequence[dict[str, int]] = (),
    b: Sequence[dict[str, int]] = (),
    write: Sequence[dict[str, int]] = (),
    beats: Sequence[dict[str, int]] | None = None,
    stalls: Stalls = NO_STALLS,
) -> dict[str, Any]:
    """Return the benches for the bursts of each port, by name; ``beats`` are random by default."""
    benches: dict[str, Any] = {}
    for name, asked in (("a", a), ("b", b)):
        if asked:
            port = getattr(dut, name)
            benches[f"ask_{name}"] = Source(port.request, asked, stalls, f"ask {name}")
            benches[name] = Sink(port.data, len(lasts_of(asked)), stalls, f"data {name}")
    if write:
        beats = beats_to_write(write, random.Random(0)) if beats is None else beats
        benches["write"] = Source(dut.write.request, write, stalls, "write")
        benches["beats"] = Source(dut.write.data, beats, stalls, "beats")
        benches["response"] = Sink(dut.write.response, len(write), stalls, "response")
    return benches


def transfer_bursts(
    circuit: Any, *others: Any, background: Sequence[Any] = (), **asked: Any
) -> SimpleNamespace:
    """Run the bursts ``asked`` on ``circuit``, or its ``dut``, beside ``others``; see `bursts_of`.

    Returns the benches of the bursts.
    """
    benches = bursts_of(getattr(circuit, "dut", circuit), **asked)
    simulate(circuit, *benches.values(), *others, background=background)
    return SimpleNamespace(**benches)


def merged(word: int, beat: dict[str, int]) -> int:
    """Return ``word`` after ``beat`` has been written to it."""
    mask = sum(0xFF << 8 * byte for byte in range(4) if beat["strobe"] >> byte & 1)
    return word & ~mask | beat["data"] & mask


def read_words(sink: Sink) -> list[tuple[int, int, int]]:
    return [(beat.data, beat.last, beat.error) for beat in sink.payloads]


class Host:
    """A host that accesses bytes of words, each ``(byte address, value to write or None)``.

    ``read`` collects the results of the reads, ``cycles`` the cycles of the accesses.
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
            lane = address % 4
            ctx.set(port.strobe, 0 if value is None else 1 << lane)
            ctx.set(port.write_data, (value or 0) * 0x01010101)
            ctx.set(port.enable, 1)
            ready = False
            while not ready:
                _, _, ready = await ctx.tick().sample(port.ready)
                cycle += 1
            ctx.set(port.enable, 0)
            ctx.set(port.address, 0)
            self.cycles.append(cycle - 1)
            if value is None:
                self.read.append(ctx.get(port.read_data) >> 8 * lane & 0xFF)
            for _ in range(next(self._stalls)):
                await ctx.tick()
                cycle += 1


def check_at_random(
    circuit: Any, read_ports: int, stalls: Stalls, background: Sequence[Any] = ()
) -> None:
    """Run readers, writer and, if there is one, host at once on a memory; check each.

    The writer fills the lower half of the memory. Then the readers and the host read it, while the
    writer writes the third quarter and the host the fourth. In the end the upper half, which holds
    zeros at first, is read back.
    """
    dut, rng = getattr(circuit, "dut", circuit), random.Random(stalls.seed)
    half, quarter = WORDS // 2, WORDS // 4
    asked = {name: bursts(rng, 25, 0, half) for name in "ab"[:read_ports]}
    written = bursts(rng, 25, half, half + quarter)
    beats = beats_to_write(written, rng)
    upper = [0] * half
    for word, beat in zip(words_of(written), beats, strict=True):
        upper[word - half] = merged(upper[word - half], beat)

    ports = bursts_of(dut, **asked, write=written, beats=beats, stalls=stalls)
    benches = list(ports.values())
    reads, read_by_host = [], []
    if hasattr(dut, "host"):
        accesses, reads = _accesses(rng, upper)
        host = Host(dut.host, accesses, stalls)
        read_by_host = host.read
        benches.append(host)
    last = [{"address": BASE + BYTES * word, "length": 0} for word in range(half, WORDS)]
    found = Sink(dut.a.data, half)
    filling, full = _filling(dut, half)
    done: list[Any] = []

    def is_quiet() -> bool:
        return len(done) >= len(benches)

    rest = [Source(dut.a.request, last), found]
    simulate(
        circuit,
        *filling,
        *(_after(full, bench, done) for bench in benches),
        *(_after(is_quiet, bench, done) for bench in rest),
        background=background,
    )
    for name, requests in asked.items():
        words = zip(words_of(requests), lasts_of(requests), strict=True)
        assert read_words(ports[name]) == [(filled(word), last, 0) for word, last in words], stalls
    assert ports["response"].bits == [0] * len(written), stalls
    assert read_by_host == reads, stalls
    assert [beat.data for beat in found.payloads] == upper, stalls


def _filling(dut: Any, words: int) -> tuple[list[Any], Callable[[], bool]]:
    """Return testbenches that fill the first ``words``, and a function that tests for their end."""
    requests = blocks(words // 16, 0)
    beats = [
        {"data": filled(word), "strobe": 0xF, "last": last}
        for word, last in zip(words_of(requests), lasts_of(requests), strict=True)
    ]
    benches = bursts_of(dut, write=requests, beats=beats)
    # No longer idle, because the next writes may follow at once.
    benches["response"] = responses = Sink(dut.write.response, len(requests), idle=1)
    return list(benches.values()), lambda: len(responses.bits) == len(requests)


def _after(ready: Callable[[], bool], bench: Any, done: list[Any]) -> Testbench:
    """Return ``bench``, to start when ``ready`` is true; it adds itself to ``done`` at its end."""

    async def run(ctx: Any) -> None:
        while not ready():
            await ctx.tick()
        await ctx.tick().repeat(2)
        await bench.run(ctx)
        done.append(bench)

    return run


def _accesses(
    rng: random.Random, upper: list[int]
) -> tuple[list[tuple[int, int | None]], list[int]]:
    """Return the host's accesses and the expected reads; its writes also update ``upper``."""
    quarter = len(upper) // 2
    accesses: list[tuple[int, int | None]] = []
    reads = []
    for _ in range(80):
        if rng.random() < 0.5:
            byte = rng.randrange(len(upper) * BYTES)
            accesses.append((byte, None))
            reads.append(filled(byte // BYTES) >> 8 * (byte % BYTES) & 0xFF)
        else:
            byte, value = rng.randrange(quarter * BYTES), rng.randrange(256)
            accesses.append(((len(upper) + quarter) * BYTES + byte, value))
            beat = {"data": value * 0x01010101, "strobe": 1 << byte % BYTES}
            word = quarter + byte // BYTES
            upper[word] = merged(upper[word], beat)
    return accesses, reads
