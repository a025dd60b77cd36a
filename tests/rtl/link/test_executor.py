"""The executor executes requests whole or not at all, in order, and never a write twice."""

import random
from collections import defaultdict
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import pytest

from bitlane_rtl.abi import CONTROL_BASE, CONTROL_SIZE, LINK_VERSION, RECEIVE_BYTES, Answer
from bitlane_rtl.configuration import Configuration
from bitlane_rtl.link import Mark, RequestExecutor
from support.rtl.streams import NO_STALLS, Source, Stalls, compiled, simulate
from support.seeds import slow
from support.serial.frames import Reply, given_out, hello, read, reply_in, write

CONFIGURATION = Configuration(
    data_width=32, address_width=20, memory_base=0x1_0000, memory_bytes=0x1_0000
)

IDENTITY = bytes([LINK_VERSION, 0, 0, 8])


def filled(bits: int) -> dict[int, int]:
    """Storage that holds a random value wherever it is looked at."""
    rng = random.Random(0)
    return defaultdict(lambda: rng.getrandbits(bits))


@dataclass
class Memory:
    """Bytes behind a `DataTransfer`, which moves a word in a cycle with probability ``haste``.

    The model fails if a transfer starts before the one before has ended, or if its words are not
    those of its address and size.
    """

    port: Any
    content: dict[int, int]
    haste: float = 1.0
    transfers: list[tuple[int, int, bool]] = field(default_factory=list)
    """First byte, size, and whether they are written."""

    async def run(self, ctx: Any) -> None:
        rng = random.Random(0)
        port = self.port
        tick = ctx.tick().sample(
            port.start,
            port.address,
            port.size_less_1,
            port.write,
            port.words.valid,
            port.words.p,
            port.read.ready,
        )
        self._words: list[int] = []
        self._wrote = False
        ready = valid = done = False
        while True:
            ctx.set(port.words.ready, ready)
            ctx.set(port.read.valid, valid)
            ctx.set(port.done, done)
            word = self._word(self._words[0]) if valid else rng.getrandbits(32)
            ctx.set(port.read.payload, word)
            *_, start, address, size_less_1, write, offered, written, taken = await tick
            if start:
                assert not self._words, "a transfer starts within another"
                assert done or not self._wrote, "a transfer starts before the last is done"
                self._wrote = bool(write)
                self.transfers.append((address, size_less_1 + 1, bool(write)))
                self._words = [*range(address & ~3, address + size_less_1 + 1, 4)]
                done = False
            if offered and ready:
                self._write(address, written)
            if valid and taken:
                assert not self.transfers[-1][2], "a WRITE reads"
                assert self._words[0] == address & ~3, "the address is another word's"
                self._words.pop(0)
                valid = False
            hastes = rng.random() < self.haste
            ready = hastes
            reads = bool(self._words) and not self.transfers[-1][2]
            valid = valid or (reads and hastes)
            done = not self._words and (done or hastes)

    def _word(self, address: int) -> int:
        return int.from_bytes(bytes(self.content[address + n] for n in range(4)), "little")

    def _write(self, address: int, written: Any) -> None:
        first, size, write = self.transfers[-1]
        word = self._words.pop(0)
        assert write, "a READ writes"
        assert word == address & ~3, "the address is another word's"
        assert written.last == (not self._words)
        inside = [first <= word + lane < first + size for lane in range(4)]
        assert written.strobe == sum(1 << lane for lane in range(4) if inside[lane])
        for lane, byte in enumerate(int(written.data).to_bytes(4, "little")):
            if inside[lane]:
                self.content[word + lane] = byte


@dataclass
class Window:
    """A window of words behind a `ControlPort`, by offset."""

    port: Any
    content: dict[int, int]
    writes: list[tuple[int, int]] = field(default_factory=list)

    async def run(self, ctx: Any) -> None:
        rng = random.Random(0)
        port = self.port
        while True:
            _, _, read, write, offset, data = await ctx.tick().sample(
                port.read, port.write, port.address, port.write_data
            )
            assert not (read and write)
            assert not ((read or write) and offset % 4)
            ctx.set(port.read_data, rng.getrandbits(32))
            if write:
                self.writes.append((offset, data))
                self.content[offset] = data
            if read:
                ctx.set(port.read_data, self.content[offset])


