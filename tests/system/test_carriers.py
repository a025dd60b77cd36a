"""Operators and searches give NumPy's results on each carrier: devices, a pool, a Dask cluster."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import bitlane
from support.host.arrays import INTEGERS, TYPES, random, same
from support.host.beside_numpy import IN_NUMPY, LAYOUTS, content, ways_of_axes
from support.host.indexes import nearest, within
from support.seeds import slow
from support.system.devices import DEFAULT, DEVICES, NARROW, WISHBONE, opened

Compute = Callable[..., Any]
"""A call of a method: its name, operands and options."""

OPERATORS: dict[str, Callable[..., Any]] = {
    "bit_not": np.invert,
    "bit_copy": np.copy,
    "bit_and": np.bitwise_and,
    "bit_or": np.bitwise_or,
    "bit_xor": np.bitwise_xor,
    "bit_nand": lambda a, b: ~(a & b),
    "bit_nor": lambda a, b: ~(a | b),
    "bit_xnor": lambda a, b: ~(a ^ b),
    "bit_shift_left": np.left_shift,
    "bit_shift_right": np.right_shift,
    "bit_count": IN_NUMPY["bit_count"],
}
ONE = ("bit_not", "bit_copy", "bit_count")
SUMS = ("cardinality", "hamming", "jaccard")

SHAPES = [
    ((300, 40), (300, 40)),
    ((300, 40), (40,)),
    ((1, 400), (30, 1)),
    ((7, 1, 50), (30, 1)),
    ((100, 40), (100, 1)),
    ((), (60,)),
    ((), ()),
    ((1,) * 8, (1,)),
    ((0, 7), (7,)),
    ((3, 0, 2), ()),
]
"""Shapes that broadcast."""

LARGE = [((3000, 40), (40,)), ((1, 90_000), (2, 1)), ((), (60_000,))]
"""Shapes that a pool cuts."""

OTHER_KINDS = ("i2", ">u8")


def _operands() -> Iterator[Any]:
    """Yield shapes and types; the full tier has half of those beyond the quick ones, in turn."""
    yield from ((shapes, "u4") for shapes in SHAPES)
    more = [*product(SHAPES, OTHER_KINDS), *product(LARGE, ("u4", *OTHER_KINDS))]
    for number, pair in enumerate(more):
        marks = [] if number % 4 in (0, 3) else [pytest.mark.deep]
        yield pytest.param(*pair, marks=[pytest.mark.slow, *marks])


@contextmanager
def _cluster() -> Iterator[Compute]:
    # Loaded for the slow tests alone.
    import dask.array as da

    import bitlane.dask
    from support.system.clusters import SECONDS, cluster_of

    with cluster_of(2) as client:
        bitlane.dask.equip(client)

        def cut(x: NDArray[Any]) -> Any:
            return da.from_array(x, chunks=tuple(-(-n // 3) or 1 for n in x.shape))

        def compute(name: str, *operands: Any, **options: Any) -> Any:
            cut_one = int(name == "search")
            chunked = [
                cut(x) if isinstance(x, np.ndarray) and number == cut_one and x.size else x
                for number, x in enumerate(operands)
            ]
            lazy = getattr(bitlane.dask, name)(*chunked, **options)
            if not isinstance(lazy, tuple):
                return get([lazy])[0]
            return get(list(lazy))

        def get(lazy: list[Any]) -> list[Any]:
            got = [client.compute(x).result(SECONDS) if hasattr(x, "dask") else x for x in lazy]
            for told, one in zip(lazy, got, strict=True):
                unknown = any(n != n for n in told.shape)
                assert told.dtype == one.dtype
                assert unknown or told.shape == np.shape(one)
            return got

        yield compute


@pytest.fixture(scope="module", params=[*DEVICES, slow(WISHBONE), slow("pool"), slow("dask")])
def compute(request: pytest.FixtureRequest) -> Iterator[Compute]:
    if request.param == "dask":
        with _cluster() as of_cluster:
            yield of_cluster
        return
    pool = request.param == "pool"
    with bitlane.Pool([DEFAULT, NARROW]) if pool else opened(request.param) as on:
        yield lambda name, *operands, **options: getattr(on, name)(*operands, **options)


def expect(got: Any, wanted: Any, replay: object) -> None:
    wanted = np.asarray(wanted)
    assert same(np.asarray(got), wanted.astype(wanted.dtype.newbyteorder("="))), replay


def results(name: str, *operands: Any, **options: Any) -> NDArray[Any]:
    """Return NumPy's results; floats are computed on their encoding."""
    encodings = [x.view(f"u{x.itemsize}") if x.dtype.kind == "f" else x for x in operands]
    found = np.asarray((OPERATORS | IN_NUMPY)[name](*encodings, **options))
    return found if name in ("bit_count", *SUMS) else found.view(operands[0].dtype)


