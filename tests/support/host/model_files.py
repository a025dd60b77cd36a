"""A model file to be changed at one place, and the assertion that it is refused there."""

import json
import re
import struct
import zlib
from collections.abc import Callable, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from bitlane import dml
from bitlane.dml import FeatureLevel
from bitlane.model_file import Model, ModelFileError, busy_cycles, load_model, prepare, run
from support.host.model_link import ModelDriver

SQUARE = {"DataType": "UINT8", "Sizes": [2, 3]}
TENSORS = ("ATensor", "BTensor", "OutputTensor")
ONES = {"initialValuesDataType": "UINT32", "initialValues": {"valueCount": 16, "value": 1}}

MODEL: dict[str, Any] = {
    "resources": {"A": ONES, "B": ONES, "Out": ONES},
    "dispatchables": {
        "x": {"type": "DML_OPERATOR_ELEMENT_WISE_BIT_XOR", "desc": dict.fromkeys(TENSORS, SQUARE)}
    },
    "commands": [
        {
            "type": "dispatch",
            "dispatchable": "x",
            "bindings": {"ATensor": "A", "BTensor": "B", "OutputTensor": "Out"},
        },
        {"type": "print", "resource": "Out"},
        {"type": "writeFile", "targetPath": "out.npy", "resource": "Out"},
    ],
}

DELETE = object()


def _keys(place: str) -> list[Any]:
    found = re.findall(r"[^.\[\]]+", place)
    return [int(key) if key.isdigit() else key for key in found]


def changed(changes: Mapping[str, object], model: Any = MODEL) -> dict[str, Any]:
    """Return a copy of a model with values replaced, by their places: ``commands[0].type``."""
    copy = json.loads(json.dumps(model))
    for place, value in changes.items():
        *parents, last = _keys(place)
        target: Any = copy
        for key in parents:
            target = target[key]
        if value is DELETE:
            del target[last]
        else:
            target[last] = deepcopy(value)
    return dict(copy)


def found_at(value: Any, place: str) -> object:
    """Return the part of a value at a place in it, as an error shows it."""
    for key in _keys(place):
        value = value[key] if isinstance(value, list) else value.get(key, DELETE)
    return "missing" if value is DELETE else value


def load(model: object, level: FeatureLevel = FeatureLevel.LEVEL_4_1) -> Model:
    """Load ``model`` from a file in the current folder."""
    path = Path("m.json")
    path.write_text(json.dumps(model))
    return load_model(path, level)


def refuse(
    model: object,
    path: str,
    found: object,
    expected: str,
    level: FeatureLevel = FeatureLevel.LEVEL_4_1,
) -> None:
    with pytest.raises(ModelFileError) as caught:
        load(model, level)
    expect_error(caught.value, path, found, expected)


def expect_error(error: ModelFileError, path: str, found: object, expected: str) -> None:
    """Expect that an error of the file names a place, the value there and what is right."""
    assert (error.file, error.path, error.value) == ("m.json", path, found)
    assert expected in error.expected
    if len(path) < 60:
        assert f"m.json: {path} is " in str(error)
    assert "\n" not in str(error)


Note = Callable[[str], object]


def tensor(data_type: str, sizes: list[int], **fields: object) -> dict[str, object]:
    return {"DataType": data_type, "Sizes": sizes, **fields}


def buffer(data_type: str, values: object, **fields: object) -> dict[str, object]:
    return {"initialValuesDataType": data_type, "initialValues": values, **fields}


def not_model(commands: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    """Return a model of NOT of three UINT8, with ``commands`` or else one dispatch."""
    dispatch: dict[str, Any] = {
        "type": "dispatch",
        "dispatchable": "not",
        "bindings": {"InputTensor": "in", "OutputTensor": "out"},
    }
    return {
        "resources": {"in": buffer("UINT8", [1, 2, 3]), "out": buffer("UINT8", [9, 9, 9])},
        "dispatchables": {
            "not": {
                "type": "DML_OPERATOR_ELEMENT_WISE_BIT_NOT",
                "desc": {name: tensor("UINT8", [3]) for name in dispatch["bindings"]},
            }
        },
        "commands": [dispatch] if commands is None else commands,
    }


class Runner:
    """A runner of model files on a model of the device, from a file in the current folder."""

    def __init__(self, driver: ModelDriver | None = None) -> None:
        self.path = Path("m.json")
        self.driver = driver or ModelDriver()
        self.lines: list[str] = []

    def __call__(
        self, model: object, *, cycles: bool = False, note: Note | None = None, **options: Any
    ) -> bool:
        """Run ``model`` with the ``options`` of `run`; ``note`` is called with each line."""
        self.path.write_text(json.dumps(model))
        self.driver.model.calls.clear()
        loaded = load_model(self.path)
        if cycles:
            options["read_cycles"] = busy_cycles(self.driver)
        with dml.Device(self.driver) as device:
            prepared = prepare(loaded, device)
            assert self.driver.model.calls == []
            return run(prepared, lambda result: (note or self.lines.append)(str(result)), **options)


def from_file(name: str, data_type: str | None = None, **fields: object) -> dict[str, object]:
    """Return the fields of a resource whose values are in the file ``name``."""
    values = {"initialValues": {"sourcePath": name}, **fields}
    return values if data_type is None else {"initialValuesDataType": data_type, **values}


def png_chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
