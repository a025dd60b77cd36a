"""NumPy's array files, read without trust: nothing in one is executed."""

from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import BitlaneError

__all__ = ["NpyError", "read_npy"]

_MAGIC = b"\x93NUMPY"


class NpyError(BitlaneError, ValueError):
    """A file that holds no array of NumPy's; the message says why, and not which file."""


def read_npy(path: Path) -> NDArray[Any]:
    """The array in the file ``path``. Raises ``NpyError``, ``OSError`` or ``MemoryError``."""
    # NumPy takes other files, archives of arrays among them, for something else.
    with path.open("rb") as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            raise NpyError(f"a NumPy array file; {path.name} does not start like one")
    try:
        array: NDArray[Any] = np.load(path, allow_pickle=False)
    except (ValueError, EOFError, TypeError, SyntaxError, OverflowError, TokenError) as error:
        raise NpyError(f"a NumPy array file ({error})") from error
    return array
