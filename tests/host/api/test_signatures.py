"""Every interface has each operator of the catalogue; type checkers infer what it returns."""

import ast
import inspect
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

import bitlane
from bitlane import Array, errors
from bitlane.api import BitOperators, default, functions, method_name
from bitlane_rtl.abi import LOGIC_OPS, SHIFT_OPS, Op
from support.host.arrays import model, random, same

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


@pytest.mark.slow
def test_a_type_checker_knows_what_comes_back(tmp_path: Path) -> None:
    assert checked(tmp_path, RIGHT) == []


@pytest.mark.slow
def test_a_type_checker_finds_wrong_calls(tmp_path: Path) -> None:
    first = len((HEAD + "\n").splitlines()) + 1
    found = {int(line.split(":")[1]) for line in checked(tmp_path, WRONG)}
    assert found == set(range(first, first + len(WRONG.strip().splitlines())))


@pytest.mark.slow
@pytest.mark.parametrize("line", re.findall(r"assert_type\((.*), ([^ ]*)\)$", RIGHT, re.M))
def test_results_have_declared_types(
    line: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    scope: dict[str, Any] = {}
    exec(HEAD, scope)
    monkeypatch.setattr(default, "opened", [model()])
    said, result = eval(line[1], scope), eval(line[0], scope)
    if said is Array:
        assert isinstance(result, Array)
    else:
        assert isinstance(result, np.ndarray)
        (scalar,) = get_args(get_args(said)[1])
        assert scalar is Any or result.dtype == scalar


# --- the catalogue ----------------------------------------------------------------------------


OPS = sorted({*LOGIC_OPS, *SHIFT_OPS, Op.COUNT})
NAMES = [method_name(op) for op in OPS]
PACKAGE = Path(bitlane.__file__).parent


def assigned(path: Path) -> set[str]:
    """Return the public names that a module assigns at its top."""
    names = {
        target.id
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    return {name for name in names if not name.startswith("_")}


def test_the_catalogue_has_every_operation_of_elements() -> None:
    assert sorted(name for name in vars(BitOperators) if name.startswith("bit_")) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_every_face_has_the_operator_and_its_documentation(name: str) -> None:
    for interface in (bitlane.Device, bitlane.Pool, bitlane, BitOperators):
        method = getattr(interface, name)
        assert method.__name__ == method.__qualname__ == name
        assert method.__doc__.split()[0] in ("Return", "Invert", "Copy", "Shift", "Count")
        parameters = list(inspect.signature(method).parameters)
        assert parameters[-1] in ("out", "casting")
        assert ("self" in parameters) == (interface is not bitlane)


@pytest.mark.parametrize("name", ["cardinality", "hamming", "jaccard"])
def test_messages_show_the_names_that_users_call(name: str) -> None:
    with pytest.raises(TypeError, match=rf"^{name}\(\) missing .* required positional argument"):
        getattr(bitlane, name)()


@pytest.mark.parametrize("name", ["bit_and", "bit_or", "bit_xor"])
def test_a_reduce_names_the_function_that_computes_it(name: str) -> None:
    device = model(memory_bytes=1 << 16)
    x = random((5, 8), "u1")
    for interface in (bitlane, device):
        with pytest.raises(errors.NotOfferedError, match=rf"^{name}\.reduce: ") as caught:
            getattr(interface, name).reduce(x, axis=0)
        assert "\n" not in str(caught.value)
        cure = re.search(r"np\.\S+\(.*\)", str(caught.value))
        assert cure is not None
        known = {"np": np, "bitlane": device, "x": x}
        found = eval(cure.group(), known)
        assert same(found.get(), getattr(np, name.replace("bit_", "bitwise_")).reduce(x, axis=0))


def test_modules_of_functions_name_the_whole_catalogue() -> None:
    public = {name for name in vars(BitOperators) if not name.startswith("_")}
    assert assigned(PACKAGE / "api" / "functions.py") == public
    assert assigned(PACKAGE / "dask" / "__init__.py") == public | {"search", "where"}


def test_functions_can_be_sent_to_another_process() -> None:
    again = pickle.loads(pickle.dumps(bitlane.bit_xor))
    assert (again.__name__, type(again.__self__)) == ("bit_xor", type(bitlane.bit_xor.__self__))  # type: ignore[attr-defined]


def test_type_checkers_see_the_names_that_there_are() -> None:
    """Type checkers take what is imported ``as`` its name, from the file that `bitlane` loads."""
    tree = ast.parse((PACKAGE / "names.py").read_text(encoding="utf-8"))
    stars = {
        "errors": set(errors.__all__),
        "api.functions": {name for name in vars(functions) if not name.startswith("_")},
    }
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                names |= stars[str(node.module)] if alias.name == "*" else {str(alias.asname)}
        elif isinstance(node, ast.Assign):
            names |= {ast.unparse(target) for target in node.targets}
    assert names - {"_open"} == set(bitlane.__all__) - {"__version__", "array_api", "dml"}
