"""Pieces of device memory never overlap; the last reference frees them, and they merge again.

The driver writes and reads the memory, but nothing outside of it.
"""

import gc
import pickle
from threading import Thread
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from bitlane.driver import Allocation, Allocator, Driver, Storage
from bitlane.errors import DeviceError, LinkError, OutOfDeviceMemory
from bitlane_rtl.abi import CONTROL_BASE, register
from support.host.model_link import ModelLink

BASE, SIZE = 0x1008, 4096
FIRST, LAST = 0x1040, BASE + SIZE
"""The first address of a piece, and the end of the memory."""


def taken_by(piece: Allocation) -> range:
    """Return the whole blocks of 64 bytes of ``piece``, but for a shorter one at the end."""
    end = piece.address + max(piece.size, 1)
    return range(piece.address, min(-(-end // 64) * 64, LAST))


class AnyUse(RuleBasedStateMachine):
    """Random allocations and frees, compared with a plain map of bytes."""

    def __init__(self) -> None:
        super().__init__()
        self.allocator = Allocator(BASE, SIZE)
        self.held: list[Allocation] = []
        self.taken: set[int] = set()

    @rule(size=st.integers(0, 1500))
    def allocate(self, size: int) -> None:
        try:
            piece = self.allocator.allocate(size)
        except OutOfDeviceMemory:
            assert not any(
                self.taken.isdisjoint(range(start, start + max(size, 1)))
                for start in range(FIRST, LAST - max(size, 1) + 1, 64)
            )
            return
        assert piece.size == size
        assert piece.address % 64 == 0
        assert piece.address >= FIRST
        assert piece.address + size <= LAST
        assert self.taken.isdisjoint(taken_by(piece))
        self.taken.update(taken_by(piece))
        self.held.append(piece)

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def free(self, data: st.DataObject) -> None:
        piece = self.held.pop(data.draw(st.integers(0, len(self.held) - 1)))
        self.allocator.free(piece)
        self.taken.difference_update(taken_by(piece))
        with pytest.raises(DeviceError, match="not allocated"):
            self.allocator.free(piece)

    @invariant()
    def counts_are_right(self) -> None:
        assert self.allocator.free_bytes == LAST - FIRST - len(self.taken)
        assert self.allocator.pieces == len(self.held)

    def teardown(self) -> None:
        for piece in self.held:
            self.allocator.free(piece)
        assert self.allocator.allocate(LAST - FIRST) == Allocation(FIRST, LAST - FIRST)


TestAnyUse = AnyUse.TestCase
TestAnyUse.settings = settings(stateful_step_count=30)


def test_the_smallest_hole_that_fits_is_taken() -> None:
    allocator = Allocator(0, 1024)
    pieces = [allocator.allocate(size) for size in (256, 64, 128, 64, 512)]
    allocator.free(pieces[0])
    allocator.free(pieces[2])
    assert allocator.allocate(100) == Allocation(pieces[2].address, 100)


def test_an_error_says_what_is_free() -> None:
    allocator = Allocator(0, 256)
    allocator.allocate(100)
    with pytest.raises(OutOfDeviceMemory, match=r"200 bytes do not fit; .* has 128 of 128 free"):
        allocator.allocate(200)
    with pytest.raises(MemoryError):
        allocator.allocate(200)


def test_what_small_pieces_leave_is_not_called_free() -> None:
    allocator = Allocator(0, 640)
    for _ in range(10):
        allocator.allocate(8)
    with pytest.raises(OutOfDeviceMemory, match=r"8 bytes do not fit; .* has 0 of 0 free bytes"):
        allocator.allocate(8)


def test_a_full_memory_has_no_hole() -> None:
    allocator = Allocator(0, 64)
    allocator.allocate(64)
    assert (allocator.largest(), allocator.free_bytes) == (0, 0)


def test_nonsense_is_refused() -> None:
    with pytest.raises(ValueError, match="0 or more bytes"):
        Allocator(0, 64).allocate(-1)
    with pytest.raises(ValueError, match="at least 1 byte"):
        Allocator(0, 0)


@pytest.mark.parametrize("piece", [Allocation(64, 64), Allocation(0, 63), Allocation(1, 64)])
def test_only_what_was_allocated_can_be_freed(piece: Allocation) -> None:
    allocator = Allocator(0, 1024)
    allocator.allocate(64)
    with pytest.raises(DeviceError, match="expected a piece of this device"):
        allocator.free(piece)


# --- storage ----------------------------------------------------------------------------------


BYTES = 0x8000


@pytest.fixture
def driver() -> Driver:
    return Driver(ModelLink(memory_bytes=BYTES))


def test_the_last_reference_gives_it_back(driver: Driver) -> None:
    for _ in range(100):
        storage = Storage(driver, BYTES // 2)
        assert storage.address % 64 == 0
        assert storage.size == BYTES // 2
    assert driver.allocator.pieces == 1


def test_closing_gives_it_back_once(driver: Driver) -> None:
    storage = Storage(driver, 64)
    assert not storage.closed
    storage.close()
    storage.close()
    assert storage.closed
    assert driver.allocator.pieces == 0
    again = Storage(driver, 64)
    del storage
    assert driver.allocator.pieces == 1
    assert again.address == driver.geometry.memory_base


def test_circles_of_references_are_looked_through_before_memory_is_out(driver: Driver) -> None:
    gc.disable()
    try:
        circle: list[object] = [Storage(driver, BYTES)]
        circle.append(circle)
        with pytest.raises(OutOfDeviceMemory):
            Storage(driver, 64)
        del circle
        assert Storage(driver, BYTES).size == BYTES
    finally:
        gc.enable()


def test_memory_may_be_dropped_while_another_thread_holds_the_driver(driver: Driver) -> None:
    storages = [Storage(driver, 64)]
    with driver.lock:
        thread = Thread(target=storages.clear, daemon=True)
        thread.start()
        thread.join(10)
        assert not thread.is_alive()
    assert driver.allocator.pieces == 0


def test_storage_stays_in_its_process(driver: Driver) -> None:
    with pytest.raises(TypeError, match="open the device there"):
        pickle.dumps(Storage(driver, 64))


def test_storage_tells_where_it_lies(driver: Driver) -> None:
    storage = Storage(driver, 64)
    assert repr(storage) == f"<bitlane Storage: 64 bytes, at {storage.address:#x}>"
    storage.close()
    assert repr(storage) == "<bitlane Storage: 64 bytes, closed>"


# --- reads and writes -------------------------------------------------------------------------


def test_memory_is_written_and_read() -> None:
    driver = Driver(ModelLink(memory_base=0x1000))
    buffer = driver.allocate(100)
    content = np.arange(25, dtype="<u4")
    driver.write(buffer.address, content)
    assert driver.read(buffer.address, 100).tobytes() == content.tobytes()
    driver.write(buffer.address, b"")
    driver.write(buffer.address, memoryview(content))
    assert driver.read(buffer.address, 0).size == 0
    driver.free(buffer)
    with pytest.raises(DeviceError):
        driver.free(buffer)
    with pytest.raises(OutOfDeviceMemory):
        driver.allocate(1 << 21)


def test_exchanges_are_checked_like_reads_and_writes() -> None:
    driver = Driver(ModelLink(memory_base=0x1000, memory_bytes=0x1000))
    content = np.arange(64, dtype=np.uint8)
    status = CONTROL_BASE + register("STATUS").offset
    assert driver.exchange([(0x1000, content)], []) == []
    first, second = driver.exchange([(0x1100, b"abcd")], [(0x1000, 64), (status, 4)])
    assert first.tolist() == content.tolist()
    assert second.size == 4
    for writes, reads in (([(0xFFF, b"a")], []), ([(0x1FFF, b"ab")], []), ([], [(0x1FF0, 17)])):
        with pytest.raises(ValueError, match="outside"):
            driver.exchange(writes, reads)


@pytest.mark.parametrize(("address", "size"), [(0xFFF, 1), (0x1FFF, 2), (CONTROL_BASE, 4)])
def test_memory_ends_where_the_device_says(address: int, size: int) -> None:
    driver = Driver(ModelLink(memory_base=0x1000, memory_bytes=0x1000))
    for access in (lambda: driver.read(address, size), lambda: driver.write(address, bytes(size))):
        with pytest.raises(ValueError, match="outside"):
            access()


def test_a_link_that_gives_too_little_is_noticed() -> None:
    class Short(ModelLink):
        def read(self, address: int, size: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
            return super().read(address, size)[: 7 if size == 8 else size]

    with pytest.raises(LinkError, match="7 bytes came from 0x0; expected 8"):
        Driver(Short()).read(0, 8)


class ForgetfulLink(ModelLink):
    """A link that logs the ranges that it may forget."""

    def forget(self, address: int, size: int) -> None:
        self.traffic.append(("forget", address, size))


def test_memory_that_is_given_back_is_forgotten() -> None:
    link = ForgetfulLink()
    driver = Driver(link)
    freed, dropped = driver.allocate(100), driver.allocate(5000)
    link.traffic.clear()
    driver.free(freed)
    assert link.traffic == [("forget", freed.address, 100)]
    with pytest.raises(DeviceError, match="not allocated"):
        driver.free(freed)
    # From within any other call: the driver gets to it when it is next asked for memory.
    driver.discard([dropped])
    assert len(link.traffic) == 1
    driver.allocate(1)
    assert link.traffic[1:] == [("forget", dropped.address, 5000)]


def test_closing_closes_the_link() -> None:
    link = ModelLink()
    with Driver(link) as driver:
        assert driver.allocate(1) == Allocation(0, 1)
    assert link.closed
