"""Runs models on a model of the device."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bitlane import dml
from bitlane.model_file import load_model, prepare, run
from bitlane.model_file.results import busy_cycles
from support.host.model_driver import ModelDriver

Note = Callable[[str], object]


def tensor(data_type: str, sizes: list[int], **fields: object) -> dict[str, object]:
    return {"DataType": data_type, "Sizes": sizes, **fields}


def buffer(data_type: str, values: object, **fields: object) -> dict[str, object]:
    return {"initialValuesDataType": data_type, "initialValues": values, **fields}


def not_model(commands: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    """NOT of three UINT8 in a buffer of four bytes; a dispatch, unless there are commands."""
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
