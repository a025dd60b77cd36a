"""Long calls show how far they are: on a terminal alone, if wanted, and it is gone in the end."""

from collections.abc import Callable, Iterator
from io import StringIO
from typing import TextIO

import numpy as np
import pytest

import bitlane
from bitlane.terminal import track
from support.host.arrays import random, same
from support.host.line import line

GONE = "\r\033[K"


Terminal = Callable[[], Callable[[], str]]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Terminal:
    """Make standard error a terminal when called, and return a function that reads it."""

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


@pytest.mark.parametrize("remote", [True, False])
@pytest.mark.usefixtures("wanted")
def test_a_call_in_pieces_shows_how_far_it_is(remote: bool, terminal: Terminal) -> None:
    shown = terminal()
    device, _ = line(memory_bytes=8 << 10, remote=remote)
    a = random(1 << 16, "u1")
    assert same(device.bit_not(a), np.invert(a))
    *steps, end = shown().split(GONE)
    assert end == ""
    assert steps[-1] == "NOT, 65,536 bytes 100 %"
    percents = [int(text.split()[-2]) for text in steps[1:]]
    assert percents == sorted(set(percents))
    assert len(percents) > 10


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
