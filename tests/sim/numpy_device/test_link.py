"""URLs of the device `numpy`: what they configure, what is refused, and what is imported."""

import gc
import sys
from collections.abc import Iterator
from weakref import ref

import numpy as np
import pytest
from numpy.typing import NDArray

import bitlane
from bitlane.errors import LinkError
from bitlane_rtl.abi import (
    CONTROL_BASE,
    RING_OFFSET,
    Lane,
    Mode,
    Op,
    Status,
    record_words,
    register,
)
from bitlane_sim.numpy_device.link import NumpyLink, open_link
from support.processes import succeed
from support.rtl.records import reseal
from support.sim.beside import raw_record


@pytest.fixture
def link() -> Iterator[NumpyLink]:
    with open_link("numpy?memory=4KiB") as link:
        yield link


def test_it_says_what_it_is() -> None:
    with bitlane.open("numpy?width=128") as device:
        assert device.driver.link.description == "numpy model, 128 bits, no circuit"
        assert device.driver.link.cycles is None
        assert device.driver.link.predicted


def test_options_are_those_of_a_circuit() -> None:
    options = "width=32&ports=1&memory=64KiB&loops=2&slots=8&ops=xor,count&modes=dense&lanes=8,32"
    with bitlane.open(f"numpy?{options}&search=3,128,64,8") as device:
        geometry = device.driver.geometry
        assert (geometry.data_bytes, geometry.read_ports, geometry.loops) == (4, 1, 2)
        assert (geometry.memory_bytes, geometry.slots) == (1 << 16, 8)
        assert geometry.ops == {Op.XOR, Op.COUNT, Op.SEARCH}
        assert geometry.modes == {Mode.DENSE}
        assert geometry.lanes == {Lane.BITS_8, Lane.BITS_32}
        assert geometry.search is not None
        assert (geometry.search.units, geometry.search.row_bytes) == (3, 16)


_BESIDE = "beside board=hx8k, which has a circuit; "


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (":compiled", "'compiled' after numpy; expected numpy?OPTION"),
        ("?stall=3", "no option 'stall'; choose width, ports,"),
        ("?latency=-1", "latency: -1; expected 0 to 255"),
        ("?latency=256", "latency: 256; expected 0 to 255"),
        ("?width=7", "option width: 7 is not supported; expected 32,"),
        ("?memory=4GiB", "option memory: 4294967296; expected up"),
        ("?memory=3GiB", "option memory: 3221225472; expected up to"),
        ("?memory=5", "option memory: 5; expected a multiple of"),
        ("?board=hx9k", "option board: 'hx9k'; choose icebreaker, icebreaker-bram, hx8k, ulx3s,"),
        ("?board=", "option board: ''; choose icebreaker,"),
        ("?board=hx8k&width=64", f"option width: {_BESIDE}expected"),
        ("?memory=1MiB&board=hx8k", f"option memory: {_BESIDE}"),
        ("?board=ulx3s&record=-1", "option record: -1; expected 0 or more entries"),
    ],
)
def test_other_urls_are_refused_in_one_line(options: str, message: str) -> None:
    with pytest.raises(LinkError) as error:
        bitlane.open(f"numpy{options}")
    assert str(error.value).startswith(f"device 'numpy{options}': {message}")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("address", "size", "message"),
    [
        *(
            (x, n, f"{n} bytes at {x:#x} are outside the memory")
            for x, n in ((4000, 97), (4096, 1))
        ),
        (1 << 31, 4, "outside the memory, 0x0 to 0xfff"),
        *(
            (CONTROL_BASE + x, n, "not whole words of the control window")
            for x, n in ((2, 4), (0, 3), (0x3FFC, 8))
        ),
    ],
)
def test_other_accesses_are_refused(link: NumpyLink, address: int, size: int, message: str) -> None:
    with pytest.raises(LinkError, match=message):
        link.read(address, size)
    with pytest.raises(LinkError, match=message):
        link.write(address, bytes(size))


def test_a_read_is_a_copy(link: NumpyLink) -> None:
    before = link.read(0, 8)
    link.write(0, bytes(range(8)))
    assert before.tolist() == [0] * 8
    assert link.read(0, 8).tolist() == list(range(8))


