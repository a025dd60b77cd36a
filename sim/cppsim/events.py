"""What a design says while it is simulated: prints, failed checks, hits of covers."""

from collections.abc import Sequence
from typing import Any

from .private import nir, pin_blame, value_to_string

__all__ = ["report"]

_FAILURES = {"assert": "Assertion violated", "assume": "Assumption violated"}


def report(cell: Any, values: Sequence[int]) -> None:
    """Print what ``cell`` prints of ``values``; raise ``AssertionError`` where it is a check."""
    text = _formatted(cell.format, values)
    if isinstance(cell, nir.SyncPrint | nir.AsyncPrint):
        print(text, end="")
    elif cell.kind == "cover":
        filename, line = cell.src_loc
        print(f"Coverage hit at {filename}:{line}:", text)
    else:
        failure = _FAILURES[cell.kind]
        message = failure if cell.format is None else f"{failure}: {text}"
        pin_blame(cell.src_loc, AssertionError(message))


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
