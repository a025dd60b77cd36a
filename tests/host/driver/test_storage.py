"""Storage: device memory comes back with the last reference, by ``close``, and from circles."""

import gc
import pickle
from threading import Thread

import pytest

from bitlane.driver.allocator import OutOfDeviceMemory
from bitlane.driver.driver import Driver
from bitlane.driver.storage import Storage
from support.models.device import ModelLink

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
