"""A plan depends on each field of a form: one that is stored without it is caught."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bitlane.compiler import (
    Applied,
    CompiledForm,
    Constant,
    Expression,
    Form,
    Joined,
    Location,
    Plan,
    Stored,
    Viewed,
    Widened,
    add_up,
    allocate,
    apply,
    assign,
    broadcast,
    compute_in_stages,
    compute_sums_below,
    copy_ordered,
    describe,
    evaluate,
    evaluation,
    fuse,
    join,
    plan_passes,
    widen,
    window,
    write_into,
)
from bitlane.driver import Driver, Storage
from bitlane.errors import DeviceFault
from bitlane.lowering import Options, View, insert_fences
from bitlane_rtl.abi import Op
from support.host.arrays import random
from support.host.model_link import ModelLink

# --- evaluation that plans every expression anew, at its own addresses: nothing is stored ---------


def evaluate_anew(driver: Driver, roots: Sequence[Expression]) -> list[Stored]:
    """Do what ``evaluate`` does."""
    wanted = [root for root in dict.fromkeys(roots) if not isinstance(root, Stored)]
    results = compute_in_stages(driver, wanted, _evaluate)
    return [root if isinstance(root, Stored) else results[root] for root in roots]


def _evaluate(driver: Driver, roots: Sequence[Expression]) -> list[Stored]:
    plan = plan_passes(fuse(roots, driver.geometry), driver.geometry)
    find = _run(driver, plan)
    results = []
    for root, location in zip(roots, plan.results, strict=True):
        results.append(Stored(*find(location), root.shape))
        if isinstance(root, Applied | Widened | Joined):
            root.cache(results[-1])
    return results


def assign_anew(driver: Driver, target: Stored, value: Expression) -> None:
    """Do what ``assign`` does."""
    sums = compute_sums_below(driver, value, _evaluate)
    roots = fuse([broadcast(value, target.shape)], driver.geometry)
    plan = plan_passes(roots, driver.geometry)
    _run(driver, write_into(plan, [Location(None, target.view)], [target.shape]))
    for total in sums:
        total.storage.close()


def _run(driver: Driver, plan: Plan) -> Callable[[Location], tuple[Storage, View]]:
    """Execute ``plan``; return a function that finds results."""
    memory = allocate(plan)
    sizes = (*memory.bound, memory.temporary) if memory.temporary else memory.bound
    taken = [Storage(driver, size) for size in sizes]
    starts = [storage.address for storage in taken]
    if plan.constants.size:
        driver.write(starts[-1], plan.constants.content)
    driver.run(
        insert_fences(memory.groups(starts, driver.geometry.abilities, driver.geometry.memory))
    )

    def find(location: Location) -> tuple[Storage, View]:
        assert location.buffer is not None
        area, _ = memory.places[location.buffer]
        return taken[area], memory.view(location, starts)

    return find


# --- two expressions for each field of a form, which differ in it alone ---------------------------

FIELDS: dict[Any, str] = {
    Stored: "area offset shape strides itemsize",
    Constant: "content",
    Applied: "a op b shape strides itemsize options summed",
    Viewed: "source offset shape strides itemsize",
    Widened: "source shape strides itemsize signed",
    Joined: "parts axis",
    Form: "areas roots target",
}
"""The fields of rows and of forms. Abilities are a field of their own."""


def x(of: Storage, at: int = 0, shape: Any = (3,), strides: Any = (1,), size: int = 1) -> Stored:
    return Stored(of, View(of.address + at, strides, size), shape)


def xor(a: Expression, b: Expression) -> Applied:
    return apply(Op.XOR, a, b)


def inverted(a: Expression) -> Applied:
    return apply(Op.NOT, a)


def count(a: Expression, size: int = 1) -> Applied:
    return apply(Op.COUNT, a, itemsize=size)


def shifted(a: Expression, *, arithmetic: bool) -> Applied:
    return apply(Op.SHIFT_RIGHT, a, Constant(b"\2"), options=Options.of(arithmetic=arithmetic))


def with_two(s: Storage, t: Storage, last: Callable[..., Expression]) -> list[Expression]:
    """Return two inversions, and ``last`` of them."""
    one, other = inverted(x(s)), inverted(x(t))
    return [one, other, last(one, other)]


def with_xor(s: Storage, t: Storage, last: Callable[..., Expression]) -> list[Expression]:
    """Return an exclusive or, and ``last`` of it, its first operand and another leaf."""
    first = x(s)
    both = xor(first, x(t))
    return [both, last(both, first, x(t, 9))]


def seen(shape: Any, strides: Any, size: int = 1) -> Callable[[Storage], Expression]:
    def look(s: Storage) -> Expression:
        return window(inverted(x(s, 0, (8,))), 0, shape, strides, size)

    return look


THREE, TWO_WIDE = seen((3,), (2,)), seen((3,), (2,), 2)
SQUARE = (3, 3), (3, 1)

PAIRS: dict[tuple[Any, str], list[Callable[[Storage, Storage], list[Expression]]]] = {
    (Stored, "area"): [
        lambda s, t: [xor(xor(x(s), x(t, 1)), x(s, 9))],
        lambda s, t: [xor(xor(x(s), x(t, 1)), x(t, 9))],
    ],
    (Stored, "offset"): [lambda s, t, n=n: [inverted(x(s, n))] for n in (1, 2)],
    (Stored, "shape"): [
        lambda s, t, shape=shape: [xor(x(s), x(t, 0, shape))] for shape in ((3,), (1,))
    ],
    (Stored, "strides"): [lambda s, t, n=n: [inverted(x(s, 8, strides=(n,)))] for n in (2, -2)],
    (Stored, "itemsize"): [lambda s, t, n=n: [count(x(s, 0, (3,), (2,), n))] for n in (1, 2)],
    (Constant, "content"): [lambda s, t, n=n: [xor(x(s), Constant(n))] for n in (b"\1", b"\2")],
    (Applied, "a"): [
        lambda s, t: with_xor(s, t, lambda both, first, other: apply(Op.AND, both, other)),
        lambda s, t: with_xor(s, t, lambda both, first, other: apply(Op.AND, first, other)),
    ],
    (Applied, "op"): [lambda s, t, op=op: [apply(op, x(s), x(t))] for op in (Op.AND, Op.OR)],
    (Applied, "b"): [
        lambda s, t: with_xor(s, t, lambda both, first, other: apply(Op.AND, other, both)),
        lambda s, t: with_xor(s, t, lambda both, first, other: apply(Op.AND, other, first)),
    ],
    (Applied, "strides"): [
        lambda s, t, order=order: [copy_ordered(x(s, 0, *SQUARE), order)]
        for order in ((0, 1), (1, 0))
    ],
    (Applied, "itemsize"): [lambda s, t, n=n: [count(x(s, 0, (), ()), n)] for n in (1, 4)],
    (Applied, "options"): [lambda s, t, n=n: [shifted(x(s), arithmetic=n)] for n in (False, True)],
    (Applied, "summed"): [
        lambda s, t, axes=axes: [add_up(count(x(s, 0, *SQUARE)), axes)] for axes in ((0,), (1,))
    ],
    (Viewed, "source"): [
        lambda s, t: with_two(s, t, lambda a, b: xor(window(a, 1, (2,), (1,)), x(s, 0, (2,)))),
        lambda s, t: with_two(s, t, lambda a, b: xor(window(b, 1, (2,), (1,)), x(s, 0, (2,)))),
    ],
    (Viewed, "offset"): [
        lambda s, t, n=n: [xor(window(inverted(x(s)), n, (2,), (1,)), x(t, 0, (2,)))]
        for n in (0, 1)
    ],
    (Viewed, "shape"): [lambda s, t, n=n: [xor(x(t), seen(n, (1,))(s))] for n in ((3,), (1,))],
    (Viewed, "strides"): [lambda s, t, n=n: [xor(x(t), seen((3,), (n,))(s))] for n in (1, 2)],
    (Viewed, "itemsize"): [lambda s, t, look=look: [count(look(s))] for look in (THREE, TWO_WIDE)],
    (Widened, "source"): [
        lambda s, t: with_two(s, t, lambda a, b: widen(a, 4, signed=False)),
        lambda s, t: with_two(s, t, lambda a, b: widen(b, 4, signed=False)),
    ],
    (Widened, "itemsize"): [
        lambda s, t, n=n: [widen(x(s, 0, (), ()), n, signed=False)] for n in (2, 4)
    ],
    (Joined, "parts"): [
        lambda s, t: with_two(s, t, lambda a, b: join([a, b], 0)),
        lambda s, t: with_two(s, t, lambda a, b: join([b, a], 0)),
    ],
    (Joined, "axis"): [
        lambda s, t, axis=axis: [join([x(s, 0, *SQUARE), x(t, 0, *SQUARE)], axis)]
        for axis in (0, 1)
    ],
    (Widened, "signed"): [lambda s, t, n=n: [widen(x(s), 2, signed=n)] for n in (False, True)],
}
"""Expressions that differ in one field of their forms."""

IMPLIED = {(Applied, "shape"), (Widened, "shape"), (Widened, "strides"), (Form, "areas")}
"""Shapes and strides that follow from those of operands, and sizes, which are checked alone."""


def without(form: Form, kind: Any, field: str) -> Form:
    """Return ``form`` without a field."""
    if kind is Form:
        return form._replace(**{field: None})
    at = 1 + FIELDS[kind].split().index(field)
    rows = [(*row[:at], None, *row[at + 1 :]) if row[0] is kind else row for row in form.rows]
    return form._replace(rows=tuple(rows))


class Forgetful:
    """Stores plans by the forms without one field."""

    def __init__(self, kind: Any, field: str) -> None:
        self._field = kind, field
        self._stored: dict[Any, CompiledForm] = {}

    def __call__(self, form: Form, abilities: Any) -> CompiledForm:
        key = without(form, *self._field), abilities
        return self._stored.setdefault(key, CompiledForm(form, abilities))


def storages(driver: Driver) -> tuple[Storage, Storage]:
    """Return two storages of 64 random bytes."""
    made = Storage(driver, 64), Storage(driver, 64)
    for number, storage in enumerate(made):
        driver.write(storage.address, random(64, "u1", 5 + number))
    return made


def content(driver: Driver, stored: Stored) -> NDArray[Any]:
    """Return the bytes of a result's memory."""
    return driver.read(stored.storage.address, stored.storage.size)


