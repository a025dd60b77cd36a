"""Messages of a design as text, for a finished model: without Amaranth."""

from collections.abc import Sequence

from .design import FormattedValue

__all__ = ["formatted"]


def formatted(message: Sequence[str | FormattedValue], values: Sequence[int]) -> str:
    """Return ``message`` with its values replaced by ``values``, which are unsigned."""
    given, parts = iter(values), []
    for part in message:
        if isinstance(part, str):
            parts.append(part)
            continue
        value, description = next(given), part.description
        if part.signed and part.width and value >> (part.width - 1) & 1:
            value -= 1 << part.width
        if description.endswith("s"):
            parts.append(format(_text(value), description[:-1]))
        else:
            parts.append(format(value, description))
    return "".join(parts)


def _text(value: int) -> str:
    """Characters, the first one in the lowest byte; bytes that are 0 are left out."""
    count = -(-value.bit_length() // 8)
    return value.to_bytes(count, "little").replace(b"\0", b"").decode()
