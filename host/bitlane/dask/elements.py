"""The operators on arrays of Dask's, element by element: as ``Device``'s methods, and lazily.

Checks types and shapes before anything is executed.
"""

from collections.abc import Callable

import dask.array as da
import numpy as np
from numpy.typing import DTypeLike

from bitlane_rtl.abi import Op

from ..device import Device
from ..jobs.operands import count_type, result_shape
from ..jobs.promotion import Casting, as_pair
from .blocks import Given, as_dask, on_blocks

__all__ = [
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
    "expect_shapes",
]


def _one(op: Op) -> Callable[[Given], da.Array]:
    def call(a: Given) -> da.Array:
        array = as_dask("a", a)
        return on_blocks(call.__name__, (array,), array.dtype.newbyteorder("="))

    return _documented(call, op)


def _two(op: Op) -> Callable[..., da.Array]:
    def call(a: Given, b: Given, *, casting: Casting = "safe") -> da.Array:
        # Types meet, and numbers take them, without a look at elements.
        first, second, dtype = as_pair(op, _typed("a", a), _typed("b", b), casting)
        operands = [
            as_dask(name, array if type(x) is int else x)
            for name, x, array in (("a", a, first), ("b", b, second))
        ]
        expect_shapes(*operands)
        return on_blocks(call.__name__, operands, dtype.newbyteorder("="))

    return _documented(call, op)


def bit_count(a: Given, dtype: DTypeLike | None = None) -> da.Array:
    """``Device.bit_count`` of every block."""
    chosen = count_type(dtype, None)
    return on_blocks("bit_count", (as_dask("a", a),), chosen, dtype=chosen)


def _typed(name: str, x: Given) -> Given:
    """Something of the type of ``x``, and a number itself."""
    return x if type(x) is int else np.empty(0, as_dask(name, x).dtype)


def expect_shapes(a: da.Array, b: da.Array) -> None:
    """Raises ``ShapeError`` if they do not broadcast; what is unknown is known when it is done."""
    shapes = [tuple(1 if np.isnan(n) else int(n) for n in x.shape) for x in (a, b)]
    result_shape(*(np.broadcast_to(np.uint8(0), shape) for shape in shapes))


def _documented(call: Callable[..., da.Array], op: Op) -> Callable[..., da.Array]:
    name = f"bit_{op.name.lower()}"
    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"``Device.{name}`` of every block.\n\n{getattr(Device, name).__doc__}"
    return call


bit_not = _one(Op.NOT)
bit_copy = _one(Op.COPY)
bit_and = _two(Op.AND)
bit_or = _two(Op.OR)
bit_xor = _two(Op.XOR)
bit_nand = _two(Op.NAND)
bit_nor = _two(Op.NOR)
bit_xnor = _two(Op.XNOR)
bit_shift_left = _two(Op.SHIFT_LEFT)
bit_shift_right = _two(Op.SHIFT_RIGHT)
