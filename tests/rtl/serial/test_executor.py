"""The executor executes requests whole or not at all, in order, and never a write twice."""

import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import pytest
from amaranth.hdl import ResetInserter, Signal

from bitlane_rtl.abi import CONTROL_BASE, CONTROL_SIZE
from bitlane_rtl.abi.frames import Answer
from bitlane_rtl.configuration import Configuration
from bitlane_rtl.serial.executor import RequestExecutor
from support.rtl.streams import ALL_STALLS, NO_STALLS, Source, Stalls, compiled, simulate
from support.seeds import slow
from support.serial.frames import Reply, given_out, hello, read, request, write

CONFIGURATION = Configuration(
    data_width=32, address_width=20, memory_base=0x1_0000, memory_bytes=0x1_0000
)

IDENTITY = bytes([1, 0, 0, 8])


def filled(seed: int, bits: int) -> dict[int, int]:
    """Storage that holds a random value wherever it is looked at."""
    rng = random.Random(seed)
    return defaultdict(lambda: rng.getrandbits(bits))


@dataclass
class Memory:
    """Bytes behind a `ByteAccess`, ready in a cycle with probability ``haste``.

    The model fails if the circuit changes an access before it has completed.
    """

    port: Any
    content: dict[int, int]
    haste: float = 1.0
    seed: int = 0
    reads: list[int] = field(default_factory=list)
    writes: list[tuple[int, int]] = field(default_factory=list)
    """Addresses and data, in order."""

    async def run(self, ctx: Any) -> None:
        rng = random.Random(self.seed)
        port = self.port
        waiting: tuple[int, ...] | None = None
        while True:
            ready = rng.random() < self.haste
            ctx.set(port.ready, ready)
            _, _, enable, *access = await ctx.tick().sample(
                port.enable, port.write, port.address, port.write_data
            )
            assert waiting is None or enable, "an access was taken back"
            if enable:
                write, address, data = access
                now = (write, address, data if write else 0)
                assert waiting in (None, now), "an access changed that had not taken place"
                waiting = None if ready else now
            ctx.set(port.read_data, rng.randrange(256))
            if enable and ready and write:
                self.writes.append((address, data))
                self.content[address] = data
            elif enable and ready:
                self.reads.append(address)
                ctx.set(port.read_data, self.content[address])


@dataclass
class Window:
    """A window of words behind a `ControlPort`, by offset."""

    port: Any
    content: dict[int, int]
    reads: list[int] = field(default_factory=list)
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
                self.reads.append(offset)
                ctx.set(port.read_data, self.content[offset])


@dataclass
class AnswerSink:
    """A sink of ``count`` answers. Once asserted, ready stays high until a byte arrives.

    The sink fails if an offered byte is withdrawn or changed.
    """

    port: Any
    count: int
    haste: float = 1.0
    idle: int = 40
    answers: list[bytes] = field(default_factory=list)
    cycles: list[int] = field(default_factory=list)
    """The cycle of each byte's transfer."""

    async def run(self, ctx: Any) -> None:
        rng = random.Random(7)
        port = self.port
        answer = bytearray()
        cycle = 0
        end: int | None = None if self.count else self.idle
        ready = False
        waiting: tuple[int, int] | None = None
        while end is None or cycle < end:
            ready |= rng.random() < self.haste
            ctx.set(port.ready, ready)
            _, _, valid, byte, last = await ctx.tick().sample(
                port.valid, port.payload.byte, port.payload.last
            )
            assert waiting is None or valid, f"a byte of {answer.hex()}... was withdrawn"
            assert waiting in (None, (byte, last)), f"a byte of {answer.hex()}... changed"
            waiting = (byte, last) if valid and not ready else None
            if valid and ready:
                ready = False
                answer.append(byte)
                self.cycles.append(cycle)
                if last:
                    assert len(self.answers) < self.count, f"too many answers: {answer.hex()}"
                    self.answers.append(bytes(answer))
                    answer.clear()
                    end = cycle + self.idle if len(self.answers) == self.count else None
            cycle += 1
        assert not answer, f"an answer without an end: {answer.hex()}"


