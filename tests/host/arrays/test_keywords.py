"""Every option of NumPy's methods acts as with NumPy, or one line names a substitute."""

import re
from collections.abc import Callable
from inspect import Parameter, signature
from typing import Any

import numpy as np
import pytest

import bitlane
from bitlane import Array, ArrayIndexError, BitlaneError
from bitlane.api.device import Device
from support.host.arrays import random, same

METHODS = [
    *("all", "any", "astype", "copy", "item", "reshape", "sum", "to_device", "tolist"),
    *("transpose", "view"),
]
"""The methods that arrays of both kinds have; of all others, arrays on a device name a substitute.
"""

VALUES: dict[str, list[Any]] = {
    "axis": [None, 0, -1, (0, 1), (), np.int64(1), 2, "x", 1.5],
    "casting": ["no", "equiv", "safe", "same_kind", "unsafe", "bogus", None],
    "copy": [True, False],
    "device": ["cpu"],
    "dtype": ["u1", "u2", "i4", "u8", "?", np.uint8, np.dtype("u4"), "f4", "c8", "bogus"],
    "initial": [0, 3, None],
    "keepdims": [True, False],
    "order": ["C", "F", "A", "K", "bogus", None],
    "out": [None, "x"],
    "shape": [(4, 3), 12, -1, (2, -1), (-1, 2, 3), (5,), [6, 2], np.array([4, 3]), "x"],
    "stream": [None, 1],
    "subok": [True, False],
    "type": [np.ndarray, np.matrix],
    "where": [True, False, np.array([True, False, True, True])],
}
"""Values of each option of NumPy's."""

FIRST: dict[str, tuple[Any, ...]] = {
    "astype": ("u2",),
    "reshape": ((4, 3),),
    "to_device": ("cpu",),
}
"""Arguments that a method needs."""

SUBSTITUTE = re.compile(r"expected|x\.get\(\)|np\.asarray|astype|x\.copy|'unsafe'|elements|copy")


def options_of(method: str) -> list[str]:
    """Return the names of options by NumPy's signature, or by the first lines of its text."""
    function = getattr(np.ndarray, method)
    text = (function.__doc__ or "").partition("\n\n")[0]
    names = set(re.findall(r"(\w+)(?==)|\[,? ?(\w+)\]", text))
    found = {one or other for one, other in names}
    try:
        parameters = signature(function).parameters.values()
    except ValueError:  # NumPy before 2.4
        parameters = ()
    kinds = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
    return sorted(found | {x.name for x in parameters if x.kind in kinds} - {"self"})


CASES = [(method, option) for method in METHODS for option in options_of(method)]


def test_numpys_options_were_found() -> None:
    assert ("sum", "where") in CASES
    assert ("astype", "casting") in CASES
    assert ("reshape", "order") in CASES
    assert len(CASES) >= 22
    assert {option for _, option in CASES} <= VALUES.keys()


@pytest.mark.parametrize(("method", "option"), CASES)
def test_every_option_of_numpys_methods(device: Device, method: str, option: str) -> None:
    content = random((3, 4), "u1")
    for view in (lambda x: x, lambda x: x.T, lambda x: x[::-1, ::2]):
        host, here = view(content), view(device.asarray(content))
        if method == "sum":
            host, here = np.bitwise_count(host), bitlane.bit_count(here)
        for value in VALUES[option]:
            first = () if option in ("dtype", "shape", "device") else FIRST.get(method, ())
            options = {option: value}
            if method == "reshape":
                first = (value,) if option == "shape" else ((host.size // 2, 2),)
                options = {} if option == "shape" else options
            _compare(lambda x: getattr(x, method)(*first, **options), host, here)  # noqa: B023


def _compare(call: Callable[[Any], Any], host: Any, here: Array) -> None:
    """Expect the same of both: a result, or an error of a kind of NumPy's; or a refusal."""
    try:
        expected, error = call(host), None
    except Exception as given:  # noqa: BLE001, any of NumPy's
        expected, error = None, given
    try:
        got, refusal = call(here), ""
    except BitlaneError as refused:
        refusal = str(refused)
    if refusal:
        assert "\n" not in refusal
        assert SUBSTITUTE.search(refusal), refusal
        return
    assert error is None, f"{error!r} of NumPy, but {got}"
    if isinstance(got, Array):
        result, expected = got.get(), np.asarray(expected)
        assert result.shape == expected.shape
        assert np.array_equal(result, expected)
    else:
        assert got == expected


ITEMS: list[tuple[Any, ...]] = [
    *((0,), (11,), (-1,), (-12,), (12,), (-13,), (1, 2), (-1, -4), ((2, 3),), (3, 0), (0, 4)),
    *((0, 0, 0), ((1,),), (np.int64(5),), (np.array(5),), ("x",), (1.5,), (None,)),
]


@pytest.mark.parametrize("index", ITEMS, ids=str)
def test_one_item(device: Device, index: tuple[Any, ...]) -> None:
    content = random((4, 3), "u2").T
    _compare(lambda x: x.item(*index), content, device.asarray(content))


def test_an_item_that_is_missing_is_an_index_error(device: Device) -> None:
    with pytest.raises(ArrayIndexError, match="item: 12; the array has 12 elements"):
        device.asarray(random((3, 4), "u1")).item(12)
    with pytest.raises(ArrayIndexError, match="item: 0; the array has 0 elements"):
        device.asarray(np.zeros((3, 0), "u1")).item(0)


SHARED: list[tuple[str, Callable[[Any], Any]]] = [
    ("reshape F", lambda x: x.reshape(2, -1, order="F")),
    ("np.reshape F", lambda x: np.reshape(x, (2, -1), order="F")),
    ("reshape A", lambda x: x.reshape(-1, order="A")),
    ("np.ravel F", lambda x: np.ravel(x, order="F")),
    ("np.ravel A", lambda x: np.ravel(x, "A")),
    ("copy F", lambda x: x.copy("F")),
    ("np.copy C", lambda x: np.copy(x, order="C")),
    ("astype F", lambda x: x.astype(x.dtype, order="F", copy=False)),
    ("astype C", lambda x: x.astype(x.dtype, order="C", copy=False)),
]


@pytest.mark.parametrize(("name", "call"), SHARED)
def test_orders_of_memory(device: Device, name: str, call: Callable[[Any], Any]) -> None:
    """As NumPy's, also in which of them share memory, and in how the elements lie."""
    views: list[Callable[[Any], Any]] = [
        *(lambda x: x, lambda x: x.T, lambda x: x[::2], lambda x: x[:, 0], lambda x: x[0]),
        *(lambda x: x.T[::2], lambda x: x[:1]),
    ]
    for number, view in enumerate(views):
        host = random((6, 4), "u2")
        here = device.asarray(host)
        expected, got = call(view(host)), call(view(here))
        assert got.strides == expected.strides or 1 in expected.shape, (name, number)
        host ^= 0xA5A5
        here ^= 0xA5A5
        assert same(got.get(), expected), (name, number)
