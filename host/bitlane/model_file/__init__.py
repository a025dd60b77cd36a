"""Model files: the JSON of Microsoft's DxDispatch, read, checked and run on a bitlane device."""

from ..errors import ModelFileError
from .model import Model
from .parse import load_model
from .prepare import PreparedModel, prepare
from .results import Result
from .run import execute_dispatches, run

__all__ = [
    "Model",
    "ModelFileError",
    "PreparedModel",
    "Result",
    "execute_dispatches",
    "load_model",
    "prepare",
    "run",
]
