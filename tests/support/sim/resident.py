"""The part of an array that is resident in memory, as mincore(2) of Linux reports it."""

import ctypes
import mmap

import numpy as np
from numpy.typing import NDArray


def resident_bytes(array: NDArray[np.uint8]) -> int:
    """Return the bytes of resident pages of ``array``; a page never written is not resident."""
    start = array.ctypes.data // mmap.PAGESIZE * mmap.PAGESIZE
    length = array.ctypes.data + array.size - start
    pages = (ctypes.c_ubyte * -(-length // mmap.PAGESIZE))()
    libc = ctypes.CDLL(None, use_errno=True)
    failed = libc.mincore(ctypes.c_void_p(start), ctypes.c_size_t(length), pages)
    assert not failed, ctypes.get_errno()
    return mmap.PAGESIZE * sum(page & 1 for page in pages)
