"""Model files: the JSON of Microsoft's DxDispatch, read, checked and run on a bitlane device."""

from ..errors import ModelFileError
from .model import Model
from .parse import load_model
from .prepare import PreparedModel, prepare
from .run import Line, run

__all__ = ["Line", "Model", "ModelFileError", "PreparedModel", "load_model", "prepare", "run"]