class Bench:
    """An executor with storage behind it and requests before it."""

    def __init__(
        self,
        configuration: Configuration = CONFIGURATION,
        stalls: Stalls = NO_STALLS,
        haste: float = 1.0,
        seed: int = 0,
    ) -> None:
        self.dut = compiled(RequestExecutor, configuration)
        self.stalls = stalls
        self.haste = haste
        self.memory = Memory(self.dut.memory, filled(seed, 8), haste, seed)
        self.window = Window(self.dut.control, filled(seed, 32))

    def execute(
        self, requests: Sequence[bytes], *others: Callable[[Any], Any], count: int | None = None
    ) -> tuple[Source, AnswerSink]:
        """Execute requests as the receiver outputs them; return ``count`` answers, or one each."""
        source = Source(self.dut.i, b"".join(requests), self.stalls)
        answers = AnswerSink(self.dut.o, len(requests) if count is None else count, self.haste)
        background = [self.memory, self.window, *others]
        deadline = 2000 + 60 * sum(map(len, requests)) + 20_000
        simulate(self.dut, source, answers, background=background, deadline=deadline)
        return source, answers

    def answers(self, contents: Sequence[bytes], *, repeated: bool = False) -> list[bytes]:
        """Execute requests, and return their answers."""
        requests = [given_out(content, repeated=repeated) for content in contents]
        return self.execute(requests)[1].answers

    def word_bytes(self, offset: int, size: int) -> bytes:
        words = range(offset, offset + size, 4)
        return b"".join(self.window.content[word].to_bytes(4, "little") for word in words)

    def memory_bytes(self, address: int, size: int) -> bytes:
        return bytes(self.memory.content[place] for place in range(address, address + size))


def done(number: int, data: bytes = b"") -> bytes:
    return Reply(number, Answer.DONE, data).content


def refused(number: int) -> bytes:
    return Reply(number, Answer.REFUSED).content


def test_memory_is_written_and_read() -> None:
    bench = Bench()
    data = random.Random(1).randbytes(23)
    requests = [write(1, 0x1_2345, data), read(2, 0x1_2340, 30)]
    before = bench.memory_bytes(0x1_2340, 30)
    assert bench.answers(requests) == [done(1), done(2, before[:5] + data + before[28:])]
    assert bench.memory.writes == [(0x1_2345 + n, byte) for n, byte in enumerate(data)]
    assert bench.memory.reads == list(range(0x1_2340, 0x1_2340 + 30))
    assert (bench.window.reads, bench.window.writes) == ([], [])


def test_the_control_window_is_written_and_read_in_words() -> None:
    bench = Bench()
    data = random.Random(2).randbytes(12)
    offset = 0x2ABC
    requests = [write(1, CONTROL_BASE + offset, data), read(2, CONTROL_BASE + offset - 4, 20)]
    before = bench.word_bytes(offset - 4, 20)
    assert bench.answers(requests) == [done(1), done(2, before[:4] + data + before[16:])]
    words = [int.from_bytes(data[n : n + 4], "little") for n in (0, 4, 8)]
    assert bench.window.writes == [(offset + 4 * n, word) for n, word in enumerate(words)]
    assert bench.window.reads == [offset - 4 + 4 * n for n in range(5)]
    assert (bench.memory.reads, bench.memory.writes) == ([], [])


@pytest.mark.parametrize("nonce", [0, 0xFFFF_FFFF, 0x1_0000, CONTROL_BASE, CONTROL_BASE + 4])
def test_hello(nonce: int) -> None:
    bench = Bench()
    assert (
        bench.answers([hello(77, nonce)] * 2)
        == [done(77, IDENTITY + nonce.to_bytes(4, "little"))] * 2
    )
    assert (bench.memory.reads, bench.window.reads) == ([], [])


@pytest.mark.parametrize("address", [0, 0x1_0000, 0x2_0000, CONTROL_BASE + 1, 0xFFFF_FFFF])
def test_a_size_of_0_is_legal_everywhere(address: int) -> None:
    bench = Bench()
    assert bench.answers([read(1, address, 0), write(2, address, b"")]) == [done(1), done(2)]