@dataclass
class AnswerSink:
    """A sink of ``count`` answers. Once asserted, ready stays high until a word arrives.

    The sink fails if an offered word is withdrawn or changed.
    """

    port: Any
    count: int
    haste: float = 1.0
    answers: list[bytes] = field(default_factory=list)
    passed: list[tuple[Mark, int, int]] = field(default_factory=list)
    """Mark and data of each word that is not an answer's, and the number of answers before it."""
    cycles: list[int] = field(default_factory=list)
    """The cycle of each word's transfer."""

    async def run(self, ctx: Any) -> None:
        rng = random.Random(7)
        port = self.port
        self._answer: list[int] = []
        cycle = 0
        end: int | None = None if self.count else 40
        ready = False
        waiting: Any = None
        while end is None or cycle < end:
            ready |= rng.random() < self.haste
            ctx.set(port.ready, ready)
            _, _, valid, word = await ctx.tick().sample(port.valid, port.payload)
            assert waiting is None or valid, "a word was withdrawn"
            assert waiting is None or waiting == word, "a word changed"
            waiting = word if valid and not ready else None
            if valid and ready:
                ready = False
                self.cycles.append(cycle)
                self._take(word)
                end = cycle + 40 if len(self.answers) == self.count else None
            cycle += 1
        assert not self._answer, "an answer without an end"

    def _take(self, word: Any) -> None:
        if word.mark in (Mark.HEADER, Mark.END):
            assert not self._answer
            self.passed.append((word.mark, word.data, len(self.answers)))
            return
        assert (word.mark == Mark.ANSWER) == (not self._answer)
        if not self._answer:
            self._left = 0 if word.last else word.left + 1
        self._answer.append(word.data)
        if word.last:
            assert len(self._answer) == 1 + self._left, "`left` of the first word"
            assert len(self.answers) < self.count, "too many answers"
            self.answers.append(b"".join(each.to_bytes(4, "little") for each in self._answer))
            self._answer = []


def words(content: bytes) -> list[dict[str, Any]]:
    """Return the words of a request."""
    return [
        {"data": int.from_bytes(content[n : n + 4], "little"), "mark": Mark.WORD}
        for n in range(0, len(content), 4)
    ]


class Bench:
    """An executor with storage behind it and requests before it."""

    def __init__(
        self,
        configuration: Configuration = CONFIGURATION,
        stalls: Stalls = NO_STALLS,
        haste: float = 1.0,
    ) -> None:
        self.dut = compiled(RequestExecutor, configuration, RECEIVE_BYTES)
        self.stalls = stalls
        self.haste = haste
        self.memory = Memory(self.dut.memory, filled(8), haste)
        self.window = Window(self.dut.control, filled(32))

    def execute(
        self, requests: Sequence[dict[str, Any]], count: int, *others: Callable[[Any], Any]
    ) -> tuple[Source, AnswerSink]:
        """Execute the words of requests; return ``count`` answers."""
        source = Source(self.dut.i, requests, self.stalls)
        sink = AnswerSink(self.dut.o, count, self.haste)
        background = [self.memory, self.window, *others]
        simulate(self.dut, source, sink, background=background, deadline=40_000)
        return source, sink

    def answers(
        self,
        contents: Sequence[bytes],
        *others: Callable[[Any], Any],
        repeated: Container[int] = (),
    ) -> list[Reply]:
        """Execute requests, of which those numbered ``repeated`` are repetitions."""
        requests = [
            word
            for number, content in enumerate(contents)
            for word in words(given_out(content, repeated=number in repeated))
        ]
        _, sink = self.execute(requests, len(contents), *others)
        found = []
        for content, answer in zip(contents, sink.answers, strict=True):
            reply, rest = reply_in(answer, content[4] if content[1] == 0 else 0)
            assert not rest
            found.append(reply)
        return found

    def word_bytes(self, offset: int, size: int) -> bytes:
        words = range(offset, offset + size, 4)
        return b"".join(self.window.content[word].to_bytes(4, "little") for word in words)

    def memory_bytes(self, address: int, size: int) -> bytes:
        return bytes(self.memory.content[place] for place in range(address, address + size))


