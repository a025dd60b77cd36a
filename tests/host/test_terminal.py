"""Long calls show how far they are: on a terminal alone, if wanted, and it is gone in the end."""

import os
import re
from collections.abc import Callable, Iterator
from io import StringIO
from select import select
from threading import TIMEOUT_MAX, active_count
from time import monotonic, sleep
from typing import Any, TextIO

import numpy as np
import pytest

import bitlane
from bitlane import Device
from bitlane.search import scan
from bitlane.terminal import track
from support.host.arrays import random, same
from support.host.line import line

GONE = "\r\033[K"


Terminal = Callable[[], Callable[[], str]]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Terminal:
    """Make standard error a terminal when called, and return a function that reads it.

    It does not show the seconds of a step that is slow because the computer is busy.
    """
    monkeypatch.setattr("bitlane.terminal.EVERY", TIMEOUT_MAX)

    def make() -> Callable[[], str]:
        monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
        return lambda: capsys.readouterr().err

    return make


@pytest.fixture
def wanted() -> Iterator[None]:
    bitlane.progress(True)
    yield
    bitlane.progress(False)


def test_items_are_counted_on_a_terminal_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(track(range(3), "name")) == [0, 1, 2]
    assert capsys.readouterr().err == ""


def closed() -> TextIO:
    stream = StringIO()
    stream.close()
    return stream


class WritesOnly:
    def write(self, text: str) -> None:
        raise AssertionError(text)


