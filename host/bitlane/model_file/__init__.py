"""Model files: the JSON of Microsoft's DxDispatch, read, checked and run on a bitlane device."""

from .model import Model
from .node import ModelFileError
from .parse import load_model
from .prepare import PreparedModel, prepare
from .run import Line, run

__all__ = ["Line", "Model", "ModelFileError", "PreparedModel", "load_model", "prepare", "run"]
