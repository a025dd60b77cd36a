"""Expressions accept valid shapes and layouts, refuse others, and know the bits that may be 1."""

from typing import Any

import pytest

from bitlane.compiler import (
    Applied,
    Argument,
    Constant,
    Expression,
    Stored,
    VirtualBuffer,
    add_on_host,
    add_up,
    apply,
    broadcast,
    copy_ordered,
    join,
    narrow,
    possible_bits,
    truth_of,
    widen,
    window,
)
from bitlane.driver import Driver, Storage
from bitlane.errors import LayoutError, ShapeError
from bitlane.lowering import View
from bitlane_rtl.abi import Op
from support.host.model_link import ModelLink


@pytest.fixture
def storage() -> Storage:
    return Storage(Driver(ModelLink()), 256)


def tensor(storage: Storage, shape: tuple[int, ...], strides: tuple[int, ...]) -> Stored:
    start = storage.address + (64 if min(strides) < 0 else 0)
    return Stored(storage, View(start, strides, 2), shape)


@pytest.mark.parametrize(
    ("strides", "expected"),
    [((10, 2), (10, 2)), ((2, 8), (2, 8)), ((40, 4), (10, 2)), ((-10, -2), (10, 2))],
    ids=["rows", "columns", "gaps", "backwards"],
)
def test_results_are_packed_in_the_order_of_the_operand(
    storage: Storage, strides: tuple[int, int], expected: tuple[int, int]
) -> None:
    x = tensor(storage, (4, 5), strides)
    assert apply(Op.NOT, x).strides == expected
    assert apply(Op.XOR, Constant(b"\0\0"), x).strides == expected
    assert apply(Op.COUNT, x, itemsize=4).strides == tuple(2 * step for step in expected)
    assert widen(x, 8, signed=True).strides == tuple(4 * step for step in expected)
    assert narrow(x, 1).strides == tuple(step // 2 for step in expected)
    assert copy_ordered(x, (0, 1)).strides == (10, 2)


def test_a_repeated_operand_gives_rows(storage: Storage) -> None:
    x = tensor(storage, (4, 5), (0, 2))
    assert apply(Op.NOT, x).strides == (10, 2)


def test_shapes_broadcast(storage: Storage) -> None:
    a, b = tensor(storage, (4, 1), (2, 2)), tensor(storage, (3, 1, 5), (10, 10, 2))
    assert apply(Op.OR, a, b).shape == (3, 4, 5)
    assert broadcast(a, (3, 4, 5)).strides == (0, 2, 0)
    assert broadcast(a, (4, 1)) is a


def test_windows_of_windows_are_windows_of_the_memory(storage: Storage) -> None:
    x = apply(Op.NOT, tensor(storage, (4, 5), (10, 2)))
    low = window(window(x, 12, (3, 4), (10, 2)), 3, (2, 2), (20, 4), 1)
    assert (low.shape, low.strides, low.itemsize) == ((2, 2), (20, 4), 1)
    leaf = window(tensor(storage, (4, 5), (10, 2)), 12, (3, 4), (10, 2))
    assert isinstance(leaf, Stored)
    assert leaf.view == View(storage.address + 12, (10, 2), 2)


def test_what_needs_no_work_makes_no_node(storage: Storage) -> None:
    x = tensor(storage, (4, 5), (10, 2))
    assert widen(x, 2, signed=True) is x
    assert narrow(x, 2) is x


REFUSED: dict[str, tuple[Any, type[Exception], str]] = {
    "no second operand": (lambda x: apply(Op.XOR, x), LayoutError, "XOR takes 2 operands"),
    "a second operand": (lambda x: apply(Op.NOT, x, x), LayoutError, "NOT takes 1 operands"),
    "two sizes": (lambda x: apply(Op.AND, x, Constant(b"\0")), LayoutError, "2 and 1 bytes"),
    "a size of logic": (lambda x: apply(Op.NOT, x, itemsize=4), LayoutError, "result of NOT"),
    "a size of counts": (lambda x: apply(Op.COUNT, x, itemsize=2), LayoutError, "of COUNT"),
    "three bytes": (lambda x: Constant(b"abc"), LayoutError, "3 bytes; expected 1, 2, 4 or 8"),
    "wider to narrower": (lambda x: widen(x, 1, signed=False), LayoutError, "1 bytes hold no"),
    "narrower to wider": (lambda x: narrow(x, 4), LayoutError, "of 2 bytes have no 4"),
    "shapes": (
        lambda x: apply(Op.OR, x, broadcast(Constant(b"\0\0"), (4,))),
        ShapeError,
        r"\(4, 5\) and \(4,\) do not broadcast",
    ),
    "fewer axes": (lambda x: broadcast(x, (5,)), ShapeError, "does not broadcast"),
    "past the end": (lambda x: window(x, 2, (128,), (2,)), LayoutError, "2 to 257; expected"),
    "before the start": (lambda x: window(x, 2, (3,), (-2,)), LayoutError, "bytes -2 to"),
    "past a result": (
        lambda x: window(apply(Op.NOT, x), 38, (2,), (2,)),
        LayoutError,
        "38 to 41; expected",
    ),
}


@pytest.mark.parametrize(("make", "error", "message"), REFUSED.values(), ids=REFUSED)
def test_refusals(storage: Storage, make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make(tensor(storage, (4, 5), (10, 2)))


def test_nodes_show_briefly_what_they_are(storage: Storage) -> None:
    x: Expression = tensor(storage, (4, 5), (10, 2))
    for _ in range(100):
        x = apply(Op.XOR, x, x)
    assert repr(x).startswith("<bitlane expression: Applied at 0x")


def test_parts_that_do_not_fit_are_refused(storage: Storage) -> None:
    x, row = tensor(storage, (4, 5), (10, 2)), tensor(storage, (5,), (2,))
    assert (join([x, x], 1).shape, join([x, x], 1).strides) == ((4, 10), (20, 2))
    for parts, axis in (([x, x], 2), ([x, row], 0), ([x, window(x, 0, (4, 3), (10, 2))], 0)):
        with pytest.raises(ShapeError, match=f"parts: shapes .*alike but for axis {axis}"):
            join(parts, axis)
    with pytest.raises(LayoutError, match="parts: elements of 2 and 1 bytes; expected alike"):
        join([x, window(x, 0, (4, 5), (10, 2), 1)], 0)


# --- bits that may be 1 ---------------------------------------------------------------------------


X = Argument(VirtualBuffer(48), View(0, (4,), 4), (12,))


def mask(number: int, node: Expression = X) -> Applied:
    return apply(Op.AND, node, Constant(number.to_bytes(4, "little")))


COUNTS = apply(Op.COUNT, X, itemsize=4)
FIVE = mask(5)
ONES = add_up(apply(Op.COUNT, FIVE), (0,))

CASES: dict[str, tuple[Expression, int]] = {
    "anything": (X, 0xFFFFFFFF),
    "a mask": (FIVE, 5),
    "or": (apply(Op.OR, FIVE, mask(8)), 13),
    "exclusive or": (apply(Op.XOR, FIVE, mask(1)), 5),
    "or with anything": (apply(Op.OR, X, FIVE), 0xFFFFFFFF),
    "not": (apply(Op.NOT, FIVE), 0xFFFFFFFF),
    "a copy": (apply(Op.COPY, FIVE), 5),
    "counts": (COUNTS, 63),
    "counts of a mask": (apply(Op.COUNT, FIVE), 3),
    "counts of one operation": (apply(Op.COUNT_AND, FIVE, X), 63),
    "truth": (truth_of(X), 1),
    "low bytes": (narrow(mask(0x1FF), 1), 255),
    "of a mask": (narrow(FIVE, 1), 5),
    "bytes of counts": (window(COUNTS, 0, (48,), (1,), 1), 255),
    "counts from byte 1 on": (window(COUNTS, 1, (11,), (4,), 4), 0xFFFFFFFF),
    "every other count": (window(COUNTS, 4, (5,), (8,), 4), 63),
    "pairs of counts": (window(COUNTS, 0, (6,), (8,), 8), 0xFFFFFFFFFFFFFFFF),
    "wide": (widen(FIVE, 8, signed=False), 5),
    "signs": (widen(narrow(mask(0x80), 1), 2, signed=True), 0xFF80),
    "no signs": (widen(narrow(mask(0x7F), 1), 2, signed=True), 0x7F),
    "a sum": (ONES, 31),
    "sums of the host": (add_on_host([ONES, ONES], [1, 4], (), 8), 127),
    "a negative weight": (add_on_host([ONES], [-1], (), 4), 0xFFFFFFFF),
    "a weight that exceeds the type": (add_on_host([ONES], [8], (), 1), 0xFF),
}


@pytest.mark.parametrize("name", CASES)
def test_bits_that_may_be_1(name: str) -> None:
    node, bits = CASES[name]
    assert possible_bits(node, lambda stored: None) == bits
