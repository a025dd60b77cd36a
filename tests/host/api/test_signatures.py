"""Type checkers infer the types that the operators return."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

from bitlane import Array
from bitlane.api import default
from support.host.arrays import model

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]

HEAD = """
from typing import Any, assert_type

import bitlane
import numpy as np
from numpy.typing import NDArray

from support.host.arrays import model

device = model()
u8, i16 = np.zeros(4, np.uint8), np.ones(4, np.int16)
one = np.uint8(1)
here = device.asarray(u8)
"""

RIGHT = """
assert_type(device.bit_count(u8), NDArray[np.uint8])
assert_type(device.bit_count([1, 2]), NDArray[np.uint8])
assert_type(device.bit_count(i16, np.uint32), NDArray[np.uint32])
assert_type(device.bit_count(i16, np.dtype(np.uint32)), NDArray[np.uint32])
assert_type(device.bit_count(i16, "uint32"), NDArray[Any])
assert_type(device.bit_count(here), bitlane.Array)
assert_type(device.bit_not(i16), NDArray[np.int16])
assert_type(device.bit_not(one), NDArray[np.uint8])
assert_type(device.bit_not([1, 2]), NDArray[Any])
assert_type(device.bit_copy(here), bitlane.Array)
assert_type(device.bit_xor(u8, u8), NDArray[np.uint8])
assert_type(device.bit_xor(i16, 3), NDArray[np.int16])
assert_type(device.bit_nand(3, i16), NDArray[np.int16])
assert_type(device.bit_xor(one, u8), NDArray[np.uint8])
assert_type(device.bit_xor([1], [2]), NDArray[Any])
assert_type(device.bit_or(here, u8), bitlane.Array)
assert_type(device.bit_nor(u8, here), bitlane.Array)
assert_type(device.bit_shift_left(i16, i16, casting="no"), NDArray[np.int16])
assert_type(device.bit_and(u8, u8, out=here), bitlane.Array)
assert_type(bitlane.bit_count(i16), NDArray[np.uint8])
assert_type(bitlane.bit_xnor(here, 1), bitlane.Array)
"""

ONE = ("not", "copy")
TWO = ("and", "or", "xor", "nand", "nor", "xnor", "shift_left", "shift_right")

RIGHT += "".join(
    f"assert_type({interface}.bit_{name}({operands}), NDArray[np.int16])\n"
    for names, operands in ((ONE, "i16"), (TWO, "i16, i16"))
    for name in names
    for interface in ("device", "bitlane")
)

WRONG = """
device.bit_not(u8, out=[1])
device.bit_xor(u8)
device.bit_xor(u8, u8, casting="never")
device.bit_not(a=u8)
bitlane.bit_count(u8, typ=np.uint32)
"""


def checked(folder: Path, lines: str) -> list[str]:
    """Return mypy's errors in ``lines``."""
    file = folder / "sample.py"
    file.write_text(HEAD + lines)
    ran = subprocess.run(
        [sys.executable, "-m", "mypy", str(file)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert "checked 1 source file" in ran.stdout or "in 1 source file" in ran.stdout, ran.stdout
    return [line for line in ran.stdout.splitlines() if ": error: " in line]


def test_a_type_checker_knows_what_comes_back(tmp_path: Path) -> None:
    assert checked(tmp_path, RIGHT) == []


def test_a_type_checker_finds_wrong_calls(tmp_path: Path) -> None:
    first = len((HEAD + "\n").splitlines()) + 1
    found = {int(line.split(":")[1]) for line in checked(tmp_path, WRONG)}
    assert found == set(range(first, first + len(WRONG.strip().splitlines())))


@pytest.mark.parametrize("line", re.findall(r"assert_type\((.*), ([^ ]*)\)$", RIGHT, re.M))
def test_results_have_declared_types(
    line: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    scope: dict[str, Any] = {}
    exec(HEAD, scope)
    monkeypatch.setattr(default, "_opened", [model()])
    said, result = eval(line[1], scope), eval(line[0], scope)
    if said is Array:
        assert isinstance(result, Array)
    else:
        assert isinstance(result, np.ndarray)
        (scalar,) = get_args(get_args(said)[1])
        assert scalar is Any or result.dtype == scalar
