"""Links on lines with faults: all bytes are right, or an error comes in time.

The model of the board asserts that repeated frames are equal, and that each one fits its buffer.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import cycle
from random import Random
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from bitlane.errors import LinkError
from bitlane.links import RemoteLink
from bitlane_rtl.abi import CONTROL_BASE, REPETITIONS, SEQUENCES, Answer
from support.board.line import Fault, ModelLine, ModelPort, ModelSocket, Noise
from support.board.model import BoardModel
from support.ethernet.datagrams import datagram_of
from support.host.network import Cable
from support.host.transfers import (
    BASE,
    LINES,
    RANGES,
    Make,
    expect_exchange,
    expect_well,
    expect_write,
    nth,
    random_exchanges,
)
from support.seeds import stride
from support.serial.frames import Reply, answer_line

pytestmark = pytest.mark.usefixtures("repeatable")

# --- any faults, one after the other --------------------------------------------------------------

SINGLE: dict[str, Fault] = {
    "lost": lambda x: x[1:],
    "all lost": lambda x: [],
    "doubled": lambda x: x[:1] + x,
    "damaged": lambda x: [x[0][:5] + bytes((x[0][5] ^ 2 or 1,)) + x[0][6:], *x[1:]],
    "cut": lambda x: [x[0][:-4], *x[1:]],
}
REORDERED: dict[str, Fault] = {
    "behind the next one": lambda x: x[1:2] + x[:1] + x[2:],
    "last": lambda x: x[1:] + x[:1],
    "another session's": lambda x: [datagram_of(1, [x[0][4:-4]]), *x],
}
"""Faults that a network has and a serial line has not."""


class AnyUse(RuleBasedStateMachine):
    """Calls of a link while single frames, datagrams and answers are hit. None is an error."""

    make: Make
    faults: dict[str, Fault]

    @initialize()
    def open(self) -> None:
        self.line = self.make()
        self.line.board.in_order = False
        self.link = self.line.link()
        self.device = self.line.board.memory_device

    @rule(way=st.sampled_from(["up", "down"]), position=st.integers(0, 12), data=st.data())
    def hit(self, way: str, position: int, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from([*self.faults]))
        self.line.hit(way, nth(position, self.faults[name]))

    @rule(writes=RANGES, reads=RANGES, seed=st.integers(0, 100))
    def exchange(
        self, writes: list[tuple[int, int]], reads: list[tuple[int, int]], seed: int
    ) -> None:
        expect_exchange(self.link, self.device, writes, reads, seed)

    @rule(size=st.integers(5000, 60_000), offset=st.integers(0, 7))
    def write(self, size: int, offset: int) -> None:
        expect_write(self.link, self.device, Random(size).randbytes(size), offset)

    @rule(word=st.binary(min_size=4, max_size=4))
    def ring(self, word: bytes) -> None:
        """A register is written once."""
        before = len(self.device.window_writes)
        self.link.write(CONTROL_BASE + 0x1C, word)
        assert self.device.window_writes[before:] == [(0x1C, word)]

    @rule(level=st.booleans())
    def wait(self, level: bool) -> None:
        self.device.interrupt = level
        assert self.link.wait(0) is level

    @rule()
    def reopen(self) -> None:
        self.link.close()
        self.line = self.line.again()
        self.link = self.line.link()


class SerialUse(AnyUse):
    make = staticmethod(ModelPort)
    faults = SINGLE


class NetworkUse(AnyUse):
    make = staticmethod(ModelSocket)
    faults = SINGLE | REORDERED


TestSerialUse = SerialUse.TestCase
TestNetworkUse = NetworkUse.TestCase
TestSerialUse.settings = TestNetworkUse.settings = settings(stateful_step_count=20, deadline=None)

PACKETS = 34
"""Packets of a write: three windows and a part."""


@pytest.mark.parametrize("name", SINGLE | REORDERED)
@pytest.mark.parametrize("way", ["up", "down"])
def test_a_fault_at_each_packet_of_a_long_write(way: str, name: str) -> None:
    line = ModelSocket()
    line.board.in_order = False
    with line.link() as link:
        for position in range(0, PACKETS + 1, 2):
            line.hit(way, nth(position, (SINGLE | REORDERED)[name]))
            data = Random(position).randbytes(1440 * PACKETS + 700)
            expect_write(link, line.board.memory_device, data, 5)


def every_hit(data: bytes) -> Iterator[bytes]:
    """Return ``data`` with each byte dropped, doubled, made a delimiter, and flipped."""
    for place, byte in enumerate(data):
        for instead in (b"", bytes((byte, byte)), b"\0", bytes((byte ^ 0x10,)), b"\0" + data[:5]):
            yield data[:place] + instead + data[place + 1 :]


@pytest.mark.parametrize("turn", range(4))
@pytest.mark.parametrize("way", ["up", "down"])
def test_one_hit_anywhere_in_a_short_job_is_survived(way: str, turn: int) -> None:
    """Turn 0 is the HELLO, then a write, a doorbell, a read."""
    for variant in range(1 << 16):
        hits: list[bytes] = []
        turns = iter(range(100))

        def once(data: bytes) -> bytes:
            if next(turns) != turn:  # noqa: B023, called before the loop goes on
                return data
            damaged = [*every_hit(data)][variant:][:1]  # noqa: B023
            hits.extend(damaged)  # noqa: B023
            return damaged[0] if damaged else data

        port = ModelPort()
        setattr(port, way, once)
        with port.link() as link:
            link.write(BASE, b"12\x0034")
            link.write(CONTROL_BASE + 0x1C, b"\1\0\0\0")
            got = link.read(BASE, 5).tobytes()
        if not hits:
            break
        device = port.board.memory_device
        assert got == b"12\x0034", f"variant {variant}"
        assert device.window_writes == [(0x1C, b"\1\0\0\0")], f"variant {variant}"
        assert device.written == {(BASE, 5): 1}, f"variant {variant}"
    assert variant > 30


# --- noise and bad cables -------------------------------------------------------------------------

NOISES: dict[str, tuple[Make, Callable[[int], Any]]] = {
    **{
        f"serial, one byte in {count}": (ModelPort, partial(Noise, 1 / count))
        for count in (2000, 500, 200)
    },
    **{
        f"network, {name}": (ModelSocket, lambda seed, rates=rates: Cable(**rates, seed=seed))
        for name, rates in {
            "lost": {"loss": 0.1},
            "doubled": {"double": 0.2},
            "reordered": {"reorder": 0.2},
            "damaged": {"damage": 0.1},
            "all": {"loss": 0.03, "double": 0.03, "reorder": 0.03, "damage": 0.03},
        }.items()
    },
}


@pytest.mark.parametrize("ways", [["up"], ["down"], ["up", "down"]], ids="+".join)
@pytest.mark.parametrize("name", NOISES)
def test_noise_costs_time(
    name: str, ways: list[str], record_property: Callable[[str, object], None]
) -> None:
    make, noise = NOISES[name]
    errors: list[str] = []
    hits, sessions = 0, 20 // stride(2)
    for seed in range(sessions):
        print(f"{name}, {ways}, seed {seed}")
        line = make()
        line.board.in_order = not any(each in name for each in ("doubled", "reordered", ", all"))
        for number, way in enumerate(ways):
            setattr(line, way, noise(seed + 1000 * number))
        errors += random_exchanges(line, seed, 8)
        hits += sum(getattr(line, way).hits for way in ways)
        if seed % 5 == 0:
            expect_well(line)
    right = sessions - len(errors)
    report = f"{name} {'+'.join(ways)}: {hits} hits, {right} of {sessions} sessions right"
    record_property("report", report)
    assert hits > 10
    # Noise at this rate may cause an error now and then, but most sessions must succeed.
    assert right >= sessions - 1, errors


@pytest.mark.parametrize("ways", [["up"], ["down"], ["up", "down"]], ids="+".join)
def test_one_byte_in_200_leaves_a_rate_that_is_worth_having(ways: list[str]) -> None:
    size = 32 * 1024
    port = ModelPort(**{way: Noise(1 / 200, 7 + 1000 * (way == "down")) for way in ways})
    link = port.link()
    start = port.now
    link.exchange([(BASE, Random(1).randbytes(size))], [(BASE + size, size)])
    # Without noise, 300000 bytes a second are possible in each direction.
    assert 2 * size / (port.now - start) > 15_000


def test_after_noise_the_line_is_used_as_before() -> None:
    port = ModelPort(up=Noise(1 / 200, 3), down=Noise(1 / 200, 1003))
    link = port.link()
    link.write(BASE, bytes(4096))
    port.up, port.down = Noise(0, 0), Noise(0, 0)
    link.write(BASE, bytes(range(256)) * 64)
    up = port.up_bytes
    link.write(BASE, bytes(range(1, 256)) * 256)
    assert 255 * 256 / (port.up_bytes - up) >= 0.95


# --- silence --------------------------------------------------------------------------------------

PULLED = r"model board: the (port|network) failed: .*Input/output error.* open it again"


def work(link: RemoteLink) -> None:
    """Exchange, write and wait for long on ``link``."""
    for turn in range(100):
        link.exchange([(BASE, bytes(3000))], [(BASE + 50_000, 3000)])
        link.write(CONTROL_BASE, turn.to_bytes(4, "little"))
        link.wait(0)


@pytest.mark.parametrize("after", [0, 1, 20, 100, 1000, 2047, 2500, 5000, 9000, 20_000])
def test_a_cable_that_is_pulled(line: ModelLine, after: int) -> None:
    link = line.link()
    line.break_after = line.up_bytes + after
    with pytest.raises(LinkError, match=PULLED):
        work(link)
    assert line.closed
    with pytest.raises(LinkError, match="the link is closed; open it again"):
        link.read(BASE, 1)
    expect_well(line)


def test_a_cable_that_is_pulled_while_waiting(line: ModelLine) -> None:
    link = line.link()
    line.break_after = line.up_bytes + 100
    with pytest.raises(LinkError, match=PULLED):
        link.wait(1000)


@pytest.mark.parametrize(
    ("make", "most", "advice"),
    [
        (ModelPort, 512, "check cable and power, then open it again"),
        (ModelSocket, 480, "a new greeting has no answer either; check cable and power, then open"),
    ],
)
def test_a_board_that_falls_silent(make: Make, most: int, advice: str) -> None:
    line = make()
    link = line.link(2.0)
    link.write(BASE, bytes(5000))
    line.mute = True
    start = line.now
    with pytest.raises(LinkError) as caught:
        link.read(BASE + 16, 5000)
    assert 1.99 < line.now - start < 3
    message = str(caught.value)
    assert f"no answer for 2 s to a READ of {most} bytes at 0x1010;" in message
    assert "and 0 came since the call began" in message
    assert advice in message
    assert "\n" not in message
    expect_well(line)


@pytest.mark.parametrize("ways", [["up"], ["down"], ["up", "down"]], ids="+".join)
def test_noise_that_lets_nothing_through_is_an_error_in_time(ways: list[str]) -> None:
    port = ModelPort()
    link = port.link(2.0)
    link.write(BASE, b"before")
    for way in ways:
        setattr(port, way, Noise(0.5, len(way)))
    start = port.now
    with pytest.raises(LinkError, match="no answer for 2 s to a WRITE of"):
        link.write(BASE, bytes(100))
    assert port.now - start < 7
    expect_well(port)


@pytest.mark.parametrize("step", [1, 50, REPETITIONS, REPETITIONS + 1, 12_000, SEQUENCES - 1])
def test_a_board_on_a_serial_line_that_was_reset(step: int) -> None:
    board = BoardModel()
    port = ModelPort(board)
    link = port.link(1.0)
    link.write(BASE, b"before")
    board.expected = (board.expected + step) % SEQUENCES
    board.watch.restart()
    try:
        with pytest.raises(LinkError, match=r"it was reset, or another|no answer for 1 s"):
            link.write(BASE, b"after.")
    except KeyError:
        # To the model this looks like a repetition, which it has never seen.
        assert step <= REPETITIONS
    expect_well(ModelPort(board))


def test_chatter_that_begins_later() -> None:
    port = ModelPort()
    link = port.link(1.0)
    link.write(BASE, b"fine")
    port.talk = lambda: b"tick 12345\r\n"
    with pytest.raises(LinkError, match="no answer for 1 s to a WRITE of 4 bytes at 0x1000; 18 by"):
        link.write(BASE, b"lost")
    assert port.closed
    expect_well(port)


@pytest.mark.parametrize("countdown", [*range(1, 12), *range(12, 100, 9)])
def test_an_interrupted_call_leaves_the_board_usable(line: ModelLine, countdown: int) -> None:
    link = line.link()
    line.countdown = countdown
    with pytest.raises(KeyboardInterrupt):
        work(link)
    assert line.closed
    # The same line, so that the next one to open it has what is still on its way before it.
    line.closed = False
    data = Random(countdown).randbytes(4000)
    with line.link() as other:
        expect_write(other, line.board.memory_device, data, 0)
        assert other.read(BASE, 4000).tobytes() == data


# --- peers that never stop talking ----------------------------------------------------------------

TIMEOUT = 1.0
MOST_TIMEOUTS = 4
"""Timeouts within which every call ends: three without an answered request, and a farewell."""

CALLS: dict[str, Callable[[RemoteLink], object]] = {
    "read": lambda link: link.read(BASE, 3000),
    "write": lambda link: link.write(BASE, bytes(3000)),
    "wait": lambda link: link.wait(TIMEOUT / 2),
    "close": lambda link: link.close(),
}


def let_talk(line: ModelLine, ahead: int, kind: Answer | None, pause: float) -> None:
    """Replace the board by a peer that repeats an answer, or noise; with a pause, byte by byte."""

    def words() -> Iterator[bytes]:
        said = b"tick 12345\r\n"
        content = b"" if kind is None else Reply(line.board.expected - 1 + ahead, kind).content
        if isinstance(line, ModelSocket):
            session = int.from_bytes(line.sent[-1][:4], "little")
            yield from cycle([datagram_of(session, [content]) if content else said])
        said = answer_line(content) if content else said
        yield from cycle([said] if pause < 0.01 else [bytes((x,)) for x in said])

    line.talk, line.pause = words().__next__, pause


@pytest.mark.parametrize("pause", [0.002, 0.1, 0.9])
@pytest.mark.parametrize(("ahead", "kind"), [(1, Answer.EXPECTED), (0, Answer.DONE), (0, None)])
@pytest.mark.parametrize("make", LINES.values(), ids=[*LINES])
def test_every_call_ends_in_time(make: Make, ahead: int, kind: Answer | None, pause: float) -> None:
    line = make()
    let_talk(line, ahead, kind, pause)
    with pytest.raises(LinkError) as caught:
        line.link(TIMEOUT)
    assert line.now <= MOST_TIMEOUTS * TIMEOUT
    assert "\n" not in str(caught.value)
    for name, call in CALLS.items():
        line = make()
        link = line.link(TIMEOUT)
        link.write(BASE, b"fine")
        let_talk(line, ahead, kind, pause)
        start = line.now
        with suppress(LinkError):
            call(link)
            assert name == "close"
        assert line.now - start <= MOST_TIMEOUTS * TIMEOUT, name
        assert link.closed