def test_what_is_no_request_is_refused() -> None:
    bench = Bench()
    kinds = [3, 4, 5, 6, 0x10, 0x81, 0xFE, 0xFF]
    contents = [request(n, kind, 0x1_0000, n % 4) for n, kind in enumerate(kinds)]
    contents += [request(20, 2, 0x1_0000, size) for size in (1, 8, 512, 1024)]
    contents += [request(20, 0, 0x1_0000, size) for size in (513, 768, 1024, 1025, 4096, 65535)]
    refusals = [refused(content[0]) for content in contents]
    identity = IDENTITY + bytes([5, 0, 0, 0])
    assert bench.answers([*contents, hello(40, 5)]) == [*refusals, done(40, identity)]
    assert (bench.memory.reads, bench.memory.writes) == ([], [])


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
    accesses = [(edge + step, rng.choice([1, 2, 4, 5, 8])) for edge in edges for step in steps]
    accesses += [(edge - before, 1 + before) for edge in edges for before in (0, 3)]
    requests: list[bytes] = []
    expected: list[tuple[bytes, int]] = []
    for first, size in accesses:
        if not 0 <= first < 1 << 32:
            continue
        last = first + size - 1
        inside = memory[0] <= first and last <= memory[1]
        whole = first % 4 == 0 and size % 4 == 0
        inside |= whole and control[0] <= first and last <= control[1]
        number = rng.randrange(256)
        reads = bool(rng.getrandbits(1))
        content = read(number, first, size) if reads else write(number, first, bytes(size))
        requests.append(given_out(content))
        answer = done(number) if inside else refused(number)
        expected.append((answer, 2 + size * (reads and inside)))
    _, sink = bench.execute(requests)
    for content, answer, right in zip(requests, sink.answers, expected, strict=True):
        assert (answer[:2], len(answer)) == right, content.hex()
    touched = {*bench.memory.reads, *(address for address, _ in bench.memory.writes)}
    assert (min(touched), max(touched)) == memory


def test_an_access_that_is_as_large_as_it_may_be() -> None:
    bench = Bench()
    requests = [
        read(1, 0x2_0000 - 512, 512),
        read(2, 0x2_0000 - 511, 512),
        write(3, CONTROL_BASE + CONTROL_SIZE - 512, bytes(512)),
        write(4, CONTROL_BASE + CONTROL_SIZE - 508, bytes(512)),
        read(5, 0x1_0000, 512),
        read(6, 0xFFFF, 512),
    ]
    answers = bench.answers(requests)
    assert [len(answer) for answer in answers] == [514, 2, 2, 2, 514, 2]
    assert [answer[1] for answer in answers] == [0, 1, 0, 1, 0, 1]
    assert answers[0] == done(1, bench.memory_bytes(0x2_0000 - 512, 512))
    assert len(bench.window.writes) == 128


def test_a_repeated_write_is_answered_and_not_executed() -> None:
    bench = Bench()
    contents = [
        write(1, 0x1_0000, b"memory"),
        write(2, CONTROL_BASE + 8, b"register"),
        write(3, 0x3_0000, b"nowhere"),
    ]
    assert bench.answers(contents, repeated=True) == [done(1), done(2), refused(3)]
    assert (bench.memory.writes, bench.window.writes) == ([], [])


def test_a_repeated_read_is_executed() -> None:
    bench = Bench()
    contents = [read(1, 0x1_0000, 6), read(2, CONTROL_BASE + 8, 8)]
    assert bench.answers(contents, repeated=True) == [
        done(1, bench.memory_bytes(0x1_0000, 6)),
        done(2, bench.word_bytes(8, 8)),
    ]


HEADER = 8


@pytest.mark.parametrize(
    ("content", "cycles"),
    [
        (read(1, 0x1_0000, 0), [4, 5]),
        (read(1, 0x1_0000, 3), [4, 5, 8, 11, 14]),
        (read(1, CONTROL_BASE, 8), [4, 5, 9, 12, 15, 18, 22, 25, 28, 31]),
        (hello(1, 0), [4, 5, *range(8, 32, 3)]),
        (write(1, 0x1_0000, b""), [5, 6]),
        (write(1, 0x1_0000, bytes(5)), [15, 16]),
        (write(1, 0x5_0000, bytes(5)), [15, 16]),
        (write(1, CONTROL_BASE, bytes(8)), [21, 22]),
    ],
)
def test_cycles(content: bytes, cycles: list[int]) -> None:
    source, sink = Bench().execute([given_out(content)])
    start = source.cycles[HEADER - 1]
    assert [cycle - start for cycle in sink.cycles] == cycles


