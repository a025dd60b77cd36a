"""Reads a model file of DxDispatch, and checks all that can be checked without a device."""

from pathlib import Path

from ..dml import FeatureLevel
from .commands import read_command
from .dispatchables import read_dispatchable
from .errors import Fact, ModelFileError
from .json_text import parse_json
from .model import Model
from .node import Node
from .resources import read_resource

__all__ = ["load_model"]


def load_model(path: str | Path, feature_level: FeatureLevel = FeatureLevel.LEVEL_4_1) -> Model:
    """The model in the file ``path``, with the files that it names read.

    Every operator follows DirectML's rules at ``feature_level``, and every name exists. Raises
    ``ModelFileError``; ``OSError`` if ``path`` itself cannot be read.
    """
    path = Path(path)
    file = str(path)
    root = Node(file, "", parse_json(_text(path), file))
    if not isinstance(root.value, dict):
        raise ModelFileError(file, "the file", root.value, "an object")
    root.only("a model", "$schema", "resources", "dispatchables", "commands")
    resources = {
        name: read_resource(name, node, path.parent)
        for name, node in root.required("resources").members().items()
    }
    dispatchables = {
        name: read_dispatchable(name, node, resources, feature_level)
        for name, node in root.required("dispatchables").members().items()
    }
    commands = tuple(
        read_command(node, resources, dispatchables) for node in root.required("commands").items()
    )
    return Model(file, resources, dispatchables, commands)


def _text(path: Path) -> str:
    data = path.read_bytes()
    if path.suffix.lower() == ".onnx":
        expected = "a model file of DxDispatch (bitlane run takes both)"
        raise ModelFileError(str(path), "the file", Fact("an ONNX model"), expected)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ModelFileError(
            str(path), f"line {line}", Fact(f"the byte {data[error.start]:#04x}"), "text in UTF-8"
        ) from None
