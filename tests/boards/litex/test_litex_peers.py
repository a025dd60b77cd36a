"""`litex://` opposite a server that is not litex_server, or out of step: typed errors in time.

The server here has words at addresses, and no LiteX. It answers the first reads rightly.
"""

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from time import sleep

import pytest

from bitlane.command_line import main
from bitlane.errors import LinkError
from bitlane.links import Link, open_link
from bitlane_rtl.abi import ABI_VERSION

pytestmark = [pytest.mark.slow, pytest.mark.any_face]

TIMEOUT = 0.5
BUILD, MEMORY = 7, 0x4000_0000
CSR = f"""\
csr_base,bitlane,0x00000000,,
csr_register,bitlane_ev_status,0x00000000,1,ro
csr_register,bitlane_build,0x0000000c,1,ro
constant,config_clock_frequency,50000000,,
constant,bitlane_abi_version,{ABI_VERSION},,
constant,config_csr_data_width,32,,
constant,config_bus_address_width,32,,
constant,bitlane_build,{BUILD},,
memory_region,bitlane_memory,{MEMORY:#x},33554432,cached
memory_region,bitlane_control,0x90000000,16384,io
memory_region,csr,0x00000000,65536,io
"""
HEAD = b"\x4e\x6f\x10\x44\0\0\0\0"
GREETING = b"CommUART:localhost:1234"
OPENING = 2
"""Reads that open a link: the build, and the memory."""

Answer = Callable[[bytes], list[bytes]]
"""Turn an answer into the parts that are sent, with a pause before each but the first."""


def answer_of(words: list[int]) -> bytes:
    data = b"".join(word.to_bytes(4, "big") for word in words)
    return HEAD + bytes((0, 15, len(words), 0)) + bytes(4) + data


class Server:
    """A server of one connection. From read ``sound`` on, ``answer`` turns what it sends."""

    def __init__(self, answer: Answer, sound: int, greeting: list[bytes], pause: float) -> None:
        self.sent = 0
        """Bytes of the last answer."""
        self.longest = 0
        """Words of the longest burst."""
        self.reads = 0
        self._answer, self._sound = answer, sound
        self._greeting, self._pause = greeting, pause
        self._words = {12: BUILD}
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._thread = Thread(target=self._run)
        self._thread.start()

    def close(self) -> None:
        with suppress(OSError):  # closing it would leave a thread that waits for a connection
            self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()

    def _run(self) -> None:
        with suppress(OSError), self._listener.accept()[0] as connection:
            self._send(connection, self._greeting)
            for count in range(1 << 30):
                answer = self._serve(connection)
                self._send(connection, self._answer(answer) if count >= self._sound else [answer])

    def _send(self, connection: socket.socket, parts: list[bytes]) -> None:
        self.sent = 0
        for number, part in enumerate(parts):
            sleep(self._pause if number else 0)
            connection.sendall(part)
            self.sent += len(part)

    def _serve(self, connection: socket.socket) -> bytes:
        """Execute requests up to the next read; return its answer."""
        while True:
            wcount, rcount = self._take(connection, 12)[10:]
            self.longest = max(self.longest, wcount, rcount)
            if wcount:
                base, *words = self._numbers(connection, 1 + wcount)
                self._words |= {base + 4 * k: word for k, word in enumerate(words)}
            if rcount:
                self.reads += 1
                _, *places = self._numbers(connection, 1 + rcount)
                return answer_of([self._words.get(place, 0) for place in places])

    def _numbers(self, connection: socket.socket, count: int) -> list[int]:
        data = self._take(connection, 4 * count)
        return [int.from_bytes(data[k : k + 4], "big") for k in range(0, len(data), 4)]

    @staticmethod
    def _take(connection: socket.socket, size: int) -> bytes:
        data = connection.recv(size, socket.MSG_WAITALL)
        if len(data) < size:
            raise ConnectionResetError
        return data


def words_in(answer: bytes) -> list[int]:
    return [int.from_bytes(answer[k : k + 4], "big") for k in range(16, len(answer), 4)]


def as_is(answer: bytes) -> list[bytes]:
    return [answer]


def drip(answer: bytes) -> list[bytes]:
    return [answer[k : k + 1] for k in range(len(answer))]


def hang_up(answer: bytes) -> list[bytes]:
    raise ConnectionAbortedError


ANSWERS: dict[str, Answer] = {
    "the end of the connection": hang_up,
    "zeros": lambda x: [bytes(len(x))],
    "ones": lambda x: [b"\xff" * 4000],
    "another protocol": lambda x: [b"HTTP/1.1 400 Bad Request\r\n\r\n" * 9],
    "another magic number": lambda x: [b"xo" + x[2:]],
    "another version": lambda x: [x[:2] + b"\x20" + x[3:]],
    "64-bit addresses": lambda x: [x[:3] + b"\x84" + x[4:] + bytes(4)],
    "a word too few": lambda x: [answer_of(words_in(x)[:-1])],
    "a word too many": lambda x: [answer_of([*words_in(x), 1])],
    "one word": lambda x: [answer_of([5])],
    "reads": lambda x: [x[:11] + b"\1" + x[12:] + bytes(8)],
    "a cut answer": lambda x: [x[:-2]],
    "nothing": lambda x: [],
    "a byte now and then": drip,
}


@contextmanager
def served(
    answer: Answer = as_is,
    sound: int = 0,
    greeting: list[bytes] | None = None,
    pause: float = TIMEOUT / 5,
) -> Iterator[Server]:
    server = Server(answer, sound, [GREETING] if greeting is None else greeting, pause)
    try:
        yield server
    finally:
        server.close()


