"""A photo striped over five disks, any of which may be lost; parity and rebuilding by the device.

The layout is that of RAID level 5: each stripe has one unit of parity, on another disk than its
neighbour stripes'. The host lays out bytes and compares them; it must never XOR them.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]

DISKS = 5
UNIT = 16384
"""Bytes of a stripe on one disk, of the whole photo."""

SLOW_STEP = 8
"""Distance in pixels of the rows and columns of the photo that a slow device gets."""


class XorDevice(Protocol):
    """The methods of a device that parity needs."""

    def bit_xor(
        self, a: Bytes, b: Bytes, /, *, out: Bytes | None = None
    ) -> npt.NDArray[np.generic]: ...


def load(step: int = 1) -> Bytes:
    """Return the pixels of china.jpg, (427, 640, 3), in every ``step``-th row and column.

    Photo by danielbuechele, CC BY 2.0.
    """
    from sklearn.datasets import load_sample_image

    photo: Bytes = load_sample_image("china.jpg")
    return np.ascontiguousarray(photo[::step, ::step])


def parity_disk(stripe: int) -> int:
    """The disk that holds the parity of a stripe: the last one first, then one less a stripe."""
    return (DISKS - 1 - stripe) % DISKS


def _data_disks(stripe: int) -> list[int]:
    return [disk for disk in range(DISKS) if disk != parity_disk(stripe)]


def units(data: Bytes, unit: int = UNIT) -> Bytes:
    """Return ``data`` cut into stripes of four units, (stripes, 4, unit), zeros after its end."""
    flat = data.reshape(-1)
    stripes = -(-flat.size // ((DISKS - 1) * unit))
    padded = np.zeros((stripes, DISKS - 1, unit), np.uint8)
    padded.reshape(-1)[: flat.size] = flat
    return padded


def _xor_all(device: XorDevice, parts: Sequence[Bytes]) -> Bytes:
    """The XOR of four arrays of one shape, the sum of two being reused in place."""
    total = np.empty(parts[0].shape, np.uint8)
    device.bit_xor(parts[0], parts[1], out=total)
    for part in parts[2:]:
        device.bit_xor(total, part, out=total)
    return total


def stripe(device: XorDevice, data: Bytes, unit: int = UNIT) -> Bytes:
    """Return the contents of the disks, (DISKS, stripes, unit), parity by ``device``."""
    pieces = units(data, unit)
    parity = _xor_all(device, [pieces[:, disk] for disk in range(DISKS - 1)])
    disks = np.empty((DISKS, len(pieces), unit), np.uint8)
    for row, piece in enumerate(pieces):
        disks[_data_disks(row), row] = piece
        disks[parity_disk(row), row] = parity[row]
    return disks


def rebuild(device: XorDevice, disks: Bytes, lost: int) -> Bytes:
    """Return the contents of the disk ``lost``, (stripes, unit), from the others."""
    return _xor_all(device, [disks[disk] for disk in range(DISKS) if disk != lost])


def join(disks: Bytes, size: int) -> Bytes:
    """The first ``size`` bytes that were striped over ``disks``."""
    rows = [disks[_data_disks(row), row] for row in range(disks.shape[1])]
    return np.stack(rows).reshape(-1)[:size]
