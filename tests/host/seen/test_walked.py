"""The addresses that a drawing shows are those that the command record stands for."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from bitlane import dml
from bitlane.driver.commands import Walk
from bitlane.driver.control import Control
from bitlane.model_file import load_model
from bitlane.seen.lowered import lowered
from bitlane.seen.walked import drawing, streams, visited
from bitlane_rtl.abi import Mode
from support.host.model_driver import NotingLink
from support.seeds import seeds

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.mark.parametrize("seed", seeds(5, 20))
def test_loops_are_walked_by_their_steps(seed: int) -> None:
    """Jumps are made of steps as the contract says, and undone again."""
    random = np.random.default_rng(seed)
    counts = tuple(random.integers(1, 4, random.integers(0, 4)).tolist())
    steps = random.integers(-64, 65, len(counts)).tolist()
    run, size = int(random.integers(1, 5)), int(random.choice([1, 2, 4, 8]))
    mode = Mode(int(random.choice([Mode.DENSE, Mode.STRIDED, Mode.REPEAT])))
    stride = int(random.integers(-32, 33)) if mode is Mode.STRIDED else 0
    inner = [(stride, run)] if mode is Mode.STRIDED else []
    jumps = tuple(
        step - sum(s * (c - 1) for s, c in [*inner, *zip(steps[:k], counts[:k], strict=True)])
        for k, step in enumerate(steps)
    )
    walk = Walk(1000, 0, mode, stride, jumps)
    each = {Mode.DENSE: size, Mode.STRIDED: stride, Mode.REPEAT: 0}[mode]
    expected = [
        1000 + sum(k * step for k, step in zip(reversed(ks), steps, strict=True)) + each * e
        for ks in product(*map(range, reversed(counts)))
        for e in range(run)
    ]
    assert list(visited(walk, run, counts, size)) == expected, f"seed {seed}"


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.json")), ids=lambda path: path.stem)
def test_a_walk_stays_between_its_ends(path: Path) -> None:
    level = dml.FeatureLevel.LEVEL_4_1
    for each in lowered(load_model(path, level), Control(NotingLink()).registers(), level):
        for command in each.commands:
            for name, walk, size in streams(command):
                places = list(visited(walk, command.run, command.counts, size))
                assert max(places) + size - 1 == walk.last
                assert min(places) >= 0
                text = drawing(command, name, walk, size)
                assert text.count("<circle") == min(len(places), 256)
