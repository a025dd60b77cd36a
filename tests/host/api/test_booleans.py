"""Booleans of other bytes than 0 and 1: any byte but 0 is True, and results are 0 and 1.

Calls of arrays on the device are rows of `support.host.calls`, whose booleans have any bytes.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pytest
from numpy.typing import NDArray

import bitlane
from bitlane import Device, array_api
from bitlane.api import BitOperators
from bitlane.errors import ShapeError
from support.host.arrays import model, same

BYTES = np.array([0, 1, 2, 128, 255], np.uint8)

Booleans: TypeAlias = NDArray[np.bool_]
Call: TypeAlias = Callable[[Any, Any, Any], Any]
"""A call of a device on two arrays of booleans."""


def booleans(seed: int, shape: tuple[int, ...] = (6, 10)) -> Booleans:
    """Return booleans whose bytes are those of `BYTES`."""
    return np.random.default_rng(seed).choice(BYTES, shape).view(np.bool_)


def clean(x: Any) -> Any:
    """Return booleans of the bytes 0 and 1; other arrays as they are."""
    return np.asarray(x.view(np.uint8) != 0) if x.dtype == np.bool_ else x


LAYOUTS: dict[str, Callable[[Booleans], Booleans]] = {
    "packed": lambda x: x,
    "transposed": lambda x: x.T.copy().T,
    "gaps": lambda x: x[:, ::3],
    "reversed": lambda x: x[::-1, ::-1],
    "broadcast": lambda x: np.broadcast_to(x[:1], x.shape),
    "column": lambda x: np.broadcast_to(x[:, :1], x.shape),
    "empty": lambda x: x[:0],
    "scalar": lambda x: x[0, 2:3].reshape(()),
}

NAMED = {
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "nand": lambda a, b: ~(a & b),
    "nor": lambda a, b: ~(a | b),
    "xnor": lambda a, b: ~(a ^ b),
    "shift_left": lambda a, b: a << b,
    "shift_right": lambda a, b: a >> b,
}
"""The operators on two tensors, and what NumPy has for them."""


def _operator(name: str) -> Call:
    return lambda d, a, b: getattr(d, f"bit_{name}")(a, b)


def _numpys(function: Callable[[Any, Any], Any]) -> Call:
    return lambda d, a, b: function(a, b)


BIT_CALLS: dict[str, tuple[Call, Call]] = {
    **{name: (_operator(name), _numpys(function)) for name, function in NAMED.items()},
    "not": (lambda d, a, b: d.bit_not(a), lambda d, a, b: ~a),
    "copy": (lambda d, a, b: d.bit_copy(a), lambda d, a, b: a.copy()),
    "count": (lambda d, a, b: d.bit_count(a), lambda d, a, b: a.astype(np.uint8)),
    "wide count": (lambda d, a, b: d.bit_count(a, np.uint32), lambda d, a, b: a.astype(np.uint32)),
    "xor of bytes": (
        lambda d, a, b: d.bit_xor(a, b.astype(np.uint8)),
        lambda d, a, b: a ^ b.astype(np.uint8),
    ),
    "and of words": (
        lambda d, a, b: d.bit_and(a.astype(np.int32), b),
        lambda d, a, b: a.astype(np.int32) & b,
    ),
    "xor of a number": (lambda d, a, b: d.bit_xor(a, 3), lambda d, a, b: a ^ 3),
    "cardinality": (lambda d, a, b: d.cardinality(a), lambda d, a, b: _sums(a)),
    "hamming": (lambda d, a, b: d.hamming(a, b), lambda d, a, b: _sums(a ^ b)),
    "jaccard": (lambda d, a, b: d.jaccard(a, b), lambda d, a, b: _jaccard(a, b)),
}
"""The operators, and what NumPy has for them."""


def _sums(x: Booleans) -> Any:
    return x.sum(-1, dtype=np.uint32)


def _jaccard(a: Booleans, b: Booleans) -> Any:
    shared, either = _sums(a & b), _sums(a | b)
    return np.divide(shared, either, out=np.zeros(shared.shape), where=either != 0)


def result(x: Any) -> NDArray[Any]:
    return np.asarray(x.get() if isinstance(x, bitlane.Array) else x)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", BIT_CALLS)
def test_operators_take_any_byte_but_0_as_true(device: Device, name: str, layout: str) -> None:
    call, expected = BIT_CALLS[name]
    a = LAYOUTS[layout](booleans(1))
    b = booleans(2, a.shape)
    if not a.ndim and name in ("cardinality", "hamming", "jaccard"):
        a, b = a.reshape(1), b.reshape(1)
    wanted = expected(None, clean(a), clean(b))
    pairs = [(a, b), (device.asarray(a), b), (a, device.asarray(b))]
    for first, second in [*pairs, (device.asarray(a), device.asarray(b))]:
        got = result(call(device, first, second))
        assert same(got, np.asarray(wanted, got.dtype)), (name, type(first), type(second))
        assert (got.dtype == bool) is (wanted.dtype == bool)


@pytest.mark.parametrize("name", ["not", "copy", "and", "or", "xor", "nand", "nor", "xnor"])
def test_booleans_are_written_to_outputs_as_0_and_1(device: Device, name: str) -> None:
    a, b = booleans(1), booleans(2)
    method, operands = getattr(device, f"bit_{name}"), (a, b)
    wanted = BIT_CALLS[name][1](None, clean(a), clean(b))
    if name in ("not", "copy"):
        operands = (a,)
    for out in (booleans(3), np.asfortranarray(booleans(3)), booleans(3, (12, 20))[::2, ::-2]):
        method(*operands, out=out)
        assert same(out, wanted)
        here = device.asarray(out)
        method(*operands, out=here)
        assert same(here.get(), wanted)
    method(*operands, out=a)  # in place of the first operand
    assert same(a, wanted)


@pytest.mark.parametrize("name", ["not", "xor", "count", "hamming", "shift_left"])
def test_booleans_in_tiles_are_0_and_1(device: Device, name: str) -> None:
    call, expected = BIT_CALLS[name]
    a, b = booleans(1, (200, 300)), booleans(2, (200, 1))
    wanted = expected(None, clean(a), clean(b))
    got = call(device, a, b)
    assert same(got, np.asarray(wanted, got.dtype))


def test_every_operator_is_in_the_table() -> None:
    names = {name if hasattr(Device, name) else f"bit_{name}" for name in BIT_CALLS}
    public = {name for name in vars(BitOperators) if not name.startswith("_")}
    assert public <= names


@pytest.mark.parametrize("shape", [(), (1,), (5, 4)])
def test_arrays_are_made_of_any_bytes(device: Device, shape: tuple[int, ...]) -> None:
    a = np.resize(BYTES[::-1], shape).view(np.bool_)
    made = [
        device.asarray(a),
        device.from_dlpack(a),
        device.asarray(a, np.bool_),
        array_api.asarray(a, device=device),
        array_api.full(shape, a.reshape(-1)[:1].reshape(()), device=device) & device.asarray(a),
        array_api.full_like(device.asarray(~a), True) ^ device.asarray(a) ^ True,
        np.broadcast_arrays(device.asarray(0), a)[1],
    ]
    for x in made:
        assert same(x.get(), clean(a))
        assert same((~x).get(), ~clean(a))
        assert np.array_equal(np.from_dlpack(x).view(np.uint8), clean(a).view(np.uint8))
    assert same(device.asarray(a, np.int32).get(), clean(a).astype(np.int32))


def test_booleans_become_numbers_0_and_1(device: Device) -> None:
    a, b = booleans(1), booleans(2)
    for other in (b, device.asarray(b)):
        numbers = device.asarray(a).astype(np.uint16)
        numbers[1:] = other[1:]
        assert same(numbers.get()[0], clean(a)[0].astype(np.uint16))
        assert same(numbers.get()[1:], clean(b)[1:].astype(np.uint16))


def test_nothing_gives_the_memory_of_booleans_other_bytes() -> None:
    # The memory of the model holds zeros at first: other bytes are left there.
    device = model()
    device.asarray(np.full(4096, 0xA5, np.uint8)).free()
    for x in (array_api.empty(9, dtype=array_api.bool, device=device), device.asarray(booleans(1))):
        assert set(x.view(np.uint8).get().reshape(-1).tolist()) <= {0, 1}
        for view in (x.view(np.uint8), x.view(np.int8)[::2], x.T.view(np.uint8)):
            before = x.get()
            for change in (_set_two, _xor_two, lambda v: np.copyto(v, 2), lambda v: _scatter(v)):
                with pytest.raises(ShapeError, match="read-only"):
                    change(view)
            assert same(x.get(), before)
        x[...] = True
        assert x.all()
    copied = device.asarray(booleans(1)).view(np.uint8).copy()
    copied[...] = 2
    assert (copied.get() == 2).all()


def _set_two(view: Any) -> None:
    view[...] = 2


def _xor_two(view: Any) -> None:
    view ^= 2


def _scatter(view: Any) -> None:
    view[[0, 1]] = 2