def agree(driver: Driver, roots: list[Expression], anew: list[Expression]) -> bool:
    """Return whether stored plans give the bytes of plans that are made anew."""
    got, expected = evaluate(driver, roots), evaluate_anew(driver, anew)
    return all(
        np.array_equal(content(driver, x), content(driver, y))
        for x, y in zip(got, expected, strict=True)
    )


def test_all_fields_are_tried() -> None:
    fields = {(kind, field) for kind in FIELDS for field in FIELDS[kind].split()}
    elsewhere = {(Form, "roots"), (Form, "target")}
    assert fields == {*PAIRS, *IMPLIED, *elsewhere}


@pytest.mark.parametrize(("kind", "field"), PAIRS)
def test_a_plan_depends_on_each_field_of_a_row(
    driver: Driver, kind: Any, field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    s, t = storages(driver)
    first, second = PAIRS[kind, field]
    one, other = describe(first(s, t))[0], describe(second(s, t))[0]
    assert one != other
    assert without(one, kind, field) == without(other, kind, field)
    assert agree(driver, first(s, t), first(s, t))
    assert agree(driver, second(s, t), second(s, t))
    monkeypatch.setattr(evaluation, "compile_form", Forgetful(kind, field))
    assert agree(driver, first(s, t), first(s, t))
    assert not agree(driver, second(s, t), second(s, t)), "the field has no effect"


def test_a_plan_depends_on_the_order_of_results(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    def roots(*, swapped: bool) -> list[Expression]:
        both = xor(x(s), x(t))
        made: list[Expression] = [apply(Op.AND, both, x(s, 9)), both]
        return made[::-1] if swapped else made

    s, t = storages(driver)
    one, other = (describe(roots(swapped=each))[0] for each in (False, True))
    assert one != other
    assert one.areas == other.areas
    for each in (False, True):
        assert agree(driver, roots(swapped=each), roots(swapped=each))
    plan = CompiledForm(one, driver.geometry.abilities)
    monkeypatch.setattr(evaluation, "compile_form", lambda *_: plan)
    assert not agree(driver, roots(swapped=True), roots(swapped=True))


def test_a_plan_depends_on_its_target(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    def written(number: int, assign: Callable[..., None]) -> list[int]:
        s, t = storages(driver)
        leaves = x(s), x(t)
        assign(driver, leaves[number], xor(*leaves))
        return [*driver.read(s.address, 64).tolist(), *driver.read(t.address, 64).tolist()]

    for number in (0, 1):
        assert written(number, assign) == written(number, assign_anew)
    monkeypatch.setattr(evaluation, "compile_form", Forgetful(Form, "target"))
    assert written(0, assign) == written(0, assign_anew)
    assert written(1, assign) != written(1, assign_anew)


def test_a_plan_depends_on_the_abilities(monkeypatch: pytest.MonkeyPatch) -> None:
    def runs(driver: Driver) -> None:
        a = x(storages(driver)[0], 0, (3, 5), (5, 1))
        evaluate(driver, [inverted(window(a, 0, (3, 2), (5, 1)))])

    full, small = (Driver(ModelLink(memory_bytes=1 << 12, loops=n)) for n in (4, 1))
    for driver in (full, small):
        runs(driver)
    plans: dict[Form, CompiledForm] = {}

    def forget(form: Form, abilities: Any) -> CompiledForm:
        return plans.setdefault(form, CompiledForm(form, abilities))

    monkeypatch.setattr(evaluation, "compile_form", forget)
    runs(full)
    with pytest.raises(DeviceFault):
        runs(small)


def test_a_value_that_is_cached_is_copied(driver: Driver) -> None:
    s, t = storages(driver)
    node = inverted(xor(x(s), x(t)))
    for root in (node, window(node, 1, (2,), (1,))):
        (first,), (second,) = evaluate(driver, [node]), evaluate(driver, [root])
        assert first.storage is not second.storage
        offset = 0 if root is node else 1
        shown = content(driver, second)[second.view.address - second.storage.address :]
        assert shown[:2].tolist() == content(driver, first)[offset : offset + 2].tolist()


def test_a_target_is_not_written_before_all_of_it_is_read(driver: Driver) -> None:
    def written(assign: Callable[..., None]) -> list[int]:
        s, _ = storages(driver)
        assign(driver, x(s, 0, (8,), (2,), 2), widen(x(s, 4, (8,)), 2, signed=True))
        return driver.read(s.address, 64).tolist()

    assert written(assign) == written(assign_anew)
