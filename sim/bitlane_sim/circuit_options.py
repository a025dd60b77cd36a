"""The options of a URL that say which circuit it asks for. No circuit is built here."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from enum import IntEnum
from typing import Any, TypeVar

from bitlane.errors import LinkError
from bitlane.files import parse_size
from bitlane.links import DeviceUrl, Options
from bitlane_rtl.abi import BIT_OPS, Lane, Mode, Op
from bitlane_rtl.configuration import Configuration, Search

from .search_option import SEARCH_FORM, search_numbers

_Code = TypeVar("_Code", bound=IntEnum)


def whole(text: str) -> int:
    """Return the number that ``text`` writes, in any base. Raises ``ValueError``."""
    return int(text, 0)


def _operations(text: str) -> frozenset[Op]:
    found = frozenset(_member(Op, name) for name in text.split(","))
    if not found <= BIT_OPS:
        raise ValueError("the option search chooses whether a circuit searches")
    return found


def _modes(text: str) -> frozenset[Mode]:
    return frozenset(_member(Mode, name) for name in text.split(","))


def _lanes(text: str) -> frozenset[Lane]:
    return frozenset(_member(Lane, f"bits_{bits}") for bits in text.split(","))


def _member(kind: type[_Code], name: str) -> _Code:
    try:
        return kind[name.upper()]
    except KeyError:
        raise ValueError(f"no {kind.__name__} is called {name}") from None


def _names(kind: Iterable[IntEnum]) -> str:
    return ", ".join(member.name.lower() for member in sorted(kind))


CIRCUIT: Options = {
    "width": (whole, "bits in a beat: 32, 64 or 128 (default 64)"),
    "ports": (whole, "read ports, 1 or 2 (default 2)"),
    "memory": (parse_size, "bytes of memory, with KiB, MiB or GiB (default 1GiB)"),
    "loops": (whole, "nested loops of a command, 1 to 6 (default 4)"),
    "slots": (whole, "slots of the command ring (default 16)"),
    "ops": (
        _operations,
        f"operations, separated by commas: {_names(BIT_OPS)} (default all)",
    ),
    "modes": (_modes, f"ways to walk a run, dense among them: {_names(Mode)} (default all)"),
    "lanes": (_lanes, "widths of lanes in bits, separated by commas: 8, 16, 32, 64 (default all)"),
    "search": (
        search_numbers,
        f"a search array, {SEARCH_FORM}: powers of two but for UNITS (default none)",
    ),
}


def configuration_of(url: str) -> Configuration:
    """Return the circuit that ``url`` asks for. Raises ``LinkError`` for other options."""
    values = DeviceUrl.parse(url).options(CIRCUIT)
    with as_option_error(url):
        return configuration(values)


_FIELDS = {
    "width": "data_width",
    "ports": "read_ports",
    "memory": "memory_bytes",
    **{name: name for name in ("loops", "slots", "ops", "modes", "lanes", "search")},
}
"""Fields of a configuration, by the options that set them."""


def configuration(values: Mapping[str, Any]) -> Configuration:
    """Return the circuit of the options ``values``. Raises ``ValueError`` that names a field."""
    chosen = {field: values[name] for name, field in _FIELDS.items() if name in values}
    if "search" in chosen:
        chosen["search"] = Search(**chosen["search"])
    return Configuration(**chosen)


@contextmanager
def as_option_error(url: str, *others: type[Exception]) -> Iterator[None]:
    """Turn errors of fields, and ``others``, into a ``LinkError`` that names the option."""
    kinds: tuple[type[Exception], ...] = (ValueError, OSError, *others)
    try:
        yield
    except kinds as error:
        field, colon, rest = str(error).partition(":")
        # A field of a part has the part's name before a point.
        known = {field: f"option {name}" for name, field in _FIELDS.items()}
        option = known.get(field.partition(".")[0], field)
        option += field.partition(".")[2] and f" ({field})"
        raise LinkError(f"device {url!r}: {option}{colon}{rest}") from error