def test_a_complaint_is_passed_on_between_requests() -> None:
    bench = Bench()
    dut = bench.dut
    told: list[int] = []

    async def complain(ctx: Any) -> None:
        for number, delay in ((9, 1), (200, 30), (0, 2)):
            await ctx.tick().repeat(delay)
            ctx.set(dut.complaint.expected, number)
            ctx.set(dut.complaint.valid, 1)
            answered = False
            while not answered:
                _, _, answered = await ctx.tick().sample(dut.complaint.answered)
            told.append(number)
            ctx.set(dut.complaint.valid, 0)

    contents = [read(1, 0x1_0000, 5), write(2, 0x5_0000, b"abcdefgh"), hello(3, 0), read(4, 0, 4)]
    _, sink = bench.execute([given_out(content) for content in contents], complain, count=7)
    assert told == [9, 200, 0]
    complaints = [Reply(number, Answer.EXPECTED).content for number in told]
    assert [answer for answer in sink.answers if answer in complaints] == complaints
    assert [answer for answer in sink.answers if answer not in complaints] == [
        done(1, bench.memory_bytes(0x1_0000, 5)),
        refused(2),
        done(3, IDENTITY + bytes(4)),
        refused(4),
    ]


def test_a_complaint_after_a_reset_is_answered_alone() -> None:
    """A reset in the middle of a READ leaves its bytes uncounted."""
    circuit = RequestExecutor(CONFIGURATION)
    reset = Signal()
    answers: list[tuple[int, int]] = []

    async def bench(ctx: Any) -> None:
        for byte in given_out(read(1, 0x1_0000, 9)):
            ctx.set(circuit.i.payload, byte)
            ctx.set(circuit.i.valid, 1)
            await ctx.tick()
        ctx.set(circuit.i.valid, 0)
        await ctx.tick().repeat(4)
        ctx.set(reset, 1)
        await ctx.tick()
        ctx.set(reset, 0)
        ctx.set(circuit.complaint.expected, 77)
        ctx.set(circuit.complaint.valid, 1)
        await ctx.tick().until(circuit.complaint.answered)
        ctx.set(circuit.complaint.valid, 0)
        ctx.set(circuit.o.ready, 1)
        for _ in range(20):
            _, _, valid, answer = await ctx.tick().sample(circuit.o.valid, circuit.o.payload)
            if valid:
                answers.append((answer.byte, answer.last))

    simulate(ResetInserter(reset)(circuit), bench)
    assert answers == [(77, 0), (Answer.EXPECTED, 1)]


def test_a_memory_that_is_never_ready_holds_up_nothing_else() -> None:
    bench = Bench()
    bench.memory.haste = 0
    data = random.Random(3).randbytes(8)
    contents = [write(1, CONTROL_BASE, data), read(2, CONTROL_BASE, 8), hello(3, 0)]
    assert bench.answers(contents) == [done(1), done(2, data), done(3, IDENTITY + bytes(4))]