def done(number: int, data: bytes = b"") -> Reply:
    return Reply(number, Answer.DONE, data)


CONFIGURATIONS = [
    Configuration(data_width=32, address_width=address_width, memory_base=base, memory_bytes=size)
    for address_width, base, size in (
        (16, 0, 1 << 8),
        (16, 0x40, 1 << 6),
        (17, 0, 1 << 17),
        (18, 1 << 17, 1 << 17),
        (20, 0x1000, 0x3000),
        (32, 0x4000_0000, 0x4000_0000),
        (32, 0x7FFF_F000, 0x0001_1000),
        (32, 0, CONTROL_BASE),
        (32, 0x8000, CONTROL_BASE - 0x8000),
    )
]


QUICK = (0, 4, 6)
"""Configurations of the quick tier, by number."""


@pytest.mark.parametrize(
    "configuration",
    [each if number in QUICK else slow(each) for number, each in enumerate(CONFIGURATIONS)],
    ids=lambda x: f"{x.memory_base:#x}+{x.memory_bytes:#x}",
)
def test_nothing_outside_memory_and_window_is_touched(configuration: Configuration) -> None:
    bench = Bench(configuration)
    memory = (configuration.memory_base, configuration.memory_last)
    control = (CONTROL_BASE, CONTROL_BASE + CONTROL_SIZE - 1)
    rng = random.Random(configuration.memory_base)
    steps = (-4096, -5, -4, -3, -1, 0, 1, 2, 3, 4, 9, 12, 1 << 14, 1 << 16, 1 << 17)
    edges = (*memory, *control, 0, 0xFFFF_FFFF, 0x8000_0000)
    accesses = [(edge + step, rng.choice([1, 2, 4, 5, 8, 512])) for edge in edges for step in steps]
    accesses += [(edge - before, 1 + before) for edge in edges for before in (0, 3, 511)]
    contents: list[bytes] = []
    expected: list[tuple[int, int, int]] = []
    for first, size in accesses:
        if not 0 <= first < 1 << 32:
            continue
        last = first + size - 1
        inside = memory[0] <= first and last <= memory[1]
        whole = first % 4 == 0 and size % 4 == 0
        inside |= whole and control[0] <= first and last <= control[1]
        number = rng.randrange(1 << 14)
        reads = bool(rng.getrandbits(1))
        contents.append(read(number, first, size) if reads else write(number, first, bytes(size)))
        expected.append((number, not inside, size * (reads and inside)))
    answers = bench.answers(contents)
    assert [(each.number, each.kind, len(each.data)) for each in answers] == expected
    touched = [byte for first, size, _ in bench.memory.transfers for byte in (first, first + size)]
    assert (min(touched), max(touched) - 1) == memory


@pytest.mark.parametrize(
    ("content", "cycles"),
    [
        (read(1, 0x1_0000, 0), [5]),
        (read(1, 0x1_0003, 6), [5, 6, 7, 8]),
        (read(1, CONTROL_BASE, 8), [5, 7, 9]),
        (hello(1, 0), [5, 7, 9]),
        (write(1, 0x1_0000, b""), [5]),
        (write(1, 0x1_0003, bytes(5)), [8]),
        (write(1, 0x5_0000, bytes(5)), [8]),
        (write(1, CONTROL_BASE, bytes(12)), [9]),
    ],
)
def test_cycles(content: bytes, cycles: list[int]) -> None:
    """The memory takes or gives a word in each cycle."""
    source, sink = Bench().execute(words(given_out(content)), 1)
    assert [cycle - source.cycles[0] for cycle in sink.cycles] == cycles


