"""Random steps give what NumPy gives: any value over any target, views, pending values.

As if everything were computed at once and every operand copied first. The modelled device asserts
that no access leaves an allocation; circuits have guard bytes around each.
"""

import gc
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bitlane
from bitlane import Device
from bitlane.arrays import value as arrays_value
from bitlane.lowering import Streams, View, lower
from bitlane_rtl.abi import Lane, Mode, Op
from support.host.arrays import model, random
from support.host.planned_anew import assign_anew, evaluate_anew
from support.host.scenes import Scene
from support.seeds import seeds
from support.system.devices import DEFAULT, DEVICES, opened

CIRCUITS: list[dict[str, Any]] = [
    {},
    {"loops": 1, "data_bytes": 4},
    {"data_bytes": 16, "read_ports": 1},
    {"modes": frozenset(Mode) - {Mode.SUM}},
    {"lanes": frozenset({Lane.BITS_8, Lane.BITS_32})},
    {"ops": frozenset(Op) - {Op.COUNT_XOR, Op.COUNT_AND, Op.NAND, Op.XNOR}},
]


def play(scene: Scene, steps: int) -> bool:
    """Return whether the memory is to be given back when the scene is."""
    for _ in range(steps):
        scene.step()
    scene.finish()
    return not scene.lost


@pytest.mark.parametrize("changes", CIRCUITS, ids=str)
@pytest.mark.parametrize("seed", seeds(4, 100))
def test_any_steps(seed: int, changes: dict[str, Any]) -> None:
    device = model(**changes)
    whole = play(Scene(device, seed, limited=bool(changes)), 20)
    gc.collect()
    assert not whole or not device.driver.allocator.pieces, "memory was not given back"


@pytest.mark.parametrize("seed", seeds(2, 20))
@pytest.mark.parametrize("url", DEVICES)
def test_any_steps_of_a_circuit(url: str, seed: int) -> None:
    with opened(url) as device:
        if not play(Scene(device, seed), 40):
            gc.collect()
            for left in list(device.driver.allocator.taken):
                device.driver.free(left)


# --- what the guards see ------------------------------------------------------------------------


def _write_behind() -> None:
    with opened(DEFAULT) as device:
        x = device.asarray(random(9, "u1"))
        memory = device.driver.link.memory_view
        assert memory is not None
        memory[x._value.stored.storage.address - device.driver.geometry.memory_base + 12] ^= 1
        x.free()


def test_guard_bytes_of_a_circuit_are_looked_at() -> None:
    with pytest.raises(AssertionError, match=r"bytes \[3\] of the guard behind"):
        _write_behind()


def test_an_access_beside_an_allocation_is_seen() -> None:
    driver = model().driver
    source, target = driver.allocate(16).address, driver.allocate(15).address
    with pytest.raises(AssertionError, match=r"write: bytes .* are in no single allocation"):
        driver.write(source + 9, bytes(8))
    with pytest.raises(AssertionError, match="read: bytes"):
        driver.read(target - 1, 2)
    streams = Streams(View(source, (1,), 1), None, View(target, (1,), 1))
    has = driver.geometry
    with pytest.raises(AssertionError, match="WRITE: bytes"):
        driver.run(lower(Op.COPY, (16,), streams, has.abilities, has.memory))


BYTES = 96
"""Bytes of each array that views show."""

SHAPES = [(), (5,), (2, 3), (3, 3), (2, 2, 2)]
KINDS = ["u1", "u2", "u4", "u8", "i1", "i4"]
FUNCTIONS = [np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.left_shift, np.right_shift]
URL = "numpy?memory=64KiB"

Made = tuple[Any, list[Any]]
"""An array of NumPy's, and the same on each device."""


