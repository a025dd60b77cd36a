"""The device for NumPy arrays: results are NumPy's, and the device's own."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import bitlane
from bitlane import Device, LinkError, UnsupportedError, reference
from bitlane.api import default
from bitlane.driver import Driver
from bitlane.links import Batch, DatagramSocket, UdpLink
from bitlane_rtl.abi import CONTROL_BASE, Lane, Mode, Op
from support.board.line import DriverDevice
from support.command_line import opens
from support.host.arrays import TYPES, link_of, model, random, same
from support.host.model_link import ModelLink
from support.host.network import network_board
from support.host.refusals import takes_or_refuses

NAMES_OF_TWO = ("bit_and", "bit_xor", "bit_nor", "bit_shift_left", "hamming", "jaccard")


# --- what the operators give ------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [*TYPES, ">u2", ">i4", ">f8", ">u8"])
def test_operators_are_the_references_on_every_type(device: Device, dtype: str) -> None:
    """Results have the native byte order, and outputs their own."""
    width = 8 * np.dtype(dtype).itemsize
    a, b = random((6, width + 4), dtype, 1), random((6, width + 4), dtype, 2)
    native = a.dtype.newbyteorder("=")
    x, y = a.astype(native), b.astype(native)
    expected = reference.bit_not(x)
    assert same(device.bit_not(a), expected)
    out = np.zeros(a.shape, dtype)
    assert device.bit_not(a, out=out) is out
    assert same(out.astype(native), expected)
    for name in ("bit_and", "bit_or", "bit_xor"):
        assert same(getattr(device, name)(a, b), getattr(reference, name)(x, y)), name
        assert same(getattr(device, name)(a, y), getattr(reference, name)(x, y)), name
    for counts in (np.uint8, np.uint32):
        assert same(device.bit_count(a, counts), reference.bit_count(x, counts))
    if a.dtype.kind in "iu":
        distance = np.arange(width + 4).astype(dtype)
        assert same(device.bit_shift_left(a, distance), np.left_shift(x, distance.astype(native)))
        assert same(device.bit_shift_right(a, distance), np.right_shift(x, distance.astype(native)))
        assert same(device.bit_shift_right(a, 3), np.right_shift(x, 3))


def test_two_operands_may_both_be_numbers_or_lists(device: Device) -> None:
    assert device.bit_xor(5, 3).tolist() == 6
    assert device.bit_xor([1, 2], [3, 4]).tolist() == [2, 6]
    assert same(device.bit_and(255, A), A)
    assert device.bit_count(np.array([-1], np.int64)).dtype == np.uint8


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (1,), (1, 1, 1), (2,) * 12])
def test_any_rank(device: Device, shape: tuple[int, ...]) -> None:
    a = random(shape, "u2")
    assert same(device.bit_not(a), np.asarray(np.invert(a)))
    assert same(device.bit_count(a), np.asarray(np.bitwise_count(a)))
    assert isinstance(device.bit_not(a), np.ndarray)


def test_nothing_to_do_touches_nothing(device: Device) -> None:
    link_of(device).traffic.clear()
    device.bit_xor(np.zeros((0, 3), np.uint8), np.zeros((1, 3), np.uint8))
    assert link_of(device).traffic == []


# --- lean circuits ----------------------------------------------------------------------------


@pytest.mark.parametrize("data_bytes", [4, 16])
@pytest.mark.parametrize("loops", [1, 2])
def test_small_circuits_give_the_same(data_bytes: int, loops: int) -> None:
    device = model(
        data_bytes=data_bytes,
        loops=loops,
        modes=frozenset({Mode.DENSE}),
        lanes=frozenset({Lane.BITS_8, Lane.BITS_16, Lane.BITS_32}),
        slots=2,
        read_ports=1,
    )
    a, b = random((6, 8), "u8", 1), random((6, 1), "u8", 2)
    assert same(device.bit_xor(a[::2, ::-1], b[::2]), np.bitwise_xor(a[::2, ::-1], b[::2]))
    with pytest.raises(UnsupportedError, match="64-bit lanes for COUNT"):
        device.bit_count(a)


@pytest.mark.parametrize("dtype", ["u2", "i4", "f8"])
def test_counts_of_32_bits_need_no_lane_as_wide_as_the_element(dtype: str) -> None:
    device = model(lanes=frozenset({Lane.BITS_8}))
    a = random((6, 8), dtype)[::2, ::-1]
    assert same(device.bit_count(a, np.uint32), reference.bit_count(a).astype(np.uint32))
    with pytest.raises(UnsupportedError, match="lanes for COUNT"):
        device.bit_count(a, np.uint8)


def test_an_operation_that_the_circuit_lacks() -> None:
    device = model(ops=frozenset({Op.NOT}))
    with pytest.raises(UnsupportedError, match="without XOR"):
        device.bit_xor(np.zeros(2, np.uint8), 1)
    assert device.driver.allocator.pieces == 0


# --- the device computes, not the host --------------------------------------------------------


class LyingLink(ModelLink):
    """A device whose results are all 0x5A."""

    def read(self, address: int, size: int) -> NDArray[np.uint8]:
        data = super().read(address, size)
        return data if address >= CONTROL_BASE else np.full(size, 0x5A, np.uint8)


def test_results_are_what_the_device_says() -> None:
    device = Device(Driver(LyingLink(memory_bytes=1 << 12)))
    a = random((30, 40), "u1")
    results = [device.bit_not(a), device.bit_xor(a, 1), device.bit_shift_left(a[::-2], 9)]
    for result in (*results, device.bit_count(a.T)):
        assert set(np.unique(result)) == {0x5A}


# --- opening ----------------------------------------------------------------------------------


def test_a_device_is_a_context(monkeypatch: pytest.MonkeyPatch) -> None:
    link = ModelLink()
    opens(monkeypatch, lambda _: link)
    with bitlane.open("model:1") as device:
        assert repr(device) == "<bitlane.Device: model of the contract>"
        device.timeout = 3
        assert device.driver.timeout == device.timeout == 3
        assert not link.closed
    assert link.closed


def test_a_device_that_cannot_be_used_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    link = ModelLink(registers={"IDENTITY": 1})
    opens(monkeypatch, lambda _: link)
    with pytest.raises(LinkError, match="IDENTITY"):
        bitlane.open("model")
    assert link.closed


@pytest.mark.parametrize("url", [None, 3, b"sim", Path("sim")])
def test_what_is_no_url(url: Any) -> None:
    with pytest.raises(LinkError, match=r"expected a URL as text, like 'sim'$") as caught:
        bitlane.open(url)
    assert "\n" not in str(caught.value)


A = np.arange(6, dtype=np.uint8)


@pytest.mark.parametrize(
    "call",
    [
        *(
            lambda d, x, name=name: getattr(d, f"bit_{name}")(x)
            for name in ("not", "copy", "count")
        ),
        *(lambda d, x, name=name: getattr(d, name)(A, x) for name in NAMES_OF_TWO),
        *(lambda d, x, name=name: getattr(d, name)(x, A) for name in NAMES_OF_TWO),
        lambda d, x: d.bit_xor(A, A, out=x),
        lambda d, x: d.bit_xor(A, A, casting=x),
        lambda d, x: d.bit_count(A, x),
        lambda d, x: d.bit_count(A, out=x),
        lambda d, x: d.asarray(x),
        lambda d, x: d.asarray(A, x),
        lambda d, x: setattr(d, "timeout", x),
        lambda d, x: bitlane.open(x),
        lambda d, x: bitlane.Device(x),
    ],
)
def test_an_argument_of_any_kind_is_taken_or_refused_in_one_line(
    device: Device, call: Callable[[Device, Any], Any]
) -> None:
    takes_or_refuses(lambda value: call(device, value))


@pytest.fixture
def urls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the URLs of which default devices are opened; all are models."""
    monkeypatch.setattr(default, "opened", [])
    return opens(monkeypatch, lambda _: ModelLink(memory_bytes=1 << 15))


