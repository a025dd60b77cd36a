"""Random steps give what NumPy gives: any value over any target, views, pending values.

As if everything were computed at once and every operand copied first. The modelled device asserts
that no access leaves an allocation; circuits have guard bytes around each.
"""

import gc
from collections import deque
from typing import Any

import pytest

from bitlane import Device
from bitlane.lowering import Streams, View, lower
from bitlane_rtl.abi import Lane, Mode, Op
from support.host.arrays import model, random
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


# --- plans that are taken again -------------------------------------------------------------------


class SimilarSteps(Scene):
    """A scene whose step is one of the last again, with another decision at one place or without.

    So plans are taken for values that differ little.
    """

    def __init__(self, device: Device, seed: int) -> None:
        self._scripts: deque[list[int]] = deque(maxlen=8)
        self._script: list[int] = []
        """The decisions of this step that are made already."""
        self._made: list[int] = []
        super().__init__(device, seed)

    def step(self) -> None:
        self._script, self._made = [], []
        if self._scripts and self.rng.integers(8):
            self._script = list(self._scripts[self.rng.integers(len(self._scripts))])
            if self.rng.integers(4):
                self._script[self.rng.integers(len(self._script))] += 1
        super().step()
        self._scripts.append(self._made)

    def decide(self, count: int) -> int:
        at = len(self._made)
        again = at < len(self._script)
        self._made.append(self._script[at] % count if again else super().decide(count))
        return self._made[at]


@pytest.mark.parametrize(
    ("steps", "seed"),
    [
        (400, 0),
        *(pytest.param(1000, 1 + seed, marks=pytest.mark.slow) for seed in seeds(1, 4)),
        *(pytest.param(2500, 100 + seed, marks=pytest.mark.deep) for seed in range(10)),
    ],
)
def test_stored_plans_give_what_numpy_gives(steps: int, seed: int) -> None:
    device = model(memory_bytes=1 << 20)
    play(SimilarSteps(device, seed), steps)
