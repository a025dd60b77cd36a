"""Rows of bits: the sums of what is counted in them, and the nearest of them by a search array."""

from collections.abc import Callable, Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bitlane_rtl.abi import Op

from .. import reference
from ..device import Device
from ..errors import CheckFailed
from .session import Session

_ROWS: Final = 5

_Rows = NDArray[np.unsignedinteger]
_Sums = Callable[[_Rows, _Rows], NDArray[np.generic]]


def check_sums(session: Session) -> str:
    """Sums of rows of many lengths, at all offsets, against the NumPy model."""
    device, item = Device(session.driver), min(session.geometry.lanes).bytes
    size = session.geometry.data_bytes // item or 1
    lengths = (1, size + 1, size + 2, 3 * size - 1)
    done = 0
    for number, length in enumerate(lengths):
        a, b = (_rows(session, length, item) for _ in range(2))
        for name, measure, expected in _sums(session, device, a, b):
            got = measure(a, b)
            if not np.array_equal(got, expected):
                raise CheckFailed(
                    f"{name} of {_ROWS} rows of {length * item} bytes: {got.tolist()};"
                    f" expected {expected.tolist()}"
                )
            done += _ROWS
        session.progress((number + 1) / len(lengths))
    return f"{done} sums of rows of {min(lengths) * item} to {max(lengths) * item} bytes"


def check_search(session: Session) -> str:
    """More rows than the array compares at a time, many of them equal, against NumPy."""
    array = session.geometry.search
    assert array is not None
    device, random = Device(session.driver), session.random
    rows = random.integers(0, 2, (3 * array.units + 1, array.row_bytes), np.uint8)
    queries = random.integers(0, 2, (min(array.queries, 9), array.row_bytes), np.uint8)
    distances = reference.cardinality(queries[:, None] ^ rows)
    nearest = np.argsort(distances, axis=1, kind="stable")[:, : array.nearest]
    _, found = device.search(queries, rows, nearest.shape[1])
    if not np.array_equal(found, nearest):
        query = int((found != nearest).any(axis=1).argmax())
        raise CheckFailed(
            f"rows nearest to query {query}: {found[query].tolist()};"
            f" expected {nearest[query].tolist()}"
        )
    where = f"{len(rows)} rows of {8 * array.row_bytes} bits"
    return f"the {nearest.shape[1]} nearest to each of {len(queries)} queries in {where}"


def _rows(session: Session, length: int, item: int) -> _Rows:
    """Noise, each row ``length`` elements of ``item`` bytes out of a longer one."""
    skip = int(session.random.integers(0, 8))
    noise = session.random.integers(0, 256, (_ROWS, (length + 9) * item), np.uint8)
    return noise.view(f"<u{item}")[:, skip : skip + length]


def _sums(
    session: Session, device: Device, a: _Rows, b: _Rows
) -> Iterator[tuple[str, _Sums, NDArray[np.generic]]]:
    """What there is to be measured of ``a`` and ``b``, by the operations that the device has."""
    has, count = session.geometry.ops, reference.cardinality
    if Op.COUNT in has:
        yield "cardinality", lambda a, _: device.cardinality(a), count(a)
    if Op.COUNT_XOR in has:
        yield "hamming", device.hamming, count(a ^ b)
    if {Op.COUNT_AND, Op.COUNT_OR} <= has:
        either = count(a | b)
        yield "jaccard", device.jaccard, count(a & b) / np.where(either == 0, 1, either)
