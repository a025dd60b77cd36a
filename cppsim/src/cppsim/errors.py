"""The exceptions of the simulator, and warnings that point at the user's line."""

import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_OWN = "cppsim"
_INNER = ("amaranth",)
"""Other packages that a warning does not point at."""

_FOLDER = str(Path(__file__).parent)


class SimulationError(Exception):
    """A circuit could not be built, or broke a rule while it ran. One line."""


class NoCompilerError(SimulationError):
    """No C++ compiler runs. The line says what to install."""


class BatchError(SimulationError):
    """A batch cannot be made, or a program does not fit its circuit. One line with the cure."""


class PortError(BatchError):
    """A port does not exist, or does not take a value. One line with what is expected."""


class PortValueError(PortError, ValueError):
    """A port does not take a value: it has fewer bits, or the design drives it."""


class PortTypeError(PortError, TypeError):
    """A port does not take values of a type, or an object is not a port."""


class UnknownNameError(PortError, KeyError):
    """A port or a memory does not exist; the line lists the names."""

    __str__ = Exception.__str__  # that of a KeyError quotes its line


def one_line(error: Exception) -> str:
    """Return the message of ``error`` in one line; that of an unexpected type asks for a report."""
    # Of a combinational cycle's path the first signal is enough.
    reason = " ".join(line.strip() for line in str(error).splitlines()[:2])
    oversight = isinstance(error, AssertionError | AttributeError | LookupError)
    if oversight and not isinstance(error, SimulationError):
        return f"an error in cppsim ({type(error).__name__}: {reason}); please report it"
    return reason or type(error).__name__


@contextmanager
def in_one_line(kind: type[SimulationError]) -> Iterator[None]:
    """Raise other errors as a ``kind``."""
    try:
        yield
    except kind:
        raise
    except Exception as error:
        raise kind(one_line(error)) from error


@contextmanager
def memory_for(what: str) -> Iterator[None]:
    """Raise ``BatchError`` instead of ``MemoryError``, with ``what`` as its subject."""
    try:
        yield
    except MemoryError as error:
        hint = "repeat less, or run fewer instances at a time"
        raise BatchError(f"{what} takes more memory than there is: {hint}") from error


class FallbackWarning(UserWarning):
    """Amaranth's own simulator, which is slow, runs a design; the message has the reason."""


def fall_back(reason: str) -> None:
    """Warn that Amaranth's simulator runs the design."""
    warn_user(FallbackWarning(f"left to Amaranth's simulator: {reason}"))


def warn_user(warning: Warning, *inner: str) -> None:
    """Warn at the innermost line of a user.

    Packages of no user are Amaranth, cppsim, and those whose names begin with one of ``inner``.
    """
    frame, depth = sys._getframe(1), 2
    while frame.f_back and is_of_no_user(frame.f_globals, inner):
        frame, depth = frame.f_back, depth + 1
    warnings.warn(warning, stacklevel=depth)


def is_of_no_user(module: Mapping[str, Any], inner: tuple[str, ...] = ()) -> bool:
    """Return whether the globals are those of Amaranth, cppsim or one of ``inner``."""
    package = module.get("__name__", "").partition(".")[0]
    if package == _OWN:  # so are modules below a user's folder of this name
        return str(module.get("__file__", "")).startswith(_FOLDER)
    return package in _INNER or package.startswith(inner)
