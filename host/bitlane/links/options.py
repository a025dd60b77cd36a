"""The options behind the question mark of a device's URL: ``?baud=115200&timeout=3``."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias
from urllib.parse import parse_qsl

from ..errors import LinkError

__all__ = ["Options", "read_options"]

Options: TypeAlias = Mapping[str, tuple[Callable[[str], Any], str]]
"""By name what makes a value of the text, or raises ``ValueError``, and what is expected."""


def read_options(url: str, query: str, options: Options) -> dict[str, Any]:
    """The values that ``query``, of ``url``, gives. Raises ``LinkError``."""
    values = {}
    # Names of files may be bytes that are no text.
    for name, text in parse_qsl(query, keep_blank_values=True, errors="surrogateescape"):
        if name not in options:
            raise LinkError(f"device {url!r}: no option {name!r}; choose {', '.join(options)}")
        if name in values:
            raise LinkError(f"device {url!r}: option {name} is given twice; expected once")
        parse, meaning = options[name]
        try:
            values[name] = parse(text)
        except ValueError:
            raise LinkError(
                f"device {url!r}: option {name} is {text!r}; expected {meaning}"
            ) from None
    return values