class Walker:
    """Does random things to arrays on ``devices`` and to NumPy's, and compares them.

    A step is one of the last again, with another decision at one place or with the same ones, as
    plans are taken for others that differ little.
    """

    def __init__(self, seed: int, devices: list[Device]) -> None:
        self._random = np.random.default_rng(seed)
        self._scripts: deque[list[int]] = deque(maxlen=8)
        self._script: list[int] = []
        """The decisions of this step that are made already."""
        self._made: list[int] = []
        self._devices = devices
        contents = self._random.integers(0, 256, (3, BYTES), np.uint8)
        self._bases = [(x, [device.asarray(x) for device in devices]) for x in contents]
        self._pending: list[Made] = []

    def step(self) -> None:
        self._script, self._made = [], []
        if self._scripts and self._random.integers(8):
            self._script = list(self._scripts[self._random.integers(len(self._scripts))])
            if self._random.integers(4):
                self._script[self._random.integers(len(self._script))] += 1
        self._act()
        self._scripts.append(self._made)

    def _act(self) -> None:
        action = self._pick(
            [
                *(self.result, self.result, self.two, self.sums, self.totals),
                *(self.write, self.write, self.operate),
            ]
        )
        action()

    def result(self) -> None:
        self._compare(
            self._expression(self._pick(SHAPES), self._pick(KINDS), self._pick([1, 2, 3]))
        )

    def two(self) -> None:
        """Compute two expressions, one of them a part of the other or not, as one job."""
        kind, shape = self._pick(KINDS), self._pick(SHAPES)
        one = self._expression(shape, kind, 2)
        other = one if self._flip() else self._expression(shape, kind, 1)
        other = self._apply(np.bitwise_xor, other, self._expression(shape, kind, 1))
        for x, y in zip(one[1], other[1], strict=True):
            bitlane.compute(x, y)
        # Both values are computed now, and later expressions still take them as operands.
        self._pending = [one, other]
        self._compare(one)
        self._compare(other)

    def sums(self) -> None:
        shape, kind = self._pick(SHAPES), self._pick(KINDS[:4])
        counts = self._apply(np.bitwise_count, self._expression(shape, kind, self._pick([0, 1])))
        axis = self._pick([None, *range(len(shape))])
        self._compare((np.asarray(counts[0].sum(axis=axis)), [x.sum(axis) for x in counts[1]]))

    def totals(self) -> None:
        """Sum elements, which a number may mask, and operate on the sums."""
        shape, kind = self._pick(SHAPES), self._pick(KINDS)
        made = self._expression(shape, kind, self._pick([0, 1]))
        if self._flip():
            made = self._apply(np.bitwise_and, made, self._number(kind))
        axis = self._pick([None, *range(len(shape))])
        sums = np.asarray(made[0].sum(axis)), [x.sum(axis) for x in made[1]]
        if self._flip():
            sums = self._apply(np.invert, sums)
        self._compare(sums)

    def write(self) -> None:
        """Write an expression over a view of a base, of which it may read bytes."""
        shape, kind = self._pick(SHAPES), self._pick(KINDS)
        host, here = self._view(shape, kind)
        value = self._expression(shape, kind, self._pick([0, 1, 2]))
        # A copy, as NumPy loses bytes of operands that overlap, repeat and are not aligned.
        host[...] = value[0].copy()
        for x, y in zip(here, value[1], strict=True):
            x[...] = y
        self._compare_bases()

    def operate(self) -> None:
        """Operate in place."""
        shape, kind = self._pick(SHAPES), self._pick(KINDS)
        target = self._view(shape, kind)
        function = self._pick(FUNCTIONS)
        first, second = self._expression(shape, kind, 1), self._leaf(shape, kind)
        target[0][...] = function(first[0], second[0])
        for x, y, out in zip(first[1], second[1], target[1], strict=True):
            function(x, y, out=out)
        self._compare_bases()

    # --- expressions ----------------------------------------------------------------------------

    def _expression(self, shape: tuple[int, ...], kind: str, depth: int) -> Made:
        if not depth:
            return self._leaf(shape, kind)
        first = self._expression(shape, kind, depth - 1)
        way = self._pick(["two", "two", "two", "not", "widen", "count", "where", "order"])
        if way == "not":
            return self._apply(np.invert, first)
        if way == "order":
            order = self._pick(["C", "F"])
            return first[0].copy(order), [x.copy(order) for x in first[1]]
        if way == "where":
            second = self._expression(shape, kind, depth - 1)
            chosen = self._apply(np.equal, self._leaf(shape, "u1"), self._leaf(shape, "u1"))
            return self._apply(np.where, chosen, first, second)
        if way in ("widen", "count"):
            narrow = self._pick([x for x in KINDS if x[1:] <= kind[1:]])
            inner = self._expression(shape, narrow, depth - 1)
            if way == "count" and narrow[0] == "u":
                inner = self._apply(np.bitwise_count, inner)
            return inner[0].astype(kind), [x.astype(kind) for x in inner[1]]
        function = self._pick(FUNCTIONS)
        second = self._pick([self._leaf(shape, kind), first, self._number(kind)])
        return self._apply(function, *((second, first) if self._flip() else (first, second)))

    def _number(self, kind: str) -> Made:
        number = np.dtype(kind).type(self._pick([0, 1, 3, 7]))
        return number, [number] * len(self._devices)

    def _leaf(self, shape: tuple[int, ...], kind: str) -> Made:
        alike = [x for x in self._pending if x[0].shape == shape and x[0].dtype == kind]
        if alike and self._flip():
            return self._pick(alike)
        if shape and self._pick([False, False, False, True]):
            narrow = self._view((1, *shape[1:]), kind)
            return self._apply(lambda x: np.broadcast_to(x, shape), narrow)
        return self._view(shape, kind)

    def _view(self, shape: tuple[int, ...], kind: str) -> Made:
        """Return a view of a base: dense or with gaps, from any byte on, in any direction."""
        size, count = np.dtype(kind).itemsize, int(np.prod(shape))
        # Elements with gaps have no other shape without a copy.
        gaps = len(shape) < 2 and size * (2 * count - 1) <= BYTES
        step = self._pick([1, 1, -1, 2, -2] if gaps else [1, 1, -1])
        reach = size * (1 + (count - 1) * abs(step))
        first = self._decide(min(9, BYTES - reach) + 1)
        turned = self._flip()

        def view(x: Any) -> Any:
            elements = x[first : first + reach].view(kind)[::step]
            return elements.reshape(shape[::-1]).T if turned else elements.reshape(shape)

        host, here = self._pick(self._bases)
        assert np.shares_memory(view(host), host)
        return view(host), [view(x) for x in here]

    def _apply(self, function: Callable[..., Any], *operands: Made) -> Made:
        here = [
            function(*(operand[1][number] for operand in operands))
            for number in range(len(self._devices))
        ]
        with np.errstate(all="ignore"):
            return np.asarray(function(*(operand[0] for operand in operands))), here

    # --- comparisons ----------------------------------------------------------------------------

    def _compare(self, made: Made) -> None:
        host, here = made
        for x in here:
            got = np.asarray(x)
            assert got.dtype == host.dtype
            assert np.array_equal(got, host)

    def _compare_bases(self) -> None:
        for base in self._bases:
            self._compare(base)

    def _pick(self, choices: list[Any]) -> Any:
        return choices[self._decide(len(choices))]

    def _flip(self) -> bool:
        return bool(self._decide(2))

    def _decide(self, count: int) -> int:
        """Return a number below ``count``."""
        at = len(self._made)
        again = at < len(self._script)
        self._made.append(self._script[at] % count if again else int(self._random.integers(count)))
        return self._made[at]


