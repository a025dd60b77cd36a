"""bitlane on the chunks of `dask.array`, on this machine's device or those of a cluster's workers.

For example::

    import bitlane.dask, dask.array as da
    with bitlane.dask.connect("tcp://scheduler:8786"):
        distances = bitlane.dask.hamming(da.from_zarr("rows"), query).compute()

Each worker process opens the device that its environment variable BITLANE_DEVICE names, once. It
takes the extra ``dask``. No bit is computed here.
"""

from .arrays import (
    bit_and,
    bit_copy,
    bit_count,
    bit_nand,
    bit_nor,
    bit_not,
    bit_or,
    bit_shift_left,
    bit_shift_right,
    bit_xnor,
    bit_xor,
    cardinality,
    hamming,
    jaccard,
    search,
)
from .workers import DevicePlugin, connect, equip

__all__ = [
    "DevicePlugin",
    "bit_and",
    "bit_copy",
    "bit_count",
    "bit_nand",
    "bit_nor",
    "bit_not",
    "bit_or",
    "bit_shift_left",
    "bit_shift_right",
    "bit_xnor",
    "bit_xor",
    "cardinality",
    "connect",
    "equip",
    "hamming",
    "jaccard",
    "search",
]
