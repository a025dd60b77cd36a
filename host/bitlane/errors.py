"""Every error that bitlane raises on purpose. A message is one line: thing, value, what to do."""

from enum import Enum
from typing import Any, Final

from bitlane_rtl.abi import Port, Status

from .text import printable, shortened

__all__ = [
    "ArrayIndexError",
    "AxisError",
    "BitlaneError",
    "BoardInUseError",
    "BusyError",
    "CheckFailed",
    "CopyError",
    "DataTypeError",
    "DeviceError",
    "DeviceFault",
    "DeviceTimeout",
    "DmlError",
    "DmlTypeError",
    "ExchangeError",
    "FreedError",
    "LayoutError",
    "LinkError",
    "LinkVersionError",
    "MissingError",
    "NoRunError",
    "NotOfferedError",
    "OtherDeviceError",
    "OutOfDeviceMemory",
    "OutOfHostMemory",
    "OutOfRangeError",
    "RowTooLongError",
    "SearchError",
    "SettingError",
    "ShapeError",
    "UnsupportedError",
    "WorkerLostError",
]

_LONGEST_VALUE: Final = 40
_LONGEST_JSON: Final = 60
"""Characters of a value that a message shows."""
_LONGEST_PATH: Final = 200
_LONGEST_EXPECTED: Final = 1000
"""Characters of other parts of a message, which may name what a file holds."""


class BitlaneError(Exception):
    """Base of all errors that bitlane raises on purpose. Pools of processes can send them."""

    def __reduce__(self) -> tuple[Any, ...]:
        # Not the class: the arguments of its __init__ are not those that make up the message.
        return _restore, (type(self), self.args, self.__dict__)


def _restore(
    kind: type[BitlaneError], arguments: tuple[object, ...], state: dict[str, object]
) -> BitlaneError:
    """Restore a pickled error."""
    # A class that is an OSError besides has the memory of one, and only its __new__ will do.
    new = OSError.__new__ if issubclass(kind, OSError) else Exception.__new__
    error = new(kind, *arguments)
    error.args = arguments
    error.__dict__.update(state)
    return error


class DmlError(BitlaneError, ValueError):
    """A description that DirectML refuses. Nothing has been executed.

    ``hresult`` is the name of the code that DirectML would give (``E_INVALIDARG``,
    ``DXGI_ERROR_DEVICE_REMOVED``); ``tensor`` (or other thing), ``field``, ``value`` and
    ``expected`` say what is wrong and what would be right.
    """

    def __init__(
        self,
        tensor: str,
        field: str,
        value: object,
        expected: str,
        *,
        hresult: str = "E_INVALIDARG",
    ) -> None:
        super().__init__(f"{hresult}: {tensor}.{field} is {value}; expected {expected}")
        self.hresult = hresult
        self.tensor = tensor
        self.field = field
        self.value = value
        self.expected = expected


class DmlTypeError(DmlError, TypeError):
    """Something of another Python type than ``bitlane.dml`` takes. Nothing has been executed.

    ``value`` is shown as Python writes it where that is short, else its type is.
    """

    def __init__(
        self,
        tensor: str,
        field: str,
        value: object,
        expected: str,
        *,
        hresult: str = "E_INVALIDARG",
    ) -> None:
        plain = value is None or isinstance(value, bool | int | float | str)
        shown = repr(value) if plain else ""
        if not 0 < len(shown) <= _LONGEST_VALUE:
            shown = f"of type {type(value).__name__}"
        super().__init__(tensor, field, shown, expected, hresult=hresult)


class DeviceError(BitlaneError, RuntimeError):
    """The device refused or could not finish a command; the message carries its registers."""


class DeviceFault(DeviceError):
    """The device stopped at a command.

    ``code`` is an ``abi.Status``, or an unknown number; ``index`` counts the commands of the
    job before the one that failed; ``port`` and ``address`` say where, if memory was involved.
    """

    def __init__(self, message: str, code: int, index: int, port: Port, address: int) -> None:
        super().__init__(message)
        self.code = Status(code) if code in Status.__members__.values() else code
        self.index = index
        self.port = port
        self.address = address


class DeviceTimeout(DeviceError, TimeoutError):
    """The device did not answer within the deadline; the message carries its registers."""


class OutOfDeviceMemory(DeviceError, MemoryError):
    """No hole of the device's memory is large enough."""


class OutOfHostMemory(BitlaneError, MemoryError):
    """This computer has no memory for a result. Nothing has been executed."""


class UnsupportedError(DeviceError, NotImplementedError):
    """An operation or lane that this device was built without."""


class LayoutError(BitlaneError, ValueError):
    """A view that no command can describe: misplaced, or outside the device's memory."""