@pytest.fixture
def options(tmp_path: Path) -> str:
    csr = tmp_path / "csr.csv"
    csr.write_text(CSR, encoding="utf-8")
    return f"?csr={csr}&timeout={TIMEOUT}"


def expect_closed(link: Link) -> None:
    assert link.closed
    with pytest.raises(LinkError, match="it is closed; open it again"):
        link.read(MEMORY, 4)


def test_the_server_itself_is_sound(options: str) -> None:
    with served() as server, open_link(f"litex://127.0.0.1:{server.port}{options}") as link:
        link.write(MEMORY + 1, bytes(range(250)))
        assert link.read(MEMORY + 1, 250).tobytes() == bytes(range(250))
        assert link.wait(0) is False


@pytest.mark.parametrize("greeting", [GREETING, b"CommUDP:localhost:1234"], ids=["UART", "UDP"])
def test_bytes_beside_those_written_are_kept(greeting: bytes, options: str) -> None:
    """Words are read before a part of one is written, in bursts that the bridge can take."""
    expected = bytearray(i * 7 % 251 for i in range(1200))
    with (
        served(greeting=[greeting]) as server,
        open_link(f"litex://127.0.0.1:{server.port}{options}") as link,
    ):
        link.write(MEMORY, expected)
        for start, size in ((5, 1), (6, 2), (7, 3), (8, 4), (13, 300), (0, 0), (1199, 1)):
            content = bytes(255 - i % 256 for i in range(size))
            link.write(MEMORY + start, content)
            expected[start : start + size] = content
            assert link.read(MEMORY + start, size).tobytes() == content
        assert link.read(MEMORY, 1200).tobytes() == bytes(expected)
        assert server.longest == (16 if b"UDP" in greeting else 255)


@pytest.mark.parametrize("read", [lambda x: x.wait(0), lambda x: x.read(MEMORY, 4)])
def test_the_soc_answers_after_as_many_words_as_may_be_on_the_way(
    read: Callable[[Link], object], options: str
) -> None:
    """Every answer tells that all words have arrived, whatever it answers."""
    with served() as server, open_link(f"litex://127.0.0.1:{server.port}{options}") as link:
        link.wait(0)
        link.write(MEMORY, bytes(4 * 4095))
        read(link)
        before = server.reads
        link.write(MEMORY, bytes(4 * 4095))
        assert server.reads == before
        link.write(MEMORY, bytes(4))
        assert server.reads == before + 1


def test_looks_at_the_interrupt_line_become_rarer(
    options: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served() as server, open_link(f"litex://127.0.0.1:{server.port}{options}") as link:
        pauses: list[float] = []
        monkeypatch.setattr("bitlane_boards.litex.link.sleep", pauses.append)
        monkeypatch.setattr("bitlane_boards.litex.link.monotonic", lambda: sum(pauses))
        assert not link.wait(0.1)
    expected = [0.0005, 0.001, 0.002, 0.004, 0.008, 0.016, 0.02, 0.02, 0.02, 0.0085]
    assert pauses == pytest.approx(expected)


@pytest.mark.parametrize("name", ANSWERS)
def test_a_strange_answer_is_one_error_in_time(name: str, options: str) -> None:
    size = 1000
    with served(ANSWERS[name], sound=OPENING) as server:
        link = open_link(f"litex://127.0.0.1:{server.port}{options}")
        link.write(MEMORY, bytes(size))
        with pytest.raises(LinkError, match=r"open it again$") as caught:
            link.read(MEMORY, size)
        expect_closed(link)
    assert "\n" not in str(caught.value)
    assert name != "a byte now and then" or server.sent < size / 4


@pytest.mark.parametrize("sound", range(OPENING))
@pytest.mark.parametrize("name", ANSWERS)
def test_a_strange_answer_at_the_start_is_one_line(
    name: str, sound: int, options: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with served(ANSWERS[name], sound) as server:
        assert main(["info", f"litex://127.0.0.1:{server.port}{options}"]) != 0
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "LiteX SoC at 127.0.0.1" in error
    assert "it is closed" not in error


def test_an_answer_that_comes_twice_is_not_taken_for_the_next_one(options: str) -> None:
    with served(lambda x: [x + x], sound=OPENING) as server:
        link = open_link(f"litex://127.0.0.1:{server.port}{options}")
        link.write(MEMORY, b"abcdefgh")
        assert link.read(MEMORY, 4).tobytes() == b"abcd"
        with pytest.raises(LinkError, match="bytes came that no request asked for"):
            link.read(MEMORY + 4, 4)
        expect_closed(link)


@pytest.mark.parametrize(
    "greeting",
    [
        *([], [b"CommUART" * 40], drip(b"CommUART:" + b"x" * 200), [b"\0\xff\n\x1b[2J"]),
        [b"HTTP/1.1 400 Bad Request"],
    ],
    ids=["none", "long", "slow", "strange", "another protocol"],
)
def test_a_strange_greeting_is_one_line_or_harmless(
    greeting: list[bytes], options: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with served(greeting=greeting, sound=1 << 30) as server:
        main(["info", f"litex://127.0.0.1:{server.port}{options}"])
    error = capsys.readouterr().err
    assert error.count("\n") <= 1
    assert error.isprintable() or error.rstrip("\n").isprintable()


@pytest.mark.parametrize("error", [KeyboardInterrupt, AssertionError, ValueError, MemoryError])
def test_an_interrupted_call_closes_the_link(error: type[BaseException], options: str) -> None:
    def raise_it(*_: object) -> None:
        raise error

    with served() as server:
        link = open_link(f"litex://127.0.0.1:{server.port}{options}")
        vars(link)["_client"].receive_packet = raise_it
        with pytest.raises((KeyboardInterrupt, LinkError)):
            link.read(MEMORY, 4)
        expect_closed(link)