# --- plans that are stored beside plans that are made anew --------------------------------------


class Traffic:
    """All that is written to a device, by its link."""

    def __init__(self, device: Device) -> None:
        self.writes: list[tuple[int, bytes]] = []
        self._write = device.driver.link.write
        vars(device.driver.link)["write"] = self._note

    def _note(self, address: int, data: Any) -> None:
        self.writes.append((address, bytes(data)))
        self._write(address, data)


def walk(seed: int, steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Take ``steps`` on a device with stored plans and on one without."""
    with bitlane.open(URL) as stored, bitlane.open(URL) as anew:
        _plan_anew(anew, monkeypatch)
        traffic = [Traffic(device) for device in (stored, anew)]
        walker = Walker(seed, [stored, anew])
        for _ in range(steps):
            walker.step()
            first, second = (each.writes for each in traffic)
            assert first == second
            first.clear()
            second.clear()


def _plan_anew(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let ``device``, and no other, plan each expression anew."""
    for name, instead in (("evaluate", evaluate_anew), ("assign", assign_anew)):
        usual = getattr(arrays_value, name)

        def choose(driver: Any, *rest: Any, usual: Any = usual, instead: Any = instead) -> Any:
            return (instead if driver is device.driver else usual)(driver, *rest)

        monkeypatch.setattr(arrays_value, name, choose)


def test_stored_plans_are_those_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    walk(0, 200, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(1, 4))
def test_stored_plans_are_those_made_anew_for_long(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    walk(1 + seed, 2_000, monkeypatch)


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(10))
def test_fifty_thousand_steps(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    walk(100 + seed, 5_000, monkeypatch)