class NoRunError(LayoutError):
    """No single run walks all elements of one sum."""


class RowTooLongError(LayoutError):
    """One sum has more elements than a run may have."""


class DataTypeError(BitlaneError, TypeError):
    """An array of a type that the operation does not take. Nothing has been executed."""


class ShapeError(BitlaneError, ValueError):
    """Shapes that do not match. Nothing has been executed."""


class AxisError(ShapeError, IndexError):
    """An axis that an array does not have, also a ``np.exceptions.AxisError``.

    Nothing has been executed.
    """


class OutOfRangeError(BitlaneError, OverflowError):
    """A Python integer that the other operand's type cannot hold. Nothing has been executed."""


class SettingError(BitlaneError, ValueError):
    """A value that a setting cannot have; the setting is unchanged."""


class LinkError(BitlaneError, OSError):
    """The device could not be opened, identified or reached."""


class BoardInUseError(LinkError):
    """Another host uses the board on the network. Nothing has been executed."""


class LinkVersionError(LinkError):
    """The board has another version of the link than this bitlane. Nothing has been executed."""

    version: int
    """The board's version."""


class ArrayIndexError(BitlaneError, IndexError):
    """An index that an array on a device does not have. Nothing has been executed."""


class NotOfferedError(BitlaneError, TypeError):
    """An operation of NumPy that arrays on a device lack; the message names a substitute."""


class MissingError(BitlaneError, AttributeError):
    """A name of NumPy or the array API that bitlane lacks; the message names a substitute."""


class BusyError(BitlaneError, RuntimeError):
    """An array that another thread reads or writes, or that another library still uses."""


class FreedError(BitlaneError, ValueError):
    """An array whose memory has been freed."""


class OtherDeviceError(BitlaneError, ValueError):
    """Arrays of two devices in one operation. Nothing has been executed."""


class SearchError(BitlaneError, ValueError):
    """A search with invalid limits, an unknown metric, or rows that are not whole bytes."""


class CopyError(BitlaneError, ValueError):
    """``copy=False`` was requested, but a copy is needed."""


class ExchangeError(BitlaneError, BufferError):
    """An array that DLPack cannot export as another library requested it."""


class Fact(str):
    """A value of ``ModelFileError`` that describes what is there: shown without quotes."""

    __slots__ = ()


class ModelFileError(BitlaneError, ValueError):
    """A model file that cannot be read or run. Nothing has been executed.

    ``file`` as it was named; ``path`` the place in it, as ``commands[3].bindings.ATensor`` (or
    ``line 7, column 12`` of text that is not JSON); ``value`` the value there, or a property that
    follows from it; ``expected`` what would be right. ``others`` are the other errors of the file.
    """

    def __init__(self, file: str, path: str, value: object, expected: str) -> None:
        where, wanted = shortened(path, _LONGEST_PATH), shortened(expected, _LONGEST_EXPECTED)
        super().__init__(printable(f"{file}: {where} is {_as_json(value)}; expected {wanted}"))
        self.file = file
        self.path = path
        self.value = value
        self.expected = expected
        self.others: tuple[ModelFileError, ...] = ()

    @property
    def all(self) -> "tuple[ModelFileError, ...]":
        """This error and ``others``."""
        return (self, *self.others)


def _as_json(value: object) -> str:
    """Return a value as JSON writes it, cut short."""
    if isinstance(value, Enum | Fact):
        return shortened(str(value), _LONGEST_PATH)
    # Slow to import, and only a model file's errors need it.
    import json

    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        text = str(value)
    except RecursionError:
        text = f"a deep {type(value).__name__}"
    return text if len(text) <= _LONGEST_JSON else f"{text[: _LONGEST_JSON - 3]}..."


class NpyError(BitlaneError, ValueError):
    """A file that is not an array of NumPy's; the message gives the reason, not the file."""


class OnnxError(BitlaneError, ValueError):
    """A model that cannot be run, or inputs that do not fit it. Nothing has been executed."""


class OnnxLackingError(OnnxError):
    """A part of a valid model that devices do not compute: ``rest`` names a backend that may."""


class OnnxMissingError(BitlaneError, ImportError):
    """A package for models of ONNX is not installed."""


class WorkerLostError(BitlaneError):
    """A process of a pool will not answer again; the message names its device and the reason."""


class CheckFailed(BitlaneError):
    """The device did something else than it should; the message says what, in one line."""


for _name in __all__:
    # Tracebacks show the name that users write: ``bitlane.ShapeError``.
    globals()[_name].__module__ = "bitlane"
ModelFileError.__module__ = "bitlane.model_file"
for _kind in (OnnxError, OnnxLackingError, OnnxMissingError):
    _kind.__module__ = "bitlane.onnx"
