"""Model files: the JSON of Microsoft's DxDispatch, read, checked and run on a bitlane device."""

from ..errors import ModelFileError
from .json_text import parse_json
from .model import Binding, Dispatch, Model, Print, Resource, WriteFile
from .node import Node
from .parse import load_model
from .prepare import PreparedModel, prepare
from .resources import read_resource
from .results import BusyCycles, Comparison, Result, busy_cycles, compare, measure
from .run import execute_dispatches, run

__all__ = [
    "Binding",
    "BusyCycles",
    "Comparison",
    "Dispatch",
    "Model",
    "ModelFileError",
    "Node",
    "PreparedModel",
    "Print",
    "Resource",
    "Result",
    "WriteFile",
    "busy_cycles",
    "compare",
    "execute_dispatches",
    "load_model",
    "measure",
    "parse_json",
    "prepare",
    "read_resource",
    "run",
]
