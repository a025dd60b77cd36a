"""Every option of NumPy's methods acts as with NumPy, or one line names a substitute."""

import re
from collections.abc import Callable
from inspect import Parameter, signature
from typing import Any

import numpy as np
import pytest

import bitlane
from bitlane import Array, BitlaneError, Device
from support.host.arrays import link_of, model, random, same, uploads

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

FIRST: dict[str, tuple[Any, ...]] = {"astype": ("u2",), "reshape": ((4, 3),), "to_device": ("cpu",)}
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


CHECKED: list[tuple[str, Callable[[Any, Any], Any], list[Any]]] = [
    ("axis", lambda x, v: np.any(x, v), [0, -1, 1, True, [0], np.array([0]), np.True_, (0,), ()]),
    ("axis", lambda x, v: np.count_nonzero(x, v), [0, -1, 1, False, [0], (0,), np.array(0)]),
    ("axis", lambda x, v: np.bitwise_xor.reduce(x, v), [0, -1, None, 1, True, [0], (0,), "0"]),
    ("axis", lambda x, v: np.add.reduce(x.astype("u2"), v), [0, -1, 1, True, [0], (0,)]),
    ("axis", lambda x, v: np.squeeze(x[None], v), [0, [0], False, np.array([0]), 5]),
    ("axis", lambda x, v: np.squeeze(x, v), [(), None, 5, [0]]),
    ("axis", lambda x, v: np.take(x, [0, 0], v), [0, -1, None, False, 5]),
    ("axis", lambda x, v: np.repeat(x, 2, v), [0, -1, None, False, 5]),
    ("axis", lambda x, v: np.compress([1], x, v), [0, -1, None, False, 5]),
    ("axis", lambda x, v: np.packbits(x, v), [0, -1, None, False, 5, (0,)]),
    ("axis", lambda x, v: np.unpackbits(x, v), [0, -1, None, False, 5, "0"]),
    ("axis", lambda x, v: np.expand_dims(x, v), [0, (0, 1), [0], np.array([0]), np.True_]),
    ("axis", lambda x, v: np.concatenate([x[None], x[None]], v), [0, None, False, True]),
    ("count", lambda x, v: np.unpackbits(x, count=v), [None, True, np.int64(0), 1.5]),
    ("shape", lambda x, v: x.reshape(v), [-1, (True, -1), (1, -1), (np.True_, -1), (1.5, -1)]),
    ("shape", lambda x, v: x.reshape(v, -1), [1, True, "1", np.int64(1)]),
    ("shape", lambda x, v: np.zeros_like(x, shape=v), [2, (2, 1), True, 1.5]),
    ("shape", lambda x, v: np.broadcast_to(x, (v, *x.shape)), [2, True, 1.5]),
    ("axes", lambda x, v: np.transpose(x[None, None], (v, *range(1, x.ndim + 2))), [0, False]),
    ("item", lambda x, v: x.reshape(-1).item(v), [0, -1, False, np.False_, "0", (0,)]),
    ("copy", lambda x, v: x.reshape(-1, copy=v), [True, None, 1, 0, "no", "", [1]]),
    ("copy", lambda x, v: x.reshape(-1, copy=v), [np.True_, np.array([1, 2])]),
    ("copy", lambda x, v: x.astype("u1", copy=v), [True, 0, None, "no", np.array([1, 2])]),
    ("copy", lambda x, v: np.meshgrid(x.reshape(-1), copy=v)[0], [True, np.array([1, 2])]),
    ("subok", lambda x, v: x.astype("u2", subok=v), [1, False, None, "no", 1.5, np.True_]),
    ("subok", lambda x, v: np.zeros_like(x, subok=v), [1, False, None, "no", 1.5, []]),
    ("keepdims", lambda x, v: np.any(x, keepdims=v), [1, 0, True, None, "no", 1.5, np.True_]),
    ("keepdims", lambda x, v: x.all(keepdims=v), [2, False, [], np.array([1, 2])]),
    ("keepdims", lambda x, v: np.count_nonzero(x, keepdims=v), [1, "no", np.True_]),
    ("keepdims", lambda x, v: np.add.reduce(x.astype("u2"), keepdims=v), [1, "no", [1]]),
    ("keepdims", lambda x, v: x.astype("u2").sum(keepdims=v), [1, None, np.array([1, 2])]),
    ("order", lambda x, v: x.ravel(v), [*"cfak", "X", "", "CC", 1]),
    ("order", lambda x, v: x.flatten(v), [*"cfak", "X", 1]),
    ("order", lambda x, v: x.copy(v), [*"cfak", "X", 1]),
    ("order", lambda x, v: x.reshape(-1, order=v), [*"cfa", "k", "K", "X", 1]),
    ("order", lambda x, v: x.astype("u2", order=v), [*"cfak", "X", 1]),
    ("order", lambda x, v: np.ones_like(x, order=v), [*"cfak", "X", 1]),
    ("order", lambda x, v: np.ones_like(x, order=v, shape=(2, 3)), [*"cfak", "X", 1]),
    ("where", lambda x, v: x.any(where=v), [True, [1], [0.5], np.array(1), np.ones(1)]),
    ("where", lambda x, v: np.invert(x, out=x, where=v), [[1], np.ones(1, "u1"), np.ones(1, "?")]),
    ("where", lambda x, v: np.copyto(x, 1, where=v), [True, 2, [0], 0.5, np.array(1), np.ones(1)]),
    ("casting", lambda x, v: np.copyto(x, 1, v), ["no", "unsafe", "bogus", None, 1]),
    ("src", lambda x, v: np.copyto(x, v), [1, True, 300, np.uint8(5), np.int64(5), [1], [True]]),
    ("src", lambda x, v: np.copyto(x.astype("?"), v), [True, 0, 1, 25, np.True_, np.uint8(1)]),
    ("value", lambda x, v: x.__setitem__(..., v), [[255], [256], [-1], (300,), [np.int64(300)]]),
    ("value", lambda x, v: x.__setitem__(..., v), [np.array([300]), [True], 256, -1]),
    (
        "value",
        lambda x, v: x[None].__setitem__(slice(1), v),
        [[5], [[[[5]]]], np.ones((1,) * 4, "?")],
    ),
    ("value", lambda x, v: x[None].__setitem__([0], v), [[255], [256], [[-1]], 256]),
    ("value", lambda x, v: x.__setitem__(mask_of(x), v), [7, [7], [], [[7]], [256]]),
    ("value", lambda x, v: x.__setitem__(mask_of(x), v), [np.ones((1, 1, 1), "u1")]),
    ("value", lambda x, v: x.__setitem__((mask_of(x),), v), [[7], [[7]], np.ones((1, 1), "u1")]),
    ("value", lambda x, v: x.__setitem__((..., mask_of(x)), v), [[7], [[7]]]),
    ("value", lambda x, v: x.__setitem__(x == 5, v), [np.ones((1, 1), "u1"), [[7]], 7]),
    ("value", lambda x, v: x.__setitem__(mask_of(x).tolist(), v), [[[7]], [7], 7]),
    ("value", lambda x, v: x[None].__setitem__([True], v), [[[[7]]], [7]]),
    ("vals", lambda x, v: np.place(x, mask_of(x), v), [7, [7, 8], 300, -1, [300], [], [[7]], None]),
    ("vals", lambda x, v: np.place(x, x != x, v), [7, 300, [300], None, 1 << 70, 1j, b"a"]),
    ("ind", lambda x, v: np.put(x, v, 7), [0, -1, [0, 1], 5, [-9], "x", np.array([0.5])]),
    ("v", lambda x, v: np.put(x, [0], v), [7, [7, 8], [], 300, [300], [[7]], np.array([300])]),
    ("mode", lambda x, v: np.put(x, [1], 7, v), ["wrap", "clip", "raise", "x"]),
    ("obj", lambda x, v: np.delete(x, v), [0, -1, [0], [], np.s_[1:], 9, [9], [[0]], 0.5, [True]]),
    ("axis", lambda x, v: np.delete(x, 0, v), [0, -1, 5, None]),
    ("axis", lambda x, v: np.delete(x[None], 0, v), [0, 1.5, "0", (0,)]),
    ("val", lambda x, v: np.fill_diagonal(x[None], v), [7, [7, 8], [], 300, [300], [[7]]]),
    ("wrap", lambda x, v: np.fill_diagonal(x, 1, v), [True, 0, np.array([1, 2])]),
    ("key", lambda x, v: x.flat[v], [0, -1, [0], (0,), (0, 1), None, 9, [9], "x", ...]),
    ("key", lambda x, v: x.flat.__setitem__(v, 7), [0, [0], (0,), (0, 1), None, 9, [-9], "x"]),
    ("value", lambda x, v: x.flat.__setitem__(slice(2), v), [7, [7, 8, 9], [], [300], 300]),
    ("value", lambda x, v: x.flat.__setitem__(0, v), [7, [7], 300]),
    ("vals", lambda x, v: np.putmask(x, mask_of(x), v), [7, [7, 8], [], 300, [300], [[7]]]),
]
"""Calls with values of an argument that NumPy checks: it refuses some of them."""