def test_words_with_other_marks_are_passed_on_in_order() -> None:
    rng = random.Random(3)
    contents = [read(1, 0x1_0000, 5), write(2, 0x5_0000, b"abcdefgh"), hello(3, 0), read(4, 0, 4)]
    sent: list[dict[str, Any]] = []
    passed: list[tuple[Mark, int, int]] = []
    for number, content in enumerate(contents):
        for mark in rng.choices([Mark.HEADER, Mark.END], k=3):
            word = rng.getrandbits(32)
            sent.append({"data": word, "mark": mark})
            passed.append((mark, word, number))
        sent += words(given_out(content))
    complaint = Reply(9, Answer.EXPECTED).content
    sent.append({"data": int.from_bytes(complaint, "little"), "mark": Mark.ANSWER})
    for haste in (1.0, 0.3):
        _, sink = Bench(haste=haste).execute(sent, 5)
        assert sink.passed == passed
        assert [answer[1] for answer in sink.answers] == [0, 1, 0, 1, Answer.EXPECTED]
        assert sink.answers[-1] == complaint


def test_a_memory_that_is_never_ready_holds_up_nothing_else() -> None:
    bench = Bench()
    bench.memory.haste = 0
    data = random.Random(3).randbytes(8)
    contents = [read(1, CONTROL_BASE, 0), read(2, CONTROL_BASE, 8), hello(3, 0)]
    before = bench.word_bytes(0, 8)
    assert bench.answers(contents) == [done(1), done(2, before), done(3, IDENTITY + bytes(4))]
    bench.memory.haste = 1
    contents = [write(1, CONTROL_BASE, data), read(2, CONTROL_BASE, 8)]
    assert bench.answers(contents) == [done(1), done(2, data)]


@pytest.mark.parametrize(
    ("content", "event", "seen"),
    [
        (read(1, CONTROL_BASE, 8), "i.valid", True),
        (read(1, CONTROL_BASE, 8), "o.valid", False),
        (read(1, CONTROL_BASE, 8), "control.read", False),
        (write(1, CONTROL_BASE, bytes(8)), "control.write", True),
        (write(1, CONTROL_BASE, bytes(4)), "control.write", True),
        (write(1, CONTROL_BASE, bytes(8)), "o.valid", False),
    ],
)
def test_the_interrupt_line_counts_when_the_answer_starts(
    content: bytes, event: str, seen: bool
) -> None:
    """It rises in the cycle after ``event``."""
    bench = Bench()
    signal = attrgetter(event)(bench.dut)

    async def rise(ctx: Any) -> None:
        happened = False
        while not happened:
            _, _, happened = await ctx.tick().sample(signal)
        ctx.set(bench.dut.interrupt, 1)

    assert [answer.interrupt for answer in bench.answers([content], rise)] == [seen]


def test_an_interrupt_line_that_never_rests() -> None:
    """The sink sees to it that no answer changes while it waits."""
    bench = Bench(haste=0.2)

    async def toggle(ctx: Any) -> None:
        rng = random.Random(1)
        while True:
            ctx.set(bench.dut.interrupt, rng.getrandbits(1))
            await ctx.tick()

    answers = bench.answers([read(n, 0x1_0000, n % 3) for n in range(30)], toggle)
    assert {answer.interrupt for answer in answers} == {False, True}


@pytest.mark.parametrize("haste", [1.0, 0.5, 0.1])
def test_all_sides_may_wait(stalls: Stalls, haste: float) -> None:
    bench = Bench(stalls=stalls, haste=haste)
    rng = random.Random(f"{haste} {stalls.seed}")
    memory = bench.memory_bytes(0x1_0000, 64)
    window = bench.word_bytes(0, 64)
    state = [bytearray(memory), bytearray(window)]
    requests: list[bytes] = []
    repeated = set[int]()
    expected: list[Reply] = []
    for number in range(40):
        where = rng.randrange(2)
        unit = (1, 4)[where]
        size = unit * rng.randrange(16 // unit)
        offset = unit * rng.randrange((64 - size) // unit)
        address = (0x1_0000, CONTROL_BASE)[where] + offset
        part = slice(offset, offset + size)
        if rng.random() < 0.5:
            data = rng.randbytes(size)
            requests.append(write(number, address, data))
            expected.append(done(number))
            if rng.random() < 0.3:
                repeated.add(number)
            else:
                state[where][part] = data
        else:
            requests.append(read(number, address, size))
            expected.append(done(number, bytes(state[where][part])))
    assert bench.answers(requests, repeated=repeated) == expected
    assert bench.memory_bytes(0x1_0000, 64) == state[0]
    assert bench.word_bytes(0, 64) == state[1]
