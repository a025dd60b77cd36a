"""Ports of a synchronous RAM that lies outside the circuit, and the arrays that it stores."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from ..errors import SimulationError

Buffers = Mapping[str, NDArray[np.uint8]]
"""Storage arrays by name: one-dimensional, contiguous, ``uint8``."""


class StorageAccess(Enum):
    """The direction of a storage port."""

    READ = "read"
    WRITE = "write"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoragePort:
    """A port of a plain synchronous RAM outside of the circuit, served by the model.

    ``enable``, ``address``, ``data`` and ``mask`` name top-level ports of the circuit; addresses
    count words of the width of ``data``, a multiple of 8 bits, least significant byte first.

    - READ: at a clock edge with ``enable`` high, ``data`` becomes the word at ``address``, to be
      seen from then on; else it keeps its value. There is no ``mask``.
    - WRITE: at a clock edge with ``enable`` high, the bytes of ``data`` whose ``mask`` bit is high
      are stored.

    A word read and written at the same edge reads as before the write. Several write ports act in
    the order in which they are listed. An access beyond the buffer raises ``SimulationError``.
    """

    buffer: str
    access: StorageAccess
    enable: str
    address: str
    data: str
    mask: str = ""

    @classmethod
    def of_member(cls, name: str, buffer: str, access: StorageAccess) -> "StoragePort":
        """Return the port of a component's member ``name`` with these signals as members."""
        parts = ("enable", "address", "data", "mask")[: 4 if access is StorageAccess.WRITE else 3]
        return cls(buffer=buffer, access=access, **{x: f"{name}__{x}" for x in parts})

    @property
    def ports(self) -> tuple[str, ...]:
        """Names of the top-level ports in use."""
        names = (self.enable, self.address, self.data)
        return (*names, self.mask) if self.access is StorageAccess.WRITE else names

    @property
    def requests(self) -> tuple[str, ...]:
        """Names of the circuit's outputs that request an access."""
        return self.ports if self.access is StorageAccess.WRITE else (self.enable, self.address)


def in_order(ports: Iterable[StoragePort]) -> list[tuple[int, StoragePort]]:
    """Return the ports with their numbers in the order in which they act at an edge: reads first.

    A word that is written at the same edge reads as before.
    """
    return sorted(enumerate(ports), key=lambda x: x[1].access is StorageAccess.WRITE)


def buffer_names(ports: Iterable[StoragePort]) -> list[str]:
    """Return the names of the buffers, in the order in which ``ports`` first name them."""
    return list(dict.fromkeys(port.buffer for port in ports))


def check_storage(
    ports: Sequence[StoragePort],
    buffers: Buffers,
    widths: Mapping[str, int],
    inputs: Collection[str],
) -> None:
    """Raise ``SimulationError`` unless every storage port fits its buffer and the circuit.

    ``widths`` has all ports of the circuit, and ``inputs`` those that it does not drive.
    """
    for port in ports:
        if not isinstance(port.access, StorageAccess):
            raise SimulationError(
                f"storage port {port.data}: access {port.access!r}; expected a StorageAccess"
            )
        for name in port.ports:
            if name not in widths:
                raise SimulationError(f"storage port {port.data}: the circuit has no port {name!r}")
        width = widths[port.data]
        if not width or width % 8:
            raise SimulationError(f"storage port {port.data}: {width} bits; expected whole bytes")
        if port.access is StorageAccess.READ and port.data not in inputs:
            raise SimulationError(
                f"storage port {port.data}: an output of the circuit; expected an input, for READ"
            )
        if port.access is StorageAccess.WRITE and widths[port.mask] != width // 8:
            raise SimulationError(
                f"storage port {port.mask}: {widths[port.mask]} bits; expected {width // 8},"
                f" one for every byte of {port.data}"
            )
        buffer = buffers.get(port.buffer)
        if buffer is None:
            raise SimulationError(f"storage port {port.data}: no buffer {port.buffer!r} is given")
        if not isinstance(buffer, np.ndarray):
            raise SimulationError(f"buffer {port.buffer!r}: expected a contiguous uint8 vector")
        if port.access is StorageAccess.WRITE and not buffer.flags.writeable:
            raise SimulationError(f"buffer {port.buffer!r}: read-only; expected a writeable array")
        if buffer.dtype != np.uint8 or buffer.ndim != 1 or not buffer.flags.c_contiguous:
            raise SimulationError(f"buffer {port.buffer!r}: expected a contiguous uint8 vector")
        if buffer.size % (width // 8):
            raise SimulationError(
                f"buffer {port.buffer!r}: {buffer.size} bytes; expected a multiple of {width // 8}"
            )
