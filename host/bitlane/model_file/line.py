"""What a run prints: lines of text that programs can read too."""

from typing import Any, Self

__all__ = ["Line"]


class Line(str):
    """A line, or several. ``data`` says the same for programs; ``kind`` what it belongs to."""

    __slots__ = ("data", "kind")

    kind: str
    """"dispatches", "checks", "resources" or "files"."""
    data: dict[str, Any]

    def __new__(cls, text: str, kind: str, data: dict[str, Any]) -> Self:
        line = super().__new__(cls, text)
        line.kind = kind
        line.data = data
        return line
