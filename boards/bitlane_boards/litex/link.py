"""The link to a core in a LiteX SoC: ``litex://localhost:1234?csr=csr.csv``.

``litex_server`` reaches the SoC, and LiteX's ``RemoteClient`` the server. Importing this module
needs LiteX.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from select import select
from socket import IPPROTO_TCP, MSG_PEEK, TCP_NODELAY, create_connection
from time import monotonic, sleep
from typing import Any, Final
from warnings import catch_warnings, simplefilter

import numpy as np
from litex.tools.litex_client import RemoteClient
from numpy.typing import NDArray

from bitlane.errors import LinkError
from bitlane.links import (
    LONGEST_SECONDS,
    BytesLike,
    DeviceUrl,
    Link,
    Options,
    parse_seconds,
    parse_target,
    printable,
)
from bitlane_rtl.abi import ABI_VERSION, CONTROL_BASE, CONTROL_SIZE, WORD_BYTES

_PORT: Final = 1234
"""The port of ``litex_server`` unless the URL has one."""
_FORM: Final = f"litex://HOST[:PORT]?csr=FILE, as litex://localhost:{_PORT}?csr=csr.csv"
_TIMEOUT: Final = 10.0

_BURSTS: Final = {"CommUDP": 16}
"""Words of a burst by the bridge behind the server: LiteEth's Etherbone stores 16."""
_LONGEST_BURST: Final = 255
"""Words of a burst over other bridges: Etherbone counts them in a byte."""

_UNANSWERED_WORDS: Final = 4096
"""Words that are written between reads. A slow UART passes them on well within the timeout."""

_PROBES: Final = (0x0123_4567, 0xFEDC_BA98)
_HARDWARE: Final = 1
"""The value of dfii_control with which LiteDRAM drives the memory."""

_FIRST_PAUSE, _LONGEST_PAUSE = 0.0005, 0.02
"""Seconds between looks at the interrupt line."""

_HEADER_BYTES: Final = 4
"""Bytes of magic number, version and sizes, with which answers begin as their requests do."""
_COUNTS: Final = slice(10, 12)
"""The words that an Etherbone packet of one record writes, and those that it reads."""

_STRANGE: Final = "the answer is not one of litex_server"

_Step = tuple[str, int, int, int, int]


