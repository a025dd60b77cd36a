"""A model file to be changed at one place, and the assertion that it is refused there."""

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from bitlane.dml import FeatureLevel
from bitlane.model_file import Model, ModelFileError, load_model

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


def changed(**changes: object) -> dict[str, Any]:
    """Return the model with values replaced, by path: ``dispatchables__x__type="hlsl"``."""
    model = json.loads(json.dumps(MODEL))
    for path, value in changes.items():
        *parents, last = (int(key) if key.isdigit() else key for key in path.split("__"))
        target: Any = model
        for key in parents:
            target = target[key]
        if value is DELETE:
            del target[last]
        else:
            target[last] = deepcopy(value)
    return dict(model)


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
    error = caught.value
    assert (error.file, error.path, error.value) == ("m.json", path, found)
    assert expected in error.expected
    assert f"m.json: {path} is " in str(error)
    assert "\n" not in str(error)
