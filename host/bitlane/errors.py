"""Every error that bitlane raises on purpose. One line each: the thing, its value, what to do."""

from typing import Any

from bitlane_rtl.abi import Port, Status

__all__ = [
    "ArrayIndexError",
    "AxisError",
    "BitlaneError",
    "BusyError",
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
    "MissingError",
    "NotOfferedError",
    "OtherDeviceError",
    "OutOfDeviceMemory",
    "OutOfHostMemory",
    "OutOfRangeError",
    "SearchError",
    "SettingError",
    "ShapeError",
    "UnsupportedError",
]

_LONGEST = 40


class BitlaneError(Exception):
    """Base of all errors that bitlane raises on purpose. Pools of processes can send them."""

    def __reduce__(self) -> tuple[Any, ...]:
        # Not the class: the arguments of its __init__ are not those that make up the message.
        return _restore, (type(self), self.args, self.__dict__)


def _restore(
    kind: type[BitlaneError], arguments: tuple[object, ...], state: dict[str, object]
) -> BitlaneError:
    """An error as it was, from what ``pickle`` kept of it."""
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
        if not 0 < len(shown) <= _LONGEST:
            shown = f"of type {type(value).__name__}"
        super().__init__(tensor, field, shown, expected, hresult=hresult)


class DeviceError(BitlaneError, RuntimeError):
    """The device refused or could not finish a command; the message carries its registers."""


class DeviceFault(DeviceError):
    """The device stopped at a command.

    ``code`` is an ``abi.Status`` where the contract has it; ``index`` counts the commands of the
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
    """Shapes that do not go together. Nothing has been executed."""


class AxisError(ShapeError, IndexError):
    """An axis that an array does not have; also NumPy's kind of it is both. Nothing is executed."""


class OutOfRangeError(BitlaneError, OverflowError):
    """A Python integer that the other operand's type cannot hold. Nothing has been executed."""


class SettingError(BitlaneError, ValueError):
    """A setting of a device got a value that it cannot have, and keeps the one that it had."""


class LinkError(BitlaneError, OSError):
    """The device could not be opened, identified or reached."""


class ArrayIndexError(BitlaneError, IndexError):
    """An index that an array on a device does not have. Nothing has been executed."""


class NotOfferedError(BitlaneError, TypeError):
    """What NumPy's arrays can do and those on a device cannot; the message says what does it."""


class MissingError(BitlaneError, AttributeError):
    """A name that NumPy's arrays or the array API have and bitlane lacks, and what does it."""


class BusyError(BitlaneError, RuntimeError):
    """An array that another thread is writing, or reading what is to be written; or one to be freed
    that another library shows."""


class FreedError(BitlaneError, ValueError):
    """An array whose memory has been given back."""


class OtherDeviceError(BitlaneError, ValueError):
    """Arrays of two devices in one operation. Nothing has been executed."""


class SearchError(BitlaneError, ValueError):
    """A search that cannot be: for no rows, by no known metric, or in rows of no whole bytes."""


class CopyError(BitlaneError, ValueError):
    """``copy=False`` was requested, but a copy is needed."""


class ExchangeError(BitlaneError, BufferError):
    """An array that DLPack cannot hand over as another library requested it."""


for _name in __all__:
    # Tracebacks show the name that users write: ``bitlane.ShapeError``.
    globals()[_name].__module__ = "bitlane"