@pytest.mark.parametrize(("shapes", "kind"), [*_operands()], ids=str)
def test_operands_broadcast(compute: Compute, shapes: Any, kind: str) -> None:
    a, b = random(shapes[0], kind, 1), random(shapes[1], kind, 2)
    for name, numpys in OPERATORS.items():
        for x, y in ((a, b), (b, a)):
            operands = (x,) if name in ONE else (x, y)
            expect(compute(name, *operands), numpys(*operands), (name, kind, shapes))
    expect(compute("bit_count", a, np.uint32), results("bit_count", a, dtype="u4"), shapes)
    for name in ("bit_or", "bit_xnor", "bit_shift_right"):
        expect(compute(name, a, 7), OPERATORS[name](a, np.array(7, a.dtype)), (name, kind, shapes))


@pytest.mark.parametrize("name", OPERATORS)
def test_views_of_all_types(compute: Compute, name: str) -> None:
    kinds = INTEGERS if "shift" in name else [*TYPES, "?"]
    for number, layout in enumerate(LAYOUTS):
        view, kind = LAYOUTS[layout], kinds[number % len(kinds)]
        a, b = view(content(kind, number)), view(content(kind, number + 1))
        operands = (a,) if name in ONE else (a, b)
        expect(compute(name, *operands), results(name, *operands), (name, layout, kind, number))


@pytest.mark.parametrize(
    "shapes", [((20, 30, 11), (30, 1)), slow(((40, 50, 60), (50, 1)))], ids=str
)
@pytest.mark.parametrize("keepdims", [False, True])
def test_sums_along_axes(compute: Compute, shapes: Any, keepdims: bool) -> None:
    a, b = random(shapes[0], "u2", 1), random(shapes[1], "u2", 2)
    for axis in ways_of_axes(3)[1 if keepdims else 0 :: 2]:
        options: dict[str, Any] = {"axis": axis, "keepdims": keepdims}
        for name in SUMS:
            operands = (a,) if name == "cardinality" else (a, b)
            wanted = results(name, *operands, **options)
            expect(compute(name, *operands, **options), wanted, options)
        options["dtype"] = "u8"
        expect(compute("cardinality", a, **options), results("cardinality", a, **options), options)


def test_any_byte_of_a_boolean_but_0_is_true(compute: Compute) -> None:
    a, b = random((300, 400), "u1", 1) & 6, random((400,), "u1", 2) & 12
    x, y, true, other = a.view(bool), b.view(bool), a != 0, b != 0
    for name, numpys in (OPERATORS | IN_NUMPY).items():
        if "shift" in name:
            continue
        one = name in (*ONE, "cardinality")
        got = compute(name, *((x,) if one else (x, y)))
        expect(got, numpys(*((true,) if one else (true, other))), name)


def expect_all(got: Any, wanted: Any, replay: object) -> None:
    for one, other in zip(got, wanted, strict=True):
        expect(one, other, replay)


@pytest.mark.parametrize("metric", ["hamming", "jaccard"])
@pytest.mark.parametrize("row_bytes", [7, slow(1), slow(16), slow(129)])
def test_searches(compute: Compute, metric: str, row_bytes: int) -> None:
    rows = random((900, row_bytes), "u1", 1) & 3
    rows[500:700] = rows[:200]
    queries = rows[[0, 199, 700]]
    for k in (7, 1000):
        found = compute("search", queries, rows, k, metric=metric)
        expect_all(found, nearest(queries, rows, k, metric), (metric, k))
    radius = 4 if metric == "hamming" else 0.6
    found = compute("search", queries, rows, radius=radius, metric=metric)
    expect_all(found, within(queries, rows, radius, metric), metric)
    near = nearest(queries, rows, 7, metric)
    _, indices = compute("search", queries, rows, 7, radius=radius, metric=metric)
    expect(indices, np.where(near[0] < radius, near[1], -1), metric)
    ids = 3 * np.arange(len(rows))[::-1]
    _, named = compute("search", queries, rows, 7, metric=metric, ids=ids)
    expect(named, ids[near[1]], metric)


@pytest.mark.parametrize("share", [0, 0.001, 0.3, 1])
def test_searches_among_some_rows(compute: Compute, share: float) -> None:
    rows, generator = random((900, 16), "u1", 1), np.random.default_rng(2)
    mask, ids = generator.random(900) < share, generator.permutation(900) + 2**62
    some, queries = rows[mask], rows[[0, 499, 700]]
    for named, options in (
        (np.arange(900), {"select": mask}),
        (ids, {"ids": ids, "select": bitlane.IDSelectorNot(ids[~mask])}),
    ):
        distances, found = nearest(queries, some, 7)
        wanted = distances, np.append(named[mask], -1)[found]
        expect_all(compute("search", queries, rows, 7, **options), wanted, share)
        limits, distances, found = within(queries, some, 50)
        got = compute("search", queries, rows, radius=50, **options)
        expect_all(got, (limits, distances, named[mask][found]), share)
