"""Opening ``serial:`` URLs, and pyserial itself on a pseudo-terminal."""

import errno
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import serial

import bitlane
from bitlane.errors import LinkError
from bitlane.links import serial as serial_module
from bitlane.links.link import open_link as open_any_link
from bitlane.links.serial import open_link
from bitlane_rtl.abi import ABI_VERSION, IDENTITY
from support.board.driver import DriverDevice
from support.board.line import Noise
from support.board.model import BoardModel
from support.board.pty import Terminal, terminal

BASE = 0x1000


@pytest.fixture
def board() -> BoardModel:
    return BoardModel()


@pytest.fixture
def board_terminal(board: BoardModel) -> Iterator[Terminal]:
    with terminal(board.feed) as opened:
        yield opened


# --- with a board ---------------------------------------------------------------------------------


def test_a_board_is_reached_through_pyserial(board: BoardModel, board_terminal: Terminal) -> None:
    device = board.memory_device
    data = Random(1).randbytes(20_000)
    with open_any_link(f"serial:{board_terminal.path}") as link:
        assert link.description == f"serial port {board_terminal.path}, 3000000 baud"
        link.write(BASE, data)
        assert bytes(device.memory[: len(data)]) == data
        assert link.read(BASE, len(data)).tobytes() == data
        (got,) = link.exchange([(BASE + 30_000, data)], [(BASE, len(data))])
        assert got.tobytes() == data
        assert link.wait(0.05) is False
        device.interrupt = True
        assert link.wait(60) is True


def test_options_reach_the_port(board_terminal: Terminal) -> None:
    url = f"serial:{board_terminal.path}?baud=115200&timeout=3.5"
    with open_link(url) as link:
        assert link.description == f"serial port {board_terminal.path}, 115200 baud"
        assert link._timeout == 3.5
        port: Any = link._port
        assert link.byte_seconds == 10 / 115200
        assert (port.baudrate, port.write_timeout, port.exclusive) == (115200, 3.5, True)


def test_a_board_can_be_opened_again_and_again(board_terminal: Terminal) -> None:
    for turn in range(5):
        with open_link(f"serial:{board_terminal.path}") as link:
            link.write(BASE, bytes((turn,)) * 100)
            assert link.read(BASE, 100).tobytes() == bytes((turn,)) * 100


def test_noise_on_a_terminal(board: BoardModel) -> None:
    up, down = Noise(1 / 500, 5), Noise(1 / 500, 6)
    data = Random(1).randbytes(4000)
    with terminal(lambda sent: board.feed(up(sent)), down) as opened:
        with open_link(f"serial:{opened.path}") as link:
            link.write(BASE, data)
            assert link.read(BASE, len(data)).tobytes() == data
    assert up.hits + down.hits > 5


def test_the_whole_driver_through_pyserial() -> None:
    board = BoardModel(DriverDevice())
    with terminal(board.feed) as opened, bitlane.open(f"serial:{opened.path}") as device:
        a = np.arange(3000, dtype=np.uint32)
        b = a[::-1] * 77
        np.testing.assert_array_equal(device.bit_xor(a, b), a ^ b)
        assert opened.path in repr(device)


def test_another_contract_version_is_refused() -> None:
    device = DriverDevice()
    device.link.registers["VERSION"] = 99
    board = BoardModel(device)
    with terminal(board.feed) as opened:
        expected = f"register VERSION is 0x63; expected {ABI_VERSION:#x}"
        with pytest.raises(LinkError, match=f"{opened.path}, 3000000 baud: {expected}"):
            bitlane.open(f"serial:{opened.path}")
        del device.link.registers["VERSION"]
        bitlane.open(f"serial:{opened.path}").close()
        device.link.registers["IDENTITY"] = IDENTITY ^ 1
        with pytest.raises(LinkError, match="register IDENTITY is"):
            bitlane.open(f"serial:{opened.path}")


# --- without --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda sent: b"", r"within 1 s; nothing came at all"),
        (lambda sent: sent, r"within 1 s; \d+ bytes came, first 00 .* no sound"),
    ],
    ids=["silence", "an echo"],
)
def test_a_terminal_without_a_board(answer: Callable[[bytes], bytes], message: str) -> None:
    with terminal(answer) as opened, pytest.raises(LinkError, match=message):
        open_link(f"serial:{opened.path}?timeout=1")


