"""Device memory that is given back with the last reference to it. Never touches its bytes."""

from weakref import finalize

from ..closing import Closing
from .allocator import Allocation
from .driver import Driver

__all__ = ["Storage"]


class Storage(Closing):
    """``size`` bytes of the device's memory from ``address`` on, a multiple of 64.

    ``close`` gives them back, and so does Python once nothing refers to this object: whatever
    reads or writes the bytes later must hold it. Raises ``OutOfDeviceMemory``.
    """

    __slots__ = ("__weakref__", "_release", "address", "driver", "size")

    def __init__(self, driver: Driver, size: int) -> None:
        # Who gives back is there before what is to be given back: Ctrl-C may come in between.
        held: list[Allocation] = []
        self._release = finalize(self, _give_back, driver, held)
        self._release.atexit = False
        held.append(driver.allocate(size))
        self.driver = driver
        self.address = held[0].address
        self.size = size

    @property
    def closed(self) -> bool:
        """Whether the bytes have been given back."""
        return not self._release.alive

    def close(self) -> None:
        """Give the bytes back. May be called again."""
        self._release()

    def __repr__(self) -> str:
        where = "closed" if self.closed else f"at {self.address:#x}"
        return f"<bitlane Storage: {self.size} bytes, {where}>"


def _give_back(driver: Driver, held: list[Allocation]) -> None:
    for allocation in held:
        driver.discard(allocation)
