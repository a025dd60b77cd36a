"""`bitlane lower`: the commands of a model as text, and the addresses that a drawing shows."""

import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bitlane import dml
from bitlane.driver import Command, Control, RecordingDriver, Walk
from bitlane.model_file import load_model, prepare, run
from bitlane.profile import command_text, lower_model
from bitlane.profile.figures import draw_walk, streams, walk_addresses
from bitlane_rtl.abi import Lane, Mode, Op
from support.command_line import CommandLine, opens
from support.host.model_files import not_model
from support.host.model_link import NotingLink
from support.seeds import seeds

EXAMPLES = Path(__file__).parents[3] / "examples"
LEVEL = dml.FeatureLevel.LEVEL_4_1

HAMMING = """\
For beats of 64 bits, 2 read ports, 4 nested loops, 16 slots

Initialization: 1 command
  0 COPY, 8 bits, run 8, fence
    A DENSE   0x40000000 to 0x40000007
    Y DENSE   0x40000100 to 0x40000107

Dispatch 'differ': 1 command
  1 XOR, 64 bits, run 4, fence
    A DENSE   0x40000040 to 0x4000005f
    B REPEAT  0x40000100 to 0x40000107
    Y DENSE   0x40000080 to 0x4000009f

Dispatch 'count': 1 command
  2 COUNT, 64 to 8 bits, run 4, fence
    A DENSE   0x40000080 to 0x4000009f
    Y DENSE   0x400000c0 to 0x400000c3
"""


def test_prints_commands(monkeypatch: pytest.MonkeyPatch, run: CommandLine) -> None:
    link = NotingLink()
    opens(monkeypatch, lambda _: link)
    assert run("lower", str(EXAMPLES / "hamming.json")) == (0, HAMMING, "")
    assert link.calls == [], "nothing is executed, nothing sent"
    assert link.closed


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.json")), ids=lambda path: path.stem)
def test_a_device_gets_just_these_commands(path: Path) -> None:
    """Fences too: where dispatches are one job, and where something else stands between them."""
    link = NotingLink(busy_cycles=None)
    model = load_model(path, LEVEL)
    with RecordingDriver(link) as driver, dml.Device(driver, LEVEL) as device:
        expected = lower_model(model, Control(link).geometry(), LEVEL)
        run(prepare(model, device), lambda line: None, check=False)
        assert [command for each in expected for command in each.commands] == driver.commands
    assert len(link.log) == len(driver.commands) >= 1


def test_dispatches_with_nothing_between_them_are_one_job(tmp_path: Path) -> None:
    """So the second, which needs nothing of the first, has a fence only behind a print."""

    def dispatch(target: str) -> dict[str, object]:
        bindings = {"InputTensor": "in", "OutputTensor": target}
        return {"type": "dispatch", "dispatchable": "not", "bindings": bindings}

    def fences(between: list[dict[str, object]]) -> list[bool]:
        model = not_model([dispatch("out"), *between, dispatch("other")])
        model["resources"]["other"] = model["resources"]["out"]
        path = tmp_path / "m.json"
        path.write_text(json.dumps(model))
        dispatches = lower_model(load_model(path), Control(NotingLink()).geometry(), LEVEL)
        return [command.fence for each in dispatches for command in each.commands]

    assert fences([]) == [True, False]
    assert fences([{"type": "print", "resource": "out"}]) == [True, True]


def test_a_circuit_with_less_gets_other_commands() -> None:
    """Three rows of two elements, or without loops two columns of three."""
    model = load_model(EXAMPLES / "strided.json", LEVEL)
    counts = [
        sum(len(each.commands) for each in lower_model(model, Control(link).geometry(), LEVEL))
        for link in (NotingLink(), NotingLink(loops=1))
    ]
    assert counts == [1, 2]


@pytest.mark.parametrize(
    ("device", "words", "message"),
    [
        ({"ops": frozenset({Op.AND})}, "bit_xor.json", "built with: AND"),
        ({}, "hamming.json --feature-level 2_1", "FeatureLevel"),
        ({"registers": {"GEOMETRY": 0}}, "bit_xor.json", "describe no circuit"),
    ],
)
def test_a_model_that_the_device_cannot_run_is_refused(
    device: Any, words: str, message: str, monkeypatch: pytest.MonkeyPatch, run: CommandLine
) -> None:
    opens(monkeypatch, lambda _: NotingLink(**device))
    monkeypatch.chdir(EXAMPLES)
    assert message in run.refuse("lower", *words.split())


def test_a_command_shows_all_that_it_holds() -> None:
    command = Command(
        Op.SHIFT_RIGHT,
        Lane.BITS_16,
        Lane.BITS_16,
        run=10,
        a=Walk(0x1002, 0x1FFF, Mode.STRIDED, stride=-4, jumps=(64, -128)),
        b=Walk(0x2000, 0x2001, Mode.REPEAT, jumps=(0, 2)),
        y=Walk(0x3000, 0x303B, jumps=(20, 40)),
        counts=(3, 2),
        saturate=True,
        arithmetic=True,
        fence=True,
    )
    assert command_text(command, 12).splitlines() == [
        " 12 SHIFT_RIGHT, 16 bits, run 10, loops 3 x 2, saturate, arithmetic, fence",
        "    A STRIDED 0x00001002 to 0x00001fff, stride -4, jumps +64 -128",
        "    B REPEAT  0x00002000 to 0x00002001, jumps +0 +2",
        "    Y DENSE   0x00003000 to 0x0000303b, jumps +20 +40",
    ]


# --- drawings ---------------------------------------------------------------------------------


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
    assert list(walk_addresses(walk, run, counts, size)) == expected, f"seed {seed}"


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.json")), ids=lambda path: path.stem)
def test_a_walk_stays_between_its_ends(path: Path) -> None:
    level, drawn = dml.FeatureLevel.LEVEL_4_1, 0
    for each in lower_model(load_model(path, level), Control(NotingLink()).geometry(), level):
        for command in each.commands:
            for name, walk, size in streams(command):
                places = list(walk_addresses(walk, command.run, command.counts, size))
                assert max(places) + size - 1 == walk.last
                assert min(places) >= 0
                text = draw_walk(command, name, walk, size)
                assert text.count("<circle") == min(len(places), 256)
                drawn += 1
    assert drawn > 0


def test_a_drawing_of_a_long_walk_names_its_limit() -> None:
    def label(run: int) -> str:
        walk = Walk(0, run - 1)
        command = Command(Op.NOT, Lane.BITS_8, Lane.BITS_8, run, walk, None, walk)
        return draw_walk(command, "A", walk, 1).partition("<title>")[2].partition("</title>")[0]

    assert label(256) == "A: 256 elements, 0x0 to 0xff"
    assert label(257) == "A: first 256 elements, 0x0 to 0xff"
