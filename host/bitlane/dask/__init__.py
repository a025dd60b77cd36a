"""bitlane on the chunks of `dask.array`, on this machine's device or those of a cluster's workers.

For example::

    import bitlane.dask, dask.array as da
    with bitlane.dask.connect("tcp://scheduler:8786"):
        distances = bitlane.dask.hamming(da.from_zarr("rows"), query).compute()

Each worker process opens the device that its environment variable BITLANE_DEVICE names, once. The
extra ``dask`` brings what this needs. No bit is computed here.
"""

from collections.abc import Callable as _Callable
from types import ModuleType as _ModuleType
from typing import cast as _cast

import dask.array as _da

from .arrays import Blocks as _Blocks
from .workers import DevicePlugin as DevicePlugin
from .workers import connect as connect
from .workers import equip as equip

_on = _Blocks()


def _function(method: object) -> _Callable[..., _da.Array]:
    """Type ``method``, whose results are Dask's arrays here."""
    return _cast(_Callable[..., _da.Array], method)


bit_not = _function(_on.bit_not)
bit_copy = _function(_on.bit_copy)
bit_and = _function(_on.bit_and)
bit_or = _function(_on.bit_or)
bit_xor = _function(_on.bit_xor)
bit_nand = _function(_on.bit_nand)
bit_nor = _function(_on.bit_nor)
bit_xnor = _function(_on.bit_xnor)
bit_shift_left = _function(_on.bit_shift_left)
bit_shift_right = _function(_on.bit_shift_right)
bit_count = _function(_on.bit_count)
cardinality = _function(_on.cardinality)
hamming = _function(_on.hamming)
jaccard = _function(_on.jaccard)
search = _on.search
where = _on.where

# Star imports and the reference read it; type checkers know the names without it.
globals()["__all__"] = [
    name
    for name, value in globals().items()
    if not name.startswith("_") and not isinstance(value, _ModuleType)
]
