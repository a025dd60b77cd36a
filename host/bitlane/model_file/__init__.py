"""Model files: the JSON of Microsoft's DxDispatch, read, checked and run on a bitlane device."""

from .errors import ModelFileError
from .model import Model
from .parse import load_model
from .run import PreparedModel, prepare, run

__all__ = ["Model", "ModelFileError", "PreparedModel", "load_model", "prepare", "run"]