def test_the_memory_of_a_dropped_device_is_free_at_once() -> None:
    gc.disable()  # it comes seldom, and the memory may be large
    try:
        device = bitlane.open("numpy?memory=1MiB")
        assert int((device.asarray([1, 2]) ^ 1).sum()) == 3
        device.driver.counters()
        assert device.driver.link.memory_view is not None
        memory = ref(device.driver.link.memory_view)
        del device
        assert memory() is None
    finally:
        gc.enable()


def test_a_closed_link_refuses_all_calls(link: NumpyLink) -> None:
    link.close()
    link.close()
    link.forget(0, 4096)
    for call in (lambda: link.read(0, 4), lambda: link.write(0, bytes(4)), lambda: link.wait(0)):
        with pytest.raises(LinkError, match="numpy model, 64 bits, no circuit: the link is closed"):
            call()


@pytest.mark.parametrize(("mib", "left"), [(64, 0), (1, 7)])
def test_much_memory_that_is_forgotten_takes_no_room(mib: int, left: int) -> None:
    with open_link("numpy?memory=128MiB") as link:
        link.memory_view[:] = 7
        link.forget(0, mib << 20)
        assert np.unique(link.memory_view[: mib << 20]).tolist() == [left]
        assert link.memory_view[mib << 20] == 7


def endless(op: Op) -> NDArray[np.uint32]:
    """Return the record of 2**60 steps over the same bytes."""
    size = 1 << (2 if op.counts else 0)
    counts = {f"COUNT_{loop}": (1 << 20) - 1 for loop in (1, 2, 3)}
    addresses = {"B_BASE": 64, "B_LAST": 64, "Y_BASE": 128, "Y_LAST": 131}
    words = raw_record({"OP": op, "OUT_LANE": size // 2, "LOOPS": 4}, RUN=1, **addresses, **counts)
    return np.array(reseal(words, record_words(op, 4, (0, 0, 0))), "<u4")


@pytest.mark.parametrize("op", [Op.XOR, Op.XNOR, Op.COUNT_XOR])
def test_a_command_without_an_end_is_pending(op: Op) -> None:
    """Until CLEAR."""
    with bitlane.open("numpy?memory=4KiB") as device:
        driver = device.driver
        driver.timeout = 0.2
        link = driver.link
        link.write(CONTROL_BASE + RING_OFFSET, endless(op))
        driver.write_register("DOORBELL", 1)
        assert driver.read_register("STATUS") == 0b101
        assert driver.read_register("RETIRED") == 0
        assert link.wait(0.01) is False
        driver.write_register("CLEAR", 1)
        assert driver.read_register("STATUS") == 0b100
        assert device.bit_not(np.uint8([1])).tolist() == [254]


def test_a_doorbell_that_goes_back_behind_a_command_without_an_end_is_refused() -> None:
    with bitlane.open("numpy?memory=4KiB") as device:
        driver = device.driver
        driver.link.write(CONTROL_BASE + RING_OFFSET, endless(Op.XOR))
        driver.write_register("DOORBELL", 2)
        assert driver.read_register("FAULT") == 0
        driver.write_register("DOORBELL", 1)
        assert register("FAULT")["CODE"].extract(driver.read_register("FAULT")) == (
            Status.BAD_DOORBELL
        )


def test_jobs_are_predicted_one_by_one_when_there_are_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No call predicts all those before, and the sum is the same."""

    def sums(most: int) -> tuple[int, int]:
        monkeypatch.setattr("bitlane_sim.numpy_device.counters._MOST", most)
        with bitlane.open("numpy?memory=64KiB") as device:
            stored = 0
            for size in range(1, 12):
                device.bit_not(np.zeros(size * 16, np.uint8))
                stored = max(stored, len(device.driver.link._counters._jobs))
            return stored, device.driver.counters()["BUSY_CYCLES"]

    assert sums(100)[0] > 4
    assert sums(4) == (4, sums(100)[1])


def test_neither_amaranth_nor_cppsim_is_imported() -> None:
    code = """
import sys
import numpy as np
import bitlane
with bitlane.open("numpy") as device:
    assert device.bit_xor(np.uint8([1, 2]), np.uint8([3, 3])).tolist() == [2, 1]
print(*sorted(name for name in sys.modules if name.partition(".")[0] in ("amaranth", "cppsim")))
"""
    assert succeed(sys.executable, "-c", code) == "\n"