def test_functions_share_one_device(urls: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BITLANE_DEVICE", "model:x")
    a = random(10, "u1")
    assert same(bitlane.bit_not(a), np.invert(a))
    for name in ("and", "or", "xor"):
        numpys = getattr(np, f"bitwise_{name}")
        assert same(getattr(bitlane, f"bit_{name}")(a, 3), numpys(a, 3)), name
    assert same(bitlane.bit_shift_left(a, 3), np.left_shift(a, 3))
    assert same(bitlane.bit_shift_right(a, 3), np.right_shift(a, 3))
    assert same(bitlane.bit_count(a, np.uint32), np.bitwise_count(a).astype("u4"))
    assert urls == ["model:x"]


def test_the_default_is_the_simulator(urls: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BITLANE_DEVICE", raising=False)
    assert bitlane.default_device() is bitlane.default_device()
    assert urls == ["sim"]


@pytest.mark.usefixtures("urls")
def test_leaving_a_with_statement_leaves_the_default_device_open() -> None:
    with bitlane.default_device() as device:
        pass
    assert device.bit_not(np.uint8(1)) == 254
    assert bitlane.default_device() is device
    device.close()
    assert bitlane.default_device() is not device, "closed on purpose: the next one is new"


@pytest.mark.parametrize("error", [KeyboardInterrupt, LinkError])
def test_after_an_error_of_the_link_the_default_device_is_opened_anew(
    error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Failing(DatagramSocket):
        def receive(self, seconds: float) -> list[Batch]:
            raise error

    a = random(10, "u1")
    with network_board(DriverDevice()) as board:
        monkeypatch.setattr(default, "opened", [])
        monkeypatch.setenv("BITLANE_DEVICE", board.url)
        device = bitlane.default_device()
        link = device.driver.link
        assert isinstance(link, UdpLink)
        monkeypatch.setattr(link._socket, "__class__", Failing)
        with pytest.raises(error):
            bitlane.bit_not(a)
        assert device.closed
        # The socket that failed could not say goodbye.
        board.rules.alive_until = 0.0
        assert same(bitlane.bit_not(a), np.invert(a))
        assert bitlane.default_device() is not device
        bitlane.default_device().close()


@pytest.mark.parametrize("of_the_device", [True, False], ids=["device", "driver"])
def test_a_closed_device_says_so_whatever_is_asked_of_it(of_the_device: bool) -> None:
    device = model()
    (device if of_the_device else device.driver).close()
    assert device.closed
    assert repr(device).endswith(", closed>")
    for size in (0, 4):
        with pytest.raises(LinkError, match=r"the device is closed; bitlane\.open opens it anew"):
            device.bit_not(np.empty(size, np.uint8))
    with pytest.raises(LinkError, match="is closed"), device:
        raise AssertionError("a closed device was entered")


@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), 10**400, -1, 0, "5", None])
def test_a_timeout_that_is_none_is_refused_at_once(seconds: Any) -> None:
    device = model()
    with pytest.raises(bitlane.SettingError, match=r"timeout: .*; expected seconds, 0 < timeout"):
        device.timeout = seconds
    assert device.timeout == 60
    device.timeout = np.float32(2)
    assert device.timeout == 2


def test_importing_bitlane_imports_no_more_than_it_needs() -> None:
    code = (
        "import bitlane;"
        "assert not {'amaranth', 'bitlane_sim', 'bitlane.dml'} & set(sys.modules);"
        "bitlane.dml.DataType; assert 'bitlane.dml' in sys.modules"
    )
    path = [entry for entry in sys.path if entry]
    subprocess.run([sys.executable, "-c", f"import sys; sys.path[:0] = {path}; {code}"], check=True)


def test_an_unknown_attribute() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        bitlane.__getattr__("nonsense")
