"""The link to a board behind a serial port: ``serial:/dev/ttyUSB1?baud=1000000``.

The only place that imports pyserial, and only when a port is to be opened.
"""

from contextlib import suppress
from errno import EACCES, EAGAIN, EBUSY, ENODEV, ENOENT, ENXIO, EPERM
from os import fsencode
from typing import Any, Final

from bitlane_rtl.abi import DEFAULT_BAUD

from ..errors import LinkError
from ..installation import how_to_install
from .remote_link import DEFAULT_TIMEOUT
from .serial_link import Port, SerialLink
from .url import LONGEST_SECONDS, DeviceUrl, Options, parse_seconds, printable


def open_link(url: str) -> SerialLink:
    """Open ``serial:PORT[?OPTION=VALUE[&OPTION=VALUE]]``.

    The options are ``baud``, bits a second (default 3000000), and ``timeout``, seconds of silence
    after which the link fails (default 10).

    Raises ``LinkError`` for an unknown option or a bad value, a port that cannot be opened or is in
    use, without pyserial, and if no board of this link version answers.
    """
    parsed = DeviceUrl.parse(url)
    path = parsed.target
    if not path:
        raise LinkError(f"device {url!r}: no port; expected serial:PORT; {_ports()}")
    if not _is_name(path):
        raise LinkError(
            f"device {url!r}: port is {path!r}; expected the name of a serial port; {_ports()}"
        )
    values: dict[str, Any] = {"baud": DEFAULT_BAUD, "timeout": DEFAULT_TIMEOUT}
    values |= parsed.options(_OPTIONS)
    port = _open_port(url, path, values["baud"], values["timeout"])
    link = SerialLink(
        port,
        description=f"serial port {printable(path)}, {values['baud']} baud",
        timeout=values["timeout"],
    )
    link.byte_seconds = _BITS / values["baud"]
    return link


_BITS = 10
"""Bits of a byte on the line, with its start and stop."""


def _is_name(path: str) -> bool:
    """Return whether the system can have a file called ``path``."""
    try:
        return b"\0" not in fsencode(path)
    except UnicodeEncodeError:
        return False


def _open_port(url: str, path: str, baud: int, timeout: float) -> Port:
    try:
        from serial import Serial
    except ImportError as error:
        raise LinkError(
            f"device {url!r}: pyserial cannot be loaded: {error}; "
            f"{how_to_install('serial')} brings it"
        ) from error
    try:
        port = Serial(path, baud, exclusive=True, write_timeout=timeout)
    except (ValueError, OverflowError) as error:
        raise LinkError(
            f"device {url!r}: baud is {baud}, which the port refuses: {error}"
        ) from error
    except OSError as error:
        raise LinkError(f"device {url!r}: {_reason(error)}") from error
    # Without it FTDI's bridges hold short answers back for 16 ms. Some ports lack it.
    with suppress(AttributeError, NotImplementedError, OSError, ValueError):
        port.set_low_latency_mode(True)
    opened: Port = port
    return opened


def _reason(error: OSError) -> str:
    """Return the reason why a port cannot be opened, and the remedy."""
    if error.errno == ENOENT:
        return f"there is no such port; {_ports()}"
    if error.errno in (ENXIO, ENODEV):
        return f"nothing is plugged in there; {_ports()}"
    if error.errno in (EBUSY, EAGAIN):
        return "the port is in use by another program; close that"
    if error.errno in (EACCES, EPERM):
        return (
            "no permission to open the port; on Linux: sudo usermod -aG dialout $USER, then log"
            " in anew"
        )
    return f"the port cannot be opened: {printable(str(error))}; is it a serial port?"


def _ports() -> str:
    """List the serial ports of this computer, for people."""
    try:
        from serial.tools.list_ports import comports
    except ImportError:
        return "serial:/dev/ttyUSB1 is an example"
    names = sorted(str(port.device) for port in comports())
    return f"serial ports found: {', '.join(names) or 'none'}"


def _baud(text: str) -> int:
    baud = int(text)
    if baud <= 0:
        raise ValueError("expected more than 0")
    return baud


_OPTIONS: Final[Options] = {
    "baud": (_baud, f"bits a second, a whole number (default {DEFAULT_BAUD})"),
    "timeout": (
        parse_seconds,
        f"seconds of silence, up to {LONGEST_SECONDS} (default {DEFAULT_TIMEOUT:g})",
    ),
}
