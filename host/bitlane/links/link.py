"""The interface of a link to a device, and the function that opens the link of a URL."""

import os
from abc import abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, Self, TypeAlias, cast
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from ..closeable import Closeable
from ..errors import LinkError
from ..installation import how_to_install
from .url import DeviceUrl

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from .counts import Counts
    from .predicted import Predicted
    from .recording import Recording


ENTRY_POINT_GROUP = "bitlane.links"
"""Entry points that map a URL scheme to a callable that takes the URL and returns a ``Link``."""

WITHOUT_CIRCUIT = (
    "the device numpy needs neither a circuit nor a compiler, and BITLANE_DEVICE=numpy makes it"
    " the default"
)
"""The last clause of each message about a simulator that cannot be opened."""

BytesLike: TypeAlias = bytes | bytearray | memoryview | NDArray[Any]
"""Anything with C-contiguous bytes."""


class Link(Closeable):
    """A connection to a device, as one 32-bit space of byte addresses.

    The device's memory is at its own addresses, the control window at ``abi.CONTROL_BASE``. The
    control window is read and written in whole little-endian 32-bit words: address and size are
    multiples of ``abi.WORD_BYTES``. Calls take effect in the order in which they are made. Every
    method raises ``LinkError`` when the device cannot be reached, and in a process that was forked
    after the link was opened.
    """

    description: str
    """The device and its connection, for people: ``simulator compiled, 64 bits``."""

    remote: bool = False
    """Whether calls travel over a line, so that a long exchange beats many calls, one each way."""

    byte_seconds: float = 0.0
    """Seconds that a byte takes on the line; 0 if the host takes longer for one."""

    predicted: bool = False
    """Whether no circuit runs, so that the counters of cycles and beats are predicted."""

    closed: bool = False
    """Whether ``close`` was called, or an error has closed the link."""

    def __new__(cls, *_: object, **__: object) -> Self:
        link = super().__new__(cls)
        _opened[id(link)] = link
        return link

    @property
    def slow(self) -> bool:
        """Whether a megabyte takes the device minutes, as on a circuit that Python evaluates."""
        return False

    @property
    def memory_view(self) -> NDArray[np.uint8] | None:
        """The bytes of the device's memory itself if they are in this process, else None."""
        return None

    @property
    def cycles(self) -> int | None:
        """Simulated clock cycles since power-on; None if the device's clock is a real one."""
        return None

    @property
    def statistics(self) -> "Counts | None":
        """Bytes, requests and answers since the link was opened; None without a line."""
        return None

    @property
    def recording(self) -> "Recording | None":
        """The activity of the device's buses since it was opened, if the link records it."""
        return None

    @property
    def prediction(self) -> "Predicted | None":
        """The time that a board would have needed since the link was opened; None if unknown."""
        return None

    def predict(self, records: Sequence[bytes]) -> list[int] | None:
        """Return the cycles from a doorbell until each command of ``records`` has retired.

        A circuit with an idle engine would take them for commands that are not refused. None if the
        link predicts nothing.
        """
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

        Returns the result of ``read`` for each of ``reads``. Writes take effect in their order, and
        reads after the last write to the control window. Apart from that a link may move both at
        once: ranges that are written must not overlap ranges that are read.
        """
        for address, data in writes:
            self.write(address, data)
        return [self.read(address, size) for address, size in reads]

    def forget(self, address: int, size: int) -> None:
        """Discard these bytes of the memory: they will be written before they are read again.

        A simulated memory frees their pages; other links have nothing to do. May be called on a
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

    def disown(self) -> None:
        """Refuse all calls from now on: this process was forked, and the device is its parent's.

        ``close`` may still be called. A link whose ``close`` reaches the device extends this
        method, so that ``close`` releases only memory and files of this process.
        """
        refuse = partial(_refuse, getattr(self, "description", "device"))
        vars(self).update(dict.fromkeys(("read", "write", "exchange", "wait"), refuse))


_opened: WeakValueDictionary[int, Link] = WeakValueDictionary()
"""All links by identity: some are data classes, which have no hash."""


def opened_elsewhere(description: str) -> LinkError:
    """Return the error of a call in a process that was forked after the device was opened."""
    return LinkError(
        f"{description}: the device was opened in another process; open it here, after the fork:"
        " bitlane.open(url)"
    )


def _refuse(description: str, *_: object, **__: object) -> NoReturn:
    raise opened_elsewhere(description)


def _disown() -> None:
    for link in list(_opened.values()):
        link.disown()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_disown)


def open_link(url: str) -> Link:
    """Open the link that ``url`` names: ``sim``, ``serial:/dev/ttyUSB1``, ``udp://192.168.1.50``.

    The text before the first colon or question mark is the scheme; the link parses the rest.

    Raises
    ------
    LinkError
        No installed package has the scheme, or its link cannot be opened.
    """
    scheme, found = DeviceUrl.parse(url).scheme, _installed()
    if scheme not in found:
        names = ", ".join(sorted(found)) or "none"
        raise LinkError(
            f"device {url!r}: no link has the scheme {scheme!r}; installed: {names}; expected"
            " a URL like sim, serial:PORT or udp://ADDRESS"
        )
    try:
        return cast(Link, found[scheme].load()(url))
    except ImportError as error:
        lacking = f"{found[scheme].value} cannot be loaded: {error}"
        if isinstance(error, ModuleNotFoundError) and error.name:
            package = error.name.partition(".")[0]
            lacking = f"needs the Python package {package}, which is not installed"
        owner = found[scheme].dist
        if owner is not None and owner.name != "bitlane":
            cure = f"expected all that {owner.name} needs, whose link it is"
        else:
            cure = f"{how_to_install(scheme)} brings it"
        without = f"; {WITHOUT_CIRCUIT}" if scheme == "sim" else ""
        raise LinkError(f"device {url!r}: {lacking}; {cure}{without}") from error


def is_known(url: str) -> bool:
    """Return whether an installed package has the scheme of ``url``; open nothing."""
    return DeviceUrl.parse(url).scheme in _installed()


def _installed() -> "dict[str, EntryPoint]":
    # Slow to import, and only needed where a device is opened.
    from importlib.metadata import entry_points

    return {entry.name: entry for entry in entry_points(group=ENTRY_POINT_GROUP)}
