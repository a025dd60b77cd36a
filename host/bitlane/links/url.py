"""URLs of devices: ``sim``, ``sim:pysim?width=64``, ``serial:/dev/ttyUSB1``, ``udp://192.168.1.50``."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self, TypeAlias
from urllib.parse import parse_qsl, quote

from ..errors import BitlaneError, LinkError

Options: TypeAlias = Mapping[str, tuple[Callable[[str], Any], str]]
"""By name: a function that parses the text, or raises ``ValueError``, and the expected value."""


@dataclass(frozen=True, slots=True)
class DeviceUrl:
    """``SCHEME[:TARGET][?OPTION=VALUE[&OPTION=VALUE...]]``, and the whole ``text``."""

    text: str
    scheme: str
    target: str
    query: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Split ``text``, of which any is a URL: the scheme ends at the first ``:`` or ``?``."""
        head, _, query = text.partition("?")
        scheme, _, target = head.partition(":")
        return cls(text, scheme, target, query)

    def options(self, known: Options) -> dict[str, Any]:
        """Return the values of the options, all of which are ``known``. Raises ``LinkError``."""
        values = {}
        for name, text in self._pairs():
            if name not in known:
                raise LinkError(
                    f"device {self.text!r}: no option {name!r}; choose {', '.join(known)}"
                )
            if name in values:
                raise LinkError(f"device {self.text!r}: option {name} occurs twice; expected once")
            parse, meaning = known[name]
            try:
                values[name] = parse(text)
            except ValueError:
                raise LinkError(
                    f"device {self.text!r}: option {name} is {text!r}; expected {meaning}"
                ) from None
        return values

    def has_option(self, name: str) -> bool:
        """Return whether the URL sets the option ``name``."""
        return any(name == each for each, _ in self._pairs())

    def with_option(self, name: str, value: str) -> str:
        """Return the URL with the option ``name`` added."""
        joint = "&" if self.query else "" if self.text.endswith("?") else "?"
        return f"{self.text}{joint}{name}={quote(value, errors='surrogateescape')}"

    def expect_simulated(self, option: str, schemes: Sequence[str] = ("sim",)) -> None:
        """Raise ``BitlaneError`` unless its scheme is one that ``option`` needs."""
        if self.scheme not in schemes:
            raise BitlaneError(
                f"{option}: {printable(self.text)} is not a simulated device; expected --device"
                f" {' or '.join(schemes)}"
            )

    def _pairs(self) -> list[tuple[str, str]]:
        # Names of files may be bytes that are not text.
        return parse_qsl(self.query, keep_blank_values=True, errors="surrogateescape")


LONGEST_SECONDS: Final = 1_000_000
"""Longest timeout in seconds (11 days): every wait has a deadline."""

_SHORTEST_SECONDS: Final = 1e-6


def parse_seconds(text: str) -> float:
    """Parse the value of an option ``timeout``. Raises ``ValueError``."""
    seconds = float(text)
    if not _SHORTEST_SECONDS <= seconds <= LONGEST_SECONDS:
        raise ValueError(f"expected {_SHORTEST_SECONDS:g} to {LONGEST_SECONDS}")
    return seconds


def printable(text: str) -> str:
    """Return ``text`` for a message, as Python writes it if it has control characters."""
    return text if text.isprintable() else repr(text)


def parse_target(url: str, target: str, form: str, port: int) -> tuple[str, int]:
    """Split ``//ADDRESS[:PORT]``, where ``port`` is the default.

    Raises ``LinkError``, which says that ``form`` is expected.
    """
    host, colon, text = target.removeprefix("//").partition(":")
    if not target.startswith("//") or not host or not {*"/[]"}.isdisjoint(host):
        raise LinkError(f"device {url!r}: no address; expected {form}")
    if not colon:
        return host, port
    fits = text.isascii() and text.isdecimal() and len(text) <= len(str(_PORTS))
    if not fits or not 0 < int(text) < _PORTS:
        raise LinkError(f"device {url!r}: port is {text!r}; expected 1 to {_PORTS - 1}")
    return host, int(text)


_PORTS: Final = 1 << 16
