"""What a design says while it is simulated: prints, failed checks, hits of covers."""

from collections.abc import Sequence
from typing import Any

from .private import nir, pin_blame, value_to_string

__all__ = ["report", "said"]

_FAILURES = {"assert": "Assertion violated", "assume": "Assumption violated"}


def report(cell: Any, values: Sequence[int]) -> None:
    """Print what ``cell`` prints of ``values``; raise ``AssertionError`` where it is a check."""
    text = said(cell, values)
    if _kind(cell) in _FAILURES:
        pin_blame(cell.src_loc, AssertionError(text))
    print(text, end="")


def said(cell: Any, values: Sequence[int]) -> str:
    """What ``cell`` prints of ``values``, or complains of."""
    text, kind = _formatted(cell.format, values), _kind(cell)
    if kind == "print":
        return text
    if kind == "cover":
        filename, line = cell.src_loc
        return f"Coverage hit at {filename}:{line}: {text}\n"
    return _FAILURES[kind] if cell.format is None else f"{_FAILURES[kind]}: {text}"


def _kind(cell: Any) -> str:
    return "print" if isinstance(cell, nir.SyncPrint | nir.AsyncPrint) else str(cell.kind)


def _formatted(message: Any, values: Sequence[int]) -> str:
    if message is None:
        return ""
    given, parts = iter(values), []
    for chunk in message.chunks:
        if isinstance(chunk, str):
            parts.append(chunk)
            continue
        value, width, description = next(given), len(chunk.value), chunk.format_desc
        if chunk.signed and width and value >> (width - 1) & 1:
            value -= 1 << width
        if description.endswith("s"):
            parts.append(format(value_to_string(value), description[:-1]))
        else:
            parts.append(format(value, description))
    return "".join(parts)