class LitexLink(Link):
    """The core ``name`` of a SoC with the map ``csr``, behind a ``litex_server``.

    Bridges write whole words: a write that begins or ends within a word reads that word first.

    Parameters
    ----------
    host, port : str, int
        The address of the server.
    csr : Path
        The file ``csr.csv`` of the SoC's build.
    name : str
        The core's name in the SoC, by which the map's names begin.
    timeout : float
        Seconds without an answer after which a call fails.

    Raises
    ------
    LinkError
        The map lacks the core or is of another build, the core has another ABI, the server does not
        answer, or the memory does not return the words that were written.
    """

    remote = True

    def __init__(
        self, host: str, port: int, csr: Path, *, name: str = "bitlane", timeout: float = _TIMEOUT
    ) -> None:
        self.description = f"LiteX SoC at {printable(host)}:{port}, {printable(str(csr))}"
        self._timeout = timeout
        self._unanswered = 0
        self._server = "?"
        self._client = _client(host, port, csr)
        self._map = SocMap(self._client, csr, name)
        client = self._client
        self._asked = b""
        self._send_packet = client.send_packet
        self._receive_packet = client.receive_packet
        self._receive_info = client._receive_server_info
        client.send_packet = self._send
        client.receive_packet = self._receive
        client._receive_server_info = self._greet
        try:
            # The client's own `open` waits for a server without a deadline.
            client.socket = create_connection((host, port), timeout)
        except (OSError, UnicodeError) as error:
            raise self._nobody(error) from error
        try:
            client.binded = True
            # Writes have no answer, and so a second one would wait for the first for 40 ms.
            client.socket.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1)
            try:
                client._receive_server_info()
            except OSError as error:
                raise self._nobody(error) from error
            self._start()
        except BaseException:
            self.close()
            raise

    # --- what a link does -------------------------------------------------------------------------

    def read(self, address: int, size: int) -> NDArray[np.uint8]:
        first = address % WORD_BYTES
        words = self._read_words(address - first, -(-(first + size) // WORD_BYTES))
        return words.view(np.uint8)[first : first + size].copy()

    def write(self, address: int, data: BytesLike) -> None:
        source = np.frombuffer(data, np.uint8)
        first = address % WORD_BYTES
        start, size = address - first, first + source.size
        last = -size % WORD_BYTES
        if not source.size:
            return
        content = np.zeros(size + last, np.uint8)
        if first:
            content[:WORD_BYTES] = self.read(start, WORD_BYTES)
        if last:
            content[-WORD_BYTES:] = self.read(start + content.size - WORD_BYTES, WORD_BYTES)
        content[first:size] = source
        self._write_words(start, content.view("<u4"))

    def wait(self, timeout: float) -> bool:
        deadline = monotonic() + timeout
        pause = _FIRST_PAUSE
        while not self._register("ev_status"):
            left = deadline - monotonic()
            if left <= 0:
                return False
            sleep(min(pause, left))
            pause = min(2 * pause, _LONGEST_PAUSE)
        return True

    def close(self) -> None:
        self.closed = True
        self._client.close()

    @property
    def registers(self) -> Any:
        """The SoC's registers by name, as LiteX's client has them: ``registers.ctrl_scratch``."""
        return self._client.regs

    # --- words ------------------------------------------------------------------------------------

    @property
    def _burst(self) -> int:
        return _BURSTS.get(self._server, _LONGEST_BURST)

    def _read_words(self, address: int, count: int) -> NDArray[np.uint32]:
        words = np.empty(count, "<u4")
        place = self._on_bus(address)
        with self._reached():
            for start in range(0, count, self._burst):
                size = min(self._burst, count - start)
                words[start : start + size] = self._client.read(place + WORD_BYTES * start, size)
        self._unanswered = 0
        return words

    def _write_words(self, address: int, words: NDArray[np.uint32]) -> None:
        place = self._on_bus(address)
        for start in range(0, words.size, self._burst):
            part = words[start : start + self._burst]
            with self._reached():
                self._client.write(place + WORD_BYTES * start, part.tolist())
            self._unanswered += part.size
            if self._unanswered >= _UNANSWERED_WORDS:
                # Writes have no answer: a read waits until the SoC has taken all of them.
                self._register("build")

    def _register(self, name: str) -> int:
        with self._reached():
            value = int(self._map.register(name).read())
        self._unanswered = 0
        return value

    def _on_bus(self, address: int) -> int:
        """Return the address on the SoC's bus, where the map places the control window."""
        offset = address - CONTROL_BASE
        return self._map.control + offset if 0 <= offset < CONTROL_SIZE else address

    # --- the client -------------------------------------------------------------------------------

    def _greet(self) -> None:
        """Take the server's first line, which names its bridge."""
        line = self._client.socket.recv(128, MSG_PEEK).decode(errors="replace")
        self._server = line.partition(":")[0]
        self._receive_info()

    def _send(self, socket: Any, packet: Any) -> None:
        """Send a request; its answer, if it has one, must be the next bytes that come."""
        words = packet.records[0].rcount
        self._asked = bytes((*packet.bytes[:_HEADER_BYTES], words, 0))
        if words and select([socket], [], [], 0)[0]:
            raise LinkError(
                f"{self.description}: bytes came that no request asked for, or the server closed"
                " the connection; restart litex_server, then open it again"
            )
        socket.settimeout(self._timeout)
        self._send_packet(socket, packet)

    def _receive(self, socket: Any, address_bytes: int) -> bytes:
        """Receive an answer. LiteX's client returns zeros if none comes, and checks none."""
        answer = self._receive_packet(_Until(socket, self._timeout), address_bytes)
        if answer == 0:
            raise LinkError(
                f"{self.description}: no answer within {self._timeout:g} s, or the server closed"
                " the connection; check the board, restart litex_server, then open it again"
            )
        packet: bytes = answer
        if packet[:_HEADER_BYTES] + packet[_COUNTS] != self._asked:
            raise LinkError(f"{self.description}: {_STRANGE}; open it again")
        return packet

    def _nobody(self, error: Exception) -> LinkError:
        return LinkError(
            f"{self.description}: no litex_server answers:"
            f" {getattr(error, 'strerror', None) or error}; start"
            f" litex_server --uart --uart-port PORT --bind-port {self._client.port}"
        )

    @contextmanager
    def _reached(self) -> Iterator[None]:
        if self.closed:
            raise LinkError(f"{self.description}: it is closed; open it again")
        try:
            yield
        except BaseException as error:
            # What is still on its way would be taken for the answer to something else.
            self.close()
            if isinstance(error, LinkError) or not isinstance(error, Exception):
                raise
            # LiteX's client takes apart whatever comes, and then raises whatever comes.
            reason = error if isinstance(error, OSError) else _STRANGE
            raise LinkError(f"{self.description}: {reason}; open it again") from error

    # --- the start --------------------------------------------------------------------------------

    def _start(self) -> None:
        """Check that the map is the SoC's, and start its memory."""
        build = self._register("build")
        if build != self._map.build:
            raise LinkError(
                f"{self.description}: the SoC is build {build:#010x}, the file of build"
                f" {self._map.build:#010x}; expected the csr.csv of the bitstream's own build"
            )
        self._start_memory(self._map.steps)
        first = self._map.memory
        self.write(first, np.array(_PROBES, "<u4"))
        got = self._read_words(first, len(_PROBES)).tolist()
        if got != list(_PROBES):
            shown = ", ".join(f"{x:#010x}" for x in got)
            raise LinkError(
                f"{self.description}: the memory at {first:#x} does not answer: {shown} came back;"
                " expected the words that were written"
            )

    def _start_memory(self, steps: list[_Step]) -> None:
        """Run LiteDRAM's steps, and give the memory to its controller."""
        if not steps:
            return
        injector = self._map.injector
        for register, value, address, bank, cycles in steps:
            with self._reached():
                injector("pi0_address").write(address)
                injector("pi0_baddress").write(bank)
                injector("control" if register == "control" else "pi0_command").write(value)
                if register == "command":
                    injector("pi0_command_issue").write(1)
            self._register("build")  # All of it has arrived.
            sleep(cycles / self._map.clock_hz)
        with self._reached():
            injector("control").write(_HARDWARE)


class _Until:
    """The end of ``socket`` that receives, until ``seconds`` have passed."""

    def __init__(self, socket: Any, seconds: float) -> None:
        self._socket = socket
        self._deadline = monotonic() + seconds

    def recv(self, size: int) -> bytes:
        """Receive up to ``size`` bytes. Raises ``OSError``, ``TimeoutError`` among others."""
        left = self._deadline - monotonic()
        if left <= 0:
            raise TimeoutError
        self._socket.settimeout(left)
        received: bytes = self._socket.recv(size)
        return received


class SocMap:
    """The names and addresses of ``csr.csv`` that the link needs.

    Raises ``LinkError`` for a map without the core ``name``, or with a core of another ABI.
    """

    def __init__(self, client: Any, csr: Path, name: str) -> None:
        self._client = client
        self._name = name
        try:
            self.build = int(self._constant("build"))
            version = int(self._constant("abi_version"))
            self.control: int = getattr(client.mems, f"{name}_control").base
            self.memory: int = getattr(client.mems, f"{name}_memory").base
            self.clock_hz = int(client.constants.config_clock_frequency)
            self.steps = _steps(str(client.constants.d.get(f"{name}_memory_start", "")))
            self.register("ev_status")
        except (AttributeError, ValueError) as error:
            raise LinkError(
                f"csr {printable(str(csr))}: not the map of a SoC with a core {printable(name)}:"
                f" {printable(str(error))}; expected the csr.csv that a build with add_bitlane"
                " writes"
            ) from error
        if version != ABI_VERSION:
            raise LinkError(
                f"csr {printable(str(csr))}: the core's ABI version is {version}; expected"
                f" {ABI_VERSION}; build the SoC with this version of bitlane"
            )

    def register(self, name: str) -> Any:
        """Return a register of the core's module."""
        return getattr(self._client.regs, f"{self._name}_{name}")

    def injector(self, name: str) -> Any:
        """Return a register of LiteDRAM's injector of commands."""
        return getattr(self._client.regs, f"sdram_dfii_{name}")

    def _constant(self, name: str) -> Any:
        return getattr(self._client.constants, f"{self._name}_{name}")


def _steps(text: str) -> list[_Step]:
    """Parse the start of the memory: words KIND:VALUE:ADDRESS:BANK:CYCLES."""
    steps = []
    for word in text.split():
        kind, value, address, bank, cycles = word.split(":")
        steps.append((kind, int(value), int(address), int(bank), int(cycles)))
    return steps


def _client(host: str, port: int, csr: Path) -> Any:
    try:
        with catch_warnings():
            # LiteX leaves the file open for the garbage collector.
            simplefilter("ignore", ResourceWarning)
            return RemoteClient(host=host, port=port, csr_csv=str(csr))
    except OSError as error:
        raise LinkError(
            f"csr {printable(str(csr))}: {error.strerror or error}; expected the csr.csv of the"
            " SoC's build"
        ) from error
    except (ValueError, KeyError, IndexError, UnicodeError) as error:
        raise LinkError(
            f"csr {printable(str(csr))}: not a csr.csv of LiteX: {printable(str(error))}; expected"
            " that of the SoC's build"
        ) from error


def open_link(url: str) -> LitexLink:
    """Open ``litex://HOST[:PORT][?OPTION=VALUE[&OPTION=VALUE]]``.

    The options are ``csr``, the file csr.csv of the SoC's build (default csr.csv); ``core``, the
    core's name in the SoC (default bitlane); and ``timeout``, seconds without an answer after
    which the link fails (default 10).

    Raises ``LinkError`` for a bad URL, and as `LitexLink` does.
    """
    parsed = DeviceUrl.parse(url)
    values: dict[str, Any] = {"csr": Path("csr.csv"), "core": "bitlane", "timeout": _TIMEOUT}
    values |= parsed.options(_OPTIONS)
    host, port = parse_target(url, parsed.target, _FORM, _PORT)
    return LitexLink(host, port, values["csr"], name=values["core"], timeout=values["timeout"])


_OPTIONS: Final[Options] = {
    "csr": (Path, "the file csr.csv of the SoC's build (default csr.csv)"),
    "core": (str, "the core's name in the SoC (default bitlane)"),
    "timeout": (
        parse_seconds,
        f"seconds without an answer, up to {LONGEST_SECONDS} (default {_TIMEOUT:g})",
    ),
}
