"""Messages of a design in simulation: prints, failed checks, hits of covers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..amaranth_internals import nir, pin_blame
from .design import Bits, FormattedValue, formatted


@dataclass(frozen=True, slots=True)
class Event:
    """A print or check of Amaranth's ``cell``: reported where ``enable`` is 1, with ``values``."""

    enable: int
    values: tuple[Bits, ...]
    cell: Any


_FAILURES = {"assert": "Assertion violated", "assume": "Assumption violated"}


def report(cell: Any, values: Sequence[int]) -> None:
    """Print what ``cell`` prints of ``values``; raise ``AssertionError`` where it is a check."""
    text = said(cell, values)
    if _kind(cell) in _FAILURES:
        pin_blame(cell.src_loc, AssertionError(text))
    print(text, end="")


def said(cell: Any, values: Sequence[int]) -> str:
    """Return the message of ``cell`` with ``values``."""
    text, kind = formatted(parts_of(cell.format), values), _kind(cell)
    if kind == "print":
        return text
    if kind == "cover":
        filename, line = cell.src_loc
        return f"Coverage hit at {filename}:{line}: {text}\n"
    return _FAILURES[kind] if cell.format is None else f"{_FAILURES[kind]}: {text}"


def worded(cell: Any) -> str:
    """Return the message of ``cell``, a check, with ``{}`` in place of values."""
    text = "".join(x if isinstance(x, str) else "{}" for x in parts_of(cell.format))
    return _FAILURES[_kind(cell)] + (f": {text}" if cell.format is not None else "")


def _kind(cell: Any) -> str:
    return "print" if isinstance(cell, nir.SyncPrint | nir.AsyncPrint) else str(cell.kind)


def parts_of(message: Any) -> tuple[str | FormattedValue, ...]:
    """A format of Amaranth's netlist, or None, in plain form."""
    return tuple(
        x if isinstance(x, str) else FormattedValue(len(x.value), x.signed, x.format_desc)
        for x in (message.chunks if message is not None else ())
    )
