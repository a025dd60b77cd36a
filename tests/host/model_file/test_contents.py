"""A resource's own values must be what an input reads: padding is no value, and no .npy is cut."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bitlane import dml
from bitlane.device import Device
from bitlane.driver.driver import Driver
from bitlane.model_file import ModelFileError, load_model, prepare
from support.models.device import ModelLink


def attempt(folder: Path, resource: dict[str, Any]) -> None:
    """Prepare a BIT_NOT of a 2 x 2 UINT8 tensor bound to ``resource``."""
    tensor = {"DataType": "UINT8", "Sizes": [2, 2]}
    desc = {"InputTensor": tensor, "OutputTensor": tensor}
    out = {"initialValuesDataType": "UINT8", "initialValues": {"valueCount": 4, "value": 0}}
    dispatch = {
        "type": "dispatch",
        "dispatchable": "not",
        "bindings": {"InputTensor": "a", "OutputTensor": "out"},
    }
    model = {
        "resources": {"a": resource, "out": out},
        "dispatchables": {"not": {"type": "ELEMENT_WISE_BIT_NOT", "desc": desc}},
        "commands": [dispatch],
    }
    file = folder / "model.json"
    file.write_text(json.dumps(model))
    with Device(Driver(ModelLink())) as device:
        level = dml.FeatureLevel.LEVEL_4_1
        prepare(load_model(file, level), dml.Device(device, level))


@pytest.mark.parametrize("count", [1, 3, 5, 8, 100])
def test_npy_of_another_size_is_refused(tmp_path: Path, count: int) -> None:
    np.save(tmp_path / "a.npy", np.zeros(count, np.uint8))
    with pytest.raises(ModelFileError, match=f"is {count} bytes of a; expected 4 bytes"):
        attempt(tmp_path, {"initialValues": {"sourcePath": "a.npy"}})


def test_npy_of_the_tensors_size_is_taken(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros((2, 2), np.uint8))
    attempt(tmp_path, {"initialValues": {"sourcePath": "a.npy"}})


def test_padding_is_no_value(tmp_path: Path) -> None:
    values = {"initialValuesDataType": "UINT8", "initialValues": [1, 2, 3]}
    with pytest.raises(ModelFileError, match="is 3 bytes of a; expected 4 bytes"):
        attempt(tmp_path, values)
    attempt(tmp_path, values | {"sizeInBytes": 4})
