"""How the host reaches a device: one small protocol, the options of its URL, and its finder."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast
from urllib.parse import parse_qsl

import numpy as np
from numpy.typing import NDArray

from ..closeable import Closing
from ..errors import LinkError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from .recording import Recording


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


ENTRY_POINT_GROUP = "bitlane.links"
"""Entry points that map a URL scheme to a callable that takes the URL and returns a ``Link``."""

BytesLike: TypeAlias = bytes | bytearray | memoryview | NDArray[Any]
"""Anything with C-contiguous bytes."""


class Link(Closing):
    """A way to a device: one 32-bit space of byte addresses.

    The device's memory stands at its own addresses, its control window at ``abi.CONTROL_BASE``.
    The control window takes and gives whole little-endian 32-bit words only: address and size are
    multiples of ``abi.WORD_BYTES``. Calls take effect in the order they are made. Every method
    raises ``LinkError`` when the device cannot be reached.
    """

    description: str
    """What the device is and how it is reached, for people: ``simulator compiled, 64 bits``."""

    remote: bool = False
    """Whether calls travel over a line, so that a long exchange beats many calls, one each way."""

    @property
    def slow(self) -> bool:
        """Whether a megabyte takes the device minutes, as on a circuit that Python evaluates."""
        return False

    @property
    def host_memory(self) -> NDArray[np.uint8] | None:
        """All bytes of the device's memory, if it is this computer's own: not a copy. Else None."""
        return None

    @property
    def recording(self) -> "Recording | None":
        """What has happened at the device's buses since it was opened, if the link records it."""
        return None

    @abstractmethod
    def read(self, address: int, size: int) -> NDArray[np.uint8]:
        """``size`` bytes from ``address`` on, as a one-dimensional array.

        The array is a copy of the memory: nothing that happens later changes it.
        """

    @abstractmethod
    def write(self, address: int, data: BytesLike) -> None:
        """Write all bytes of ``data`` from ``address`` on; ``data`` may change afterwards."""

    def exchange(
        self,
        writes: Sequence[tuple[int, BytesLike]],
        reads: Sequence[tuple[int, int]],
    ) -> list[NDArray[np.uint8]]:
        """Write the data of ``writes``, (address, data), and read ``reads``, (address, size).

        Returns what ``read`` would for each of ``reads``. Writes take effect in their order, and
        reads after the last write to the control window. Else a link that can moves both at once:
        ranges that are written must not overlap any that is read.
        """
        for address, data in writes:
            self.write(address, data)
        return [self.read(address, size) for address, size in reads]

    def forget(self, address: int, size: int) -> None:
        """Nobody will read these bytes of the memory before they are written again.

        A link that can gives back what they take; most have nothing to do. May be called of a
        closed link.
        """

    @abstractmethod
    def wait(self, timeout: float) -> bool:
        """Wait until the device's interrupt line is high, ``timeout`` seconds at most.

        Returns whether it is high. Does not lower it. ``timeout`` 0 only looks. A link to a
        simulation counts only seconds in which nothing moves on the device's buses.
        """

    @abstractmethod
    def close(self) -> None:
        """Give the device back. May be called again; nothing else may be called after it."""


def open_link(url: str) -> Link:
    """The link that ``url`` names: ``sim``, ``sim:pysim``, ``serial:/dev/ttyUSB1``.

    What stands before the first colon or question mark is the scheme; the rest is for the link
    itself to read.

    Raises
    ------
    LinkError
        No installed package has the scheme, or its link cannot be opened.
    """
    scheme, found = _scheme(url), _installed()
    if scheme not in found:
        names = ", ".join(sorted(found)) or "none"
        raise LinkError(
            f"device {url!r}: no link has the scheme {scheme!r}; installed: {names}; expected"
            " a URL like sim or serial:PORT"
        )
    try:
        return cast(Link, found[scheme].load()(url))
    except ImportError as error:
        raise LinkError(
            f"device {url!r}: {found[scheme].value} cannot be loaded: {error}; "
            f"pip install 'bitlane[{scheme}]' brings what it needs"
        ) from error


def is_known(url: str) -> bool:
    """Whether an installed package has the scheme of ``url``. Opens nothing."""
    return _scheme(url) in _installed()


def _scheme(url: str) -> str:
    return url.partition("?")[0].partition(":")[0]


def _installed() -> "dict[str, EntryPoint]":
    # Slow to import, and only needed where a device is opened.
    from importlib.metadata import entry_points

    return {entry.name: entry for entry in entry_points(group=ENTRY_POINT_GROUP)}
