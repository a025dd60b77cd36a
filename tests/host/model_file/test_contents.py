"""A resource's values must match an input's elements: no padding, and no .npy of another size."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bitlane.model_file import ModelFileError
from support.host.model_runner import Runner, buffer, not_model, tensor


def attempt(folder: Path, resource: dict[str, Any]) -> None:
    """Run BIT_NOT of a 2 x 2 UINT8 tensor that is bound to ``resource``."""
    model = not_model()
    model["resources"] |= {"in": resource, "out": buffer("UINT8", [0] * 4)}
    square = tensor("UINT8", [2, 2])
    model["dispatchables"]["not"]["desc"] = {"InputTensor": square, "OutputTensor": square}
    assert Runner(folder)(model)


@pytest.mark.parametrize("count", [1, 3, 5, 8, 100])
def test_npy_of_another_size_is_refused(tmp_path: Path, count: int) -> None:
    np.save(tmp_path / "a.npy", np.zeros(count, np.uint8))
    with pytest.raises(ModelFileError, match=f"is {count} bytes of in; expected 4 bytes"):
        attempt(tmp_path, {"initialValues": {"sourcePath": "a.npy"}})


def test_npy_of_the_tensors_size_is_taken(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros((2, 2), np.uint8))
    attempt(tmp_path, {"initialValues": {"sourcePath": "a.npy"}})


def test_padding_is_no_value(tmp_path: Path) -> None:
    values = buffer("UINT8", [1, 2, 3])
    with pytest.raises(ModelFileError, match="is 3 bytes of in; expected 4 bytes"):
        attempt(tmp_path, values)
    attempt(tmp_path, values | {"sizeInBytes": 4})