def test_a_cable_that_is_pulled(board: BoardModel) -> None:
    with terminal(board.feed) as opened:
        link = open_link(f"serial:{opened.path}?timeout=2")
        link.write(BASE, bytes(1000))
        opened.pull()
        with pytest.raises(LinkError, match=r"the port failed: .*still plugged in.* open it again"):
            link.write(BASE, bytes(10_000))
    with terminal(board.feed) as opened, open_link(f"serial:{opened.path}") as link:
        link.write(BASE, b"well again")
        assert link.read(BASE, 10).tobytes() == b"well again"


def test_a_cable_that_is_pulled_in_the_midst_of_a_transfer(board: BoardModel) -> None:
    seen = 0

    def serve(sent: bytes) -> bytes:
        nonlocal seen
        seen += len(sent)
        if seen > 30_000:
            opened._end.set()
            os.close(opened._slave)
            os.close(opened._master)
            return b""
        return board.feed(sent)

    opened = Terminal(serve, Noise(0, 0))
    link = open_link(f"serial:{opened.path}?timeout=2")
    with pytest.raises(LinkError, match="the port failed"):
        link.write(BASE, bytes(100_000))
    with terminal(board.feed) as again, open_link(f"serial:{again.path}") as link:
        assert link.read(BASE, 10).tobytes() == bytes(10)


def test_a_port_that_does_not_exist() -> None:
    with pytest.raises(LinkError, match=r"no such port; serial ports found: ") as caught:
        open_link("serial:/dev/ttyNoSuchPort")
    assert str(caught.value).startswith("device 'serial:/dev/ttyNoSuchPort': ")


def test_a_port_in_use(board_terminal: Terminal) -> None:
    url = f"serial:{board_terminal.path}"
    with open_link(url) as link:
        with pytest.raises(LinkError, match="the port is in use by another program; close that"):
            open_link(url)
        link.write(BASE, b"not disturbed")
    open_link(url).close()


def test_a_failed_opening_leaves_the_port_free(board: BoardModel) -> None:
    silent = True
    with terminal(lambda sent: b"" if silent else board.feed(sent)) as opened:
        url = f"serial:{opened.path}"
        with pytest.raises(LinkError, match="nothing came"):
            open_link(f"{url}?timeout=0.3")
        silent = False
        open_link(url).close()


def test_a_file_that_is_no_port(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("text")
    for path in (file, tmp_path, "/dev/null"):
        with pytest.raises(LinkError, match=r"cannot be opened: .*; is it a serial port"):
            open_link(f"serial:{path}")
    assert file.read_text() == "text"


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (errno.EACCES, "no permission to open the port; on Linux: sudo usermod -aG dialout"),
        (errno.EPERM, "no permission"),
        (errno.EBUSY, "in use by another program"),
        (errno.ENXIO, "nothing is plugged in there"),
        (errno.ENODEV, "nothing is plugged in there"),
        (errno.EIO, "cannot be opened: .*could not open port"),
        (None, "cannot be opened: .*could not open port"),
    ],
)
def test_unusable_ports(number: int | None, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        if number is None:
            raise serial.SerialException("could not open port")
        raise serial.SerialException(number, "could not open port")

    monkeypatch.setattr(serial, "Serial", fail)
    with pytest.raises(LinkError, match=message) as caught:
        open_link("serial:/dev/ttyUSB0")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("baud", [99_999_999_999_999, 1 << 40])
def test_a_baud_rate_that_the_port_refuses(baud: int, board_terminal: Terminal) -> None:
    with pytest.raises(LinkError, match=f"baud is {baud}, which the port refuses"):
        open_link(f"serial:{board_terminal.path}?baud={baud}&timeout=0.3")


def test_without_pyserial(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [x for x in sys.modules if x == "serial" or x.startswith("serial.")]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "serial", None)
    with pytest.raises(
        LinkError, match=r"pyserial cannot be loaded: .*pip install 'bitlane\[serial\]'"
    ):
        open_link("serial:/dev/ttyUSB0")
    with pytest.raises(LinkError, match="serial:/dev/ttyUSB1 is an example"):
        open_link("serial:")


def test_the_link_itself_needs_no_pyserial() -> None:
    assert "serial" not in vars(serial_module)