def mask_of(x: Any) -> Any:
    """Return a mask of the host that chooses the last element alone."""
    mask = np.zeros(x.shape, bool)
    mask.reshape(-1)[-1:] = True
    return mask


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0, 2)], ids=str)
@pytest.mark.parametrize("at", range(len(CHECKED)), ids=lambda at: f"{at} {CHECKED[at][0]}")
def test_numpy_decides_what_is_refused(at: int, shape: tuple[int, ...]) -> None:
    """NumPy's errors are one line here, before anything is sent; the results are NumPy's."""
    device = model()  # NumPy keeps references after an error of a reduction
    _, call, values = CHECKED[at]
    for value in values:
        host = random((*shape, 1), "u1")[..., 0]
        before = host.copy()
        here = device.asarray(host)
        link_of(device).traffic.clear()
        try:
            expected, refusal = call(host, value), ""
        except Exception as error:  # noqa: BLE001, any of NumPy's
            refusal = repr(error)
        if not refusal:
            got = call(here, value)
            assert (got is None) == (expected is None)
            if got is not None:
                assert same(np.asarray(got), np.asarray(expected)), (value, shape)
        else:
            with pytest.raises(BitlaneError) as caught:
                print(call(here, value), "of", value, "which NumPy refuses:", refusal)
            assert "\n" not in str(caught.value)
            assert not uploads(device), (value, shape)
        assert same(here.get(), before if refusal else host), (value, shape)
