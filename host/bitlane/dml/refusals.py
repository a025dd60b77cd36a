"""The errors that this package's objects share, and checks of arguments that raise them."""

import numpy as np
import numpy.typing as npt

from ..errors import DmlError, DmlTypeError

_REMOVED = "DXGI_ERROR_DEVICE_REMOVED"


def removed(tensor: str, field: str, value: object, expected: str) -> DmlError:
    """The error of a method that returns nothing, for which DirectML removes its device."""
    return DmlError(tensor, field, value, expected, hresult=_REMOVED)


def expect_type(
    tensor: str, field: str, value: object, kinds: type | tuple[type, ...], expected: str = ""
) -> None:
    """Raises ``DmlTypeError`` if ``value`` is none of ``kinds``; ``expected`` says what they are.

    Without ``expected`` it is an argument of the method ``tensor``, and the kinds are named.
    """
    if isinstance(value, kinds):
        return
    if expected:
        raise DmlTypeError(tensor, field, value, expected, hresult=_REMOVED)
    kinds = kinds if isinstance(kinds, tuple) else (kinds,)
    names = " or ".join(kind.__name__ for kind in kinds)
    raise DmlTypeError(tensor, field, value, f"of type {names}")


def as_data(tensor: str, data: npt.ArrayLike) -> npt.NDArray[np.generic]:
    """Return ``data`` as an array. Raises ``DmlTypeError`` for lists of different lengths."""
    try:
        return np.asarray(data)
    except ValueError:
        raise DmlTypeError(tensor, "Data", data, "an array of numbers") from None
