"""A forked process gets an error at once if it uses a device, whatever the parent's threads do."""

import os
import signal
from collections.abc import Callable
from threading import Event, Lock, Thread
from time import sleep
from typing import Any

import numpy as np
import pytest

import bitlane
from bitlane.api import default
from bitlane.arrays import value
from bitlane.driver import Driver
from bitlane.errors import BoardInUseError
from bitlane.links import Link, SerialLink, UdpLink, open_link
from bitlane_rtl.abi import CONTROL_BASE
from bitlane_sim.device import SimulatorLink
from support.board.line import DriverDevice, ModelPort, connected
from support.board.model import BoardModel
from support.command_line import opens
from support.host.arrays import model
from support.host.model_link import ModelLink
from support.host.network import network_board

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork"),
    # Threads that hold locks at a fork are the subject of these tests.
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
]

A = np.arange(64, dtype=np.uint8)
SECONDS = 20

FOREIGN = (
    "LinkError: {}: the device was opened in another process; open it here, after the fork:"
    " bitlane.open(url)"
)


def in_child(work: Callable[[], object]) -> str:
    """Run ``work`` in a forked process; return its result, or its error, as text."""
    receiver, sender = os.pipe()
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(SECONDS)
        try:
            text = str(work())
        except BaseException as error:  # noqa: BLE001, the parent judges it
            text = f"{type(error).__name__}: {error}"
        os.write(sender, text.encode())
        os._exit(0)
    os.close(sender)
    with os.fdopen(receiver) as answer:
        text = answer.read()
    assert os.waitpid(child, 0)[1] == 0, "the child did not end by itself"
    return text


class Stuck:
    """A device that another thread is calling, until ``end``."""

    def __init__(self) -> None:
        entered, self._go_on = Event(), Event()

        class Slow(ModelLink):
            def wait(link, timeout: float) -> bool:
                entered.set()
                assert self._go_on.wait(SECONDS)
                return super().wait(timeout)

        self.device = bitlane.Device(Driver(Slow()))
        self._thread = Thread(target=self.device.bit_not, args=(A,))
        self._thread.start()
        assert entered.wait(SECONDS)

    def end(self) -> None:
        self._go_on.set()
        self._thread.join(SECONDS)
        assert not self._thread.is_alive()


def test_a_child_of_a_thread_in_a_call_is_told_at_once() -> None:
    stuck = Stuck()
    device = stuck.device
    calls: list[Callable[[], Any]] = [
        lambda: device.bit_xor(A, A),
        lambda: device.driver.allocate(64),
        lambda: device.driver.read(0, 4),
        lambda: device.driver.run(()),
        device.driver.registers,
    ]
    for call in calls:
        assert in_child(call) == FOREIGN.format("model of the contract")
    stuck.end()
    assert np.array_equal(device.bit_not(A), ~A)


def test_a_child_may_close_what_it_has_not_opened() -> None:
    stuck = Stuck()

    def closed() -> str:
        with stuck.device as device:
            assert not device.closed
        return f"closed: {stuck.device.closed}"

    assert in_child(closed) == "closed: True"
    stuck.end()
    assert np.array_equal(stuck.device.bit_not(A), ~A)


def test_a_child_opens_devices_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    def own() -> str:
        with model() as device:
            return str(device.bit_not(A[:3]).tolist())

    assert in_child(own) == "[255, 254, 253]"
    opens(monkeypatch, lambda _: ModelLink(memory_bytes=1 << 15))
    monkeypatch.setattr(default, "opened", [model()])
    assert in_child(lambda: str(bitlane.bit_not(A[:3]).tolist())) == "[255, 254, 253]"
    with default._lock:  # as if another thread were opening it
        assert in_child(lambda: str(bitlane.bit_not(A[:2]).tolist())) == "[255, 254]"


@pytest.mark.parametrize("guard", [value._usage_guard, value._guard], ids=["usage", "value"])
def test_a_child_computes_whatever_another_thread_was_noting(guard: Lock) -> None:
    held = Event()

    def note() -> None:
        with guard:
            held.set()
            sleep(0.2)

    def computed() -> str:
        with model() as device:
            return str((device.asarray(A[:3]) ^ 1).tolist())

    thread = Thread(target=note)
    thread.start()
    assert held.wait(SECONDS)
    assert in_child(computed) == "[1, 0, 3]"
    thread.join(SECONDS)
    assert computed() == "[1, 0, 3]", "in the parent nobody holds it any more either"


# --- links without a driver -----------------------------------------------------------------------


def expect_refusal(link: Link) -> None:
    """Expect that each call raises in a child, but ``close``."""
    calls: list[Callable[[], object]] = [
        lambda: link.read(CONTROL_BASE, 4),
        lambda: link.write(CONTROL_BASE, bytes(4)),
        lambda: link.exchange([], [(CONTROL_BASE, 4)]),
        lambda: link.exchange(writes=[], reads=[]),
        lambda: link.wait(0),
    ]
    for call in calls:
        assert in_child(call) == FOREIGN.format(link.description)
    assert in_child(lambda: (link.close(), link.close())) == "(None, None)"


@pytest.mark.parametrize("kind", [SimulatorLink, SerialLink, UdpLink, ModelLink])
def test_every_kind_of_link_refuses_a_child(kind: type[Link]) -> None:
    link = kind.__new__(kind)
    link.description = "a link"
    link.close = lambda: None  # type: ignore[method-assign]
    expect_refusal(link)


def test_a_child_gets_no_bytes_of_its_parents_links() -> None:
    port = ModelPort(BoardModel())
    with network_board() as board, open_link(board.url) as network, connected(port) as serial:
        for link in (network, serial):
            link.write(0x1000, b"before")
            sent = len(board.different)
            expect_refusal(link)
            assert link.read(0x1000, 6).tobytes() == b"before"
            # A child has sent nothing: with the numbers of the parent it would have wrong bytes.
            assert len(board.different) == sent + (link is network)
        assert not port.closed


def test_a_child_that_closes_its_copy_leaves_the_session_alive() -> None:
    def leave() -> None:
        with device:
            raise SystemExit

    with network_board(DriverDevice()) as board, bitlane.open(board.url) as device:
        assert in_child(leave) == "SystemExit: "
        assert board.rules.alive
        with pytest.raises(BoardInUseError):
            bitlane.open(board.url)
        assert np.array_equal(device.bit_not(A), ~A)
    assert not board.rules.alive