@pytest.mark.parametrize(
    ("content", "event", "seen"),
    [
        (read(1, CONTROL_BASE, 8), "i.valid", True),
        (read(1, CONTROL_BASE, 8), "o.valid", False),
        (read(1, CONTROL_BASE, 8), "control.read", False),
        (write(1, CONTROL_BASE, bytes(8)), "control.write", True),
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

    _, sink = bench.execute([given_out(content)], rise)
    assert [answer[1] for answer in sink.answers] == [seen << 7]


def test_an_interrupt_line_that_never_rests() -> None:
    """The sink sees to it that no answer changes while it waits."""
    bench = Bench(haste=0.2)

    async def toggle(ctx: Any) -> None:
        rng = random.Random(1)
        while True:
            ctx.set(bench.dut.interrupt, rng.getrandbits(1))
            await ctx.tick()

    _, sink = bench.execute([given_out(read(n, 0x1_0000, n % 3)) for n in range(30)], toggle)
    assert {answer[1] for answer in sink.answers} == {0x00, 0x80}


@pytest.mark.parametrize("stalls", ALL_STALLS, ids=["full", "halves", "long"])
@pytest.mark.parametrize("haste", [1.0, 0.5, 0.1])
def test_all_sides_may_wait(stalls: Stalls, haste: float) -> None:
    bench = Bench(stalls=stalls, haste=haste)
    rng = random.Random(f"{haste} {stalls.seed}")
    memory = bench.memory_bytes(0x1_0000, 64)
    window = bench.word_bytes(0, 64)
    state = [bytearray(memory), bytearray(window)]
    requests: list[bytes] = []
    expected: list[bytes] = []
    for number in range(40):
        where = rng.randrange(2)
        unit = (1, 4)[where]
        size = unit * rng.randrange(16 // unit)
        offset = unit * rng.randrange((64 - size) // unit)
        address = (0x1_0000, CONTROL_BASE)[where] + offset
        part = slice(offset, offset + size)
        if rng.random() < 0.5:
            data = rng.randbytes(size)
            repeated = rng.random() < 0.3
            requests.append(given_out(write(number, address, data), repeated=repeated))
            expected.append(done(number))
            state[where][part] = state[where][part] if repeated else data
        else:
            requests.append(given_out(read(number, address, size)))
            expected.append(done(number, bytes(state[where][part])))
    _, sink = bench.execute(requests)
    assert sink.answers == expected
    assert bench.memory_bytes(0x1_0000, 64) == state[0]
    assert bench.word_bytes(0, 64) == state[1]


def test_transfers() -> None:
    """A READ is answered and then moved, a WRITE moved and then answered; each as a whole."""
    dut = compiled(RequestExecutor, CONFIGURATION, transfers=True)
    contents = [
        (read(1, 0x1_0003, 23), False),
        (write(2, 0x1_FFFF, b"1"), False),
        (write(3, 0x1_0000, bytes(512)), True),
        (write(4, 0x2_0000, b"no"), False),
        (read(5, 0x2_0000, 9), False),
        (write(6, 0x1_0000, b""), False),
        (read(7, 0x1_0000, 0), False),
        (read(8, 0x1_0000, 512), True),
    ]
    headers = [given_out(content, repeated=repeated)[:HEADER] for content, repeated in contents]
    # Bytes of answers with `last`, and transfers: ADDRESS, SIZE, whether it is a WRITE, executed.
    done, refused = (Answer.DONE, 1), (Answer.REFUSED, 1)
    expected = [(1, 0), (Answer.DONE, 0), (0x1_0003, 23, 0)]
    expected += [(0x1_FFFF, 1, 1, 1), (2, 0), done]
    expected += [(0x1_0000, 512, 1, 0), (3, 0), done]
    expected += [(0x1_0000, 2, 1, 0), (4, 0), refused]  # the address is cut to the memory
    expected += [(5, 0), refused, (6, 0), done, (7, 0), done]
    expected += [(8, 0), (Answer.DONE, 0), (0x1_0000, 512, 0)]
    events: list[tuple[int, ...]] = []

    async def move(ctx: Any) -> None:
        order = dut.transfer
        fields = order.address, order.size_less_1, order.write, order.execute
        while True:
            first = await ctx.tick().sample(*fields).until(order.valid)
            for _ in range(4):
                *_, valid, address, size_less_1, write, execute = await ctx.tick().sample(
                    order.valid, *fields
                )
                assert (valid, address, size_less_1, write, execute) == (1, *first)
            ctx.set(order.done, 1)
            await ctx.tick()
            ctx.set(order.done, 0)
            events.append((address, size_less_1 + 1, write, *([execute] if write else [])))

    async def listen(ctx: Any) -> None:
        ctx.set(dut.o.ready, 1)
        while len(events) < len(expected):
            *_, valid, byte, last = await ctx.tick().sample(dut.o.valid, dut.o.p.byte, dut.o.p.last)
            if valid:
                events.append((byte, last))

    simulate(dut, Source(dut.i, b"".join(headers)), listen, background=[move])
    assert events == expected