@pytest.mark.parametrize("stream", [None, closed(), WritesOnly()], ids=["none", "closed", "other"])
@pytest.mark.usefixtures("wanted")
def test_a_call_needs_no_standard_error(stream: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", stream)
    device, _ = line(memory_bytes=8 << 10)
    a = random(1 << 16, "u1")
    assert same(device.bit_not(a), np.invert(a))


def test_items_show_how_many_are_done(terminal: Terminal) -> None:
    shown = terminal()
    assert list(track(range(4), "name")) == [0, 1, 2, 3]
    assert shown() == "".join(f"{GONE}name            {x:3} %" for x in (0, 25, 50, 75)) + GONE


def expect_steps(shown: str, last: str, least: int) -> None:
    """Expect more than ``least`` steps, and that nothing stays on the terminal."""
    *steps, end = shown.split(GONE)
    assert end == ""
    assert steps[-1] == last
    percents = [int(text.split()[-2]) for text in steps[1:]]
    assert percents == sorted(set(percents))
    assert len(percents) > least


@pytest.mark.parametrize("remote", [True, False])
@pytest.mark.usefixtures("wanted")
def test_a_call_in_pieces_shows_how_far_it_is(remote: bool, terminal: Terminal) -> None:
    shown = terminal()
    device, _ = line(memory_bytes=8 << 10, remote=remote)
    a = random(1 << 16, "u1")
    assert same(device.bit_not(a), np.invert(a))
    expect_steps(shown(), "NOT, 65,536 bytes 100 %", 10)


@pytest.mark.usefixtures("wanted")
def test_a_large_call_is_cut_to_show_progress(terminal: Terminal) -> None:
    shown = terminal()
    device, _ = line(memory_bytes=8 << 20, remote=False)
    a = random(3 << 20, "u1")
    assert same(device.bit_not(a), np.invert(a))
    text = shown()
    assert "33 %" in text
    assert "66 %" in text


def test_nothing_is_shown_unless_wanted(terminal: Terminal) -> None:
    shown = terminal()
    device, _ = line()
    device.bit_not(random(1 << 16, "u1"))
    assert shown() == ""


@pytest.mark.usefixtures("wanted")
def test_nothing_is_shown_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    device, _ = line()
    device.bit_not(random(1 << 16, "u1"))
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("wanted")
def test_an_interrupt_clears_the_line_and_leaves_the_device_usable(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = terminal()
    device, link = line()
    a = random(1 << 16, "u1")
    exchange, left = link.exchange, 20

    def interrupted(*arguments: object) -> object:
        nonlocal left
        left -= 1
        if left == 0:
            raise KeyboardInterrupt
        return exchange(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(link, "exchange", interrupted)
    with pytest.raises(KeyboardInterrupt):
        device.bit_not(a)
    assert shown().endswith(f" %{GONE}")
    assert device.driver.allocator.pieces == 0
    assert same(device.bit_not(a), np.invert(a))


class PseudoTerminal:
    """Standard error on a pseudo-terminal. Its text is what a user has seen so far."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        self._master, slave = os.openpty()
        self.stream = os.fdopen(slave, "w", encoding="utf-8")
        self.text = ""

    def attach(self) -> None:
        """Make it standard error. Not before the test itself: pytest sets it before each phase."""
        self._monkeypatch.setattr("sys.stderr", self.stream)

    def read(self, seconds: float) -> str:
        """Return the text, after waiting up to ``seconds`` for more of it."""
        if select([self._master], [], [], seconds)[0]:
            self.text += os.read(self._master, 4096).decode()
        return self.text

    def wait_for(self, pattern: str) -> None:
        """Wait until the text matches ``pattern``: a device that takes as long as this."""
        deadline = monotonic() + 20
        while not re.search(pattern, self.read(0.01)):
            assert monotonic() < deadline, f"shown: {self.text!r}"

    def close(self) -> None:
        self.stream.close()
        os.close(self._master)


@pytest.fixture
def user(monkeypatch: pytest.MonkeyPatch) -> Iterator[PseudoTerminal]:
    pseudo = PseudoTerminal(monkeypatch)
    monkeypatch.setattr("bitlane.terminal.EVERY", 0.002)
    yield pseudo
    pseudo.close()


def slow_device(user: PseudoTerminal, call: str, pattern: str) -> Device:
    """Return a device whose link returns from each ``call`` once ``pattern`` is shown."""
    user.attach()
    device, link = line(memory_bytes=64 << 10, remote=False)
    original = getattr(link, call)

    def slow(*arguments: Any) -> Any:
        user.wait_for(pattern)
        return original(*arguments)

    setattr(link, call, slow)
    return device


ROWS_OF_BITS = random((40, 8), "u1")


def indexed(device: Device) -> bitlane.BinaryIndex:
    index = bitlane.BinaryIndex(device, 64)
    index.add(ROWS_OF_BITS)
    return index


def assign(device: Device) -> None:
    device.asarray(ROWS_OF_BITS)[...] = 0


SEARCHES: dict[str, Callable[[Device], object]] = {
    "search": lambda device: device.search(ROWS_OF_BITS, ROWS_OF_BITS, 1),
    "search of an index": lambda device: indexed(device).search(ROWS_OF_BITS, 1),
    "search within a radius": lambda device: indexed(device).range_search(ROWS_OF_BITS, 3),
}
SENDING = {
    "search of an index": SEARCHES["search of an index"],
    "expression": lambda device: (device.asarray(ROWS_OF_BITS) ^ 1).get(),
    "assignment": assign,
}
COMPUTING = {
    **SEARCHES,
    **SENDING,
    "mask": lambda device: device.asarray(ROWS_OF_BITS)[:, [3, 1]].get(),
    "operator": lambda device: device.bit_not(ROWS_OF_BITS),
    "pairs": lambda device: device.hamming(ROWS_OF_BITS[:, None], ROWS_OF_BITS),
    "reduction": lambda device: np.bitwise_or.reduce(device.asarray(ROWS_OF_BITS), axis=0).get(),
}


@pytest.mark.parametrize("call", COMPUTING.values(), ids=COMPUTING)
@pytest.mark.usefixtures("wanted")
def test_a_slow_computation_shows_its_seconds(
    call: Callable[[Device], object], user: PseudoTerminal
) -> None:
    call(slow_device(user, "wait", r"computing +\d+ s|\d %"))
    user.wait_for(rf"computing +\d+ s(?s:.*){re.escape(GONE)}\Z")


@pytest.mark.usefixtures("wanted")
def test_an_interrupt_ends_the_seconds(user: PseudoTerminal) -> None:
    device = slow_device(user, "wait", r"computing +\d+ s")
    link, threads = device.driver.link, active_count()
    wait = link.wait

    def interrupted(timeout: float) -> bool:
        wait(timeout)
        raise KeyboardInterrupt

    setattr(link, "wait", interrupted)  # noqa: B010
    with pytest.raises(KeyboardInterrupt):
        SENDING["expression"](device)
    assert active_count() == threads
    user.wait_for(rf"{re.escape(GONE)}\Z")
    setattr(link, "wait", wait)  # noqa: B010
    assert same(device.bit_not(ROWS_OF_BITS), ~ROWS_OF_BITS)


@pytest.mark.parametrize("call", SENDING.values(), ids=SENDING)
@pytest.mark.usefixtures("wanted")
def test_a_slow_transfer_shows_its_seconds(
    call: Callable[[Device], object], user: PseudoTerminal
) -> None:
    device = slow_device(user, "write", r"(computing|sending|receiving) +\d+ s")
    call(device)
    user.wait_for(r"sending +\d+ s")


@pytest.mark.parametrize("call", COMPUTING.values(), ids=COMPUTING)
def test_a_slow_call_shows_nothing_unless_wanted(
    call: Callable[[Device], object], user: PseudoTerminal
) -> None:
    user.attach()
    device, link = line(memory_bytes=64 << 10, remote=False)
    wait = link.wait
    setattr(link, "wait", lambda timeout: (sleep(0.01), wait(timeout))[1])  # noqa: B010
    call(device)
    assert user.read(0) == ""


@pytest.mark.parametrize("call", SEARCHES.values(), ids=SEARCHES)
@pytest.mark.usefixtures("wanted")
def test_a_search_in_tiles_shows_how_far_it_is(
    call: Callable[[Device], object], terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan, "SHOWN_BYTES", 512)
    shown = terminal()
    device, _ = line(memory_bytes=1 << 20, remote=False)
    call(device)
    expect_steps(shown(), "search, 1,600 distances 100 %", 3)


@pytest.mark.usefixtures("wanted")
def test_results_of_a_search_do_not_depend_on_progress(terminal: Terminal) -> None:
    terminal()
    device, _ = line(memory_bytes=8 << 20, remote=False)
    rows = random((300, 8), "u1")
    found = device.search(rows, rows, 3)
    bitlane.progress(False)
    for one, other in zip(found, device.search(rows, rows, 3), strict=True):
        assert same(one, other)


@pytest.mark.usefixtures("wanted")
def test_nothing_is_shown_in_a_pipe(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bitlane.terminal.EVERY", 0.001)
    device, link = line(memory_bytes=64 << 10, remote=False)
    wait = link.wait
    setattr(link, "wait", lambda timeout: (sleep(0.02), wait(timeout))[1])  # noqa: B010
    for call in COMPUTING.values():
        call(device)
    assert capsys.readouterr().err == ""
