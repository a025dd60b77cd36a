"""The state that all steps of a validation share: device, random numbers and thoroughness."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..driver import Driver, Geometry
from ..errors import BitlaneError, CheckFailed

_REGION: int = 4096
"""Bytes of the device's memory that a small test uses; less if it has less than twice as many."""

_LEAST: int = 512
"""Bytes of memory in whose half the tensors of all steps find room, with guard bytes."""


@dataclass
class Session:
    """A validation of the device behind ``driver``.

    Raises ``BitlaneError`` if the device has too little memory for it.
    """

    driver: Driver
    seed: int = 0
    quick: bool = False
    memory_bytes: int | None = None
    """Bytes of memory to march over, or None for the default of `check_memory`."""
    progress: Callable[[float], object] = lambda fraction: None
    """Called with the fraction of a step that is done, 0 to 1."""
    random: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)
        if self.geometry.memory_bytes < _LEAST:
            raise BitlaneError(
                f"{self.driver.link.description}: {self.geometry.memory_bytes} bytes of memory;"
                f" a validation needs {_LEAST} or more"
            )

    @property
    def geometry(self) -> Geometry:
        return self.driver.geometry

    @property
    def region_bytes(self) -> int:
        """Number of bytes of a region of ``random_region``."""
        half = self.geometry.memory_bytes // 2
        return min(_REGION, half - half % 64)

    def random_region(self) -> int:
        """Return a random address for a small test, a multiple of 64."""
        first = -(-self.geometry.memory_base // 64)
        last = (self.geometry.memory_last + 1 - self.region_bytes) // 64
        return 64 * int(self.random.integers(first, last + 1))

    def restart(self, step: str) -> None:
        """Reset the random numbers, so that they depend on the seed and the step alone."""
        self.random = np.random.default_rng([self.seed, *step.encode()])


def expect_equal(
    got: NDArray[np.uint8], want: NDArray[np.uint8], base: int, where: str | Callable[[int], str]
) -> None:
    """Raise ``CheckFailed`` if bytes differ; the first byte is at the address ``base``.

    ``where`` describes the bytes, or is called with the index of the first difference.
    """
    different = np.flatnonzero(got != want)
    if different.size:
        first = int(different[0])
        raise CheckFailed(
            f"{different.size} of {want.size} bytes are wrong"
            f" {where if isinstance(where, str) else where(first)}, first at {base + first:#x}:"
            f" {got[first]:#04x}, expected {want[first]:#04x}"
        )


def plural(count: int, thing: str) -> str:
    """``1 byte``, ``2 bytes``."""
    return f"{count:,} {thing}" if count == 1 else f"{count:,} {thing}s"
