"""Every interface of bitlane has each operator of the catalogue, as type checkers see them."""

import ast
import inspect
import pickle
import re
from pathlib import Path

import numpy as np
import pytest

import bitlane
from bitlane import errors
from bitlane.api import functions
from bitlane.api.catalogue import BitOperators, method_name
from bitlane_rtl.abi import LOGIC_OPS, SHIFT_OPS, Op
from support.host.arrays import model, random, same

OPS = sorted({*LOGIC_OPS, *SHIFT_OPS, Op.COUNT})
NAMES = [method_name(op) for op in OPS]
ROOT = Path(bitlane.__file__).parent


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
    assert assigned(ROOT / "api" / "functions.py") == public
    assert assigned(ROOT / "dask" / "__init__.py") == public | {"search", "where"}


def test_functions_can_be_sent_to_another_process() -> None:
    again = pickle.loads(pickle.dumps(bitlane.bit_xor))
    assert (again.__name__, type(again.__self__)) == ("bit_xor", type(bitlane.bit_xor.__self__))  # type: ignore[attr-defined]


def test_type_checkers_see_the_names_that_there_are() -> None:
    """Type checkers take what is imported ``as`` its name, from the file that `bitlane` loads."""
    tree = ast.parse((ROOT / "names.py").read_text(encoding="utf-8"))
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
