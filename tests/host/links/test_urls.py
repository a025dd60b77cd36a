"""URLs find their links; of a wrong one the error is one printable line, and nothing is opened."""

import socket
from errno import ENOENT
from importlib import metadata
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest
import serial
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

import bitlane
from bitlane.errors import BitlaneError, LinkError
from bitlane.links import (
    ENTRY_POINT_GROUP,
    WITHOUT_CIRCUIT,
    BytesLike,
    DeviceUrl,
    Link,
    Options,
    open_link,
    udp,
)
from bitlane_sim.device import link as simulator_link
from support.host.model_link import ModelLink
from support.seeds import examples


class Reached(Exception):
    """The URL is right: a port, a socket or a simulator would be opened."""


def reach(*_: object, **__: object) -> NoReturn:
    raise Reached


def no_port(path: str, baud: int, **_: object) -> NoReturn:
    """Fail as pyserial's ``Serial`` does for a port that is not there."""
    try:
        Path(path).stat()
    except FileNotFoundError as error:
        raise serial.SerialException(ENOENT, f"could not open port {path}: {error}") from error
    except OSError as error:
        raise serial.SerialException(f"could not open port {path}: {error}") from error
    raise Reached


def no_name(host: str, *_: object) -> NoReturn:
    host.encode("idna")
    raise socket.gaierror(-2, "Name or service not known")


@pytest.fixture(autouse=True)
def closed_world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Let no URL open anything."""
    found = metadata.entry_points(group=ENTRY_POINT_GROUP)
    monkeypatch.setattr(metadata, "entry_points", lambda **_: found)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(serial, "Serial", no_port)
    monkeypatch.setattr(socket, "getaddrinfo", no_name)
    monkeypatch.setattr(udp, "DatagramSocket", reach)
    monkeypatch.setattr(simulator_link, "Simulator", reach)


# No slash: files of this computer stay out of the test.
_TEXTS = "1 0 -1 1e30 1e400 nan inf -0.0 1e-300 0x10 1_0 \uff19 1GiB 1e9GiB %00 %0a %ff 127.0.0.1"
_OPTIONS = (
    "timeout takeover baud width ports memory loops slots ops modes lanes search latency stall seed"
    " vcd record nosuch  \x1b[2J"
)
_STARTS = (
    "sim sim: sim:pysim sim:compiled serial: serial:/dev/ udp: udp:// udp://localhost: usb:  \0"
    " udp:/// SIM"
)
PIECES = st.one_of(
    st.text(
        "\0\a\b\t\n\r\x1b[2J:;?&=%+#@ .,-_0123456789exinfa\x7f\x85\u2028\udc80\ud800é", max_size=12
    ),
    st.text(max_size=8).filter(lambda text: "/" not in text),
    st.sampled_from([*_TEXTS.split(" "), "all", "9" * 5000, "%1b]0;x%07"]),
)
NAMES = st.sampled_from(_OPTIONS.split(" "))
STARTS = st.sampled_from([*_STARTS.split(" "), " sim"])
OPTIONS = st.lists(st.tuples(NAMES, PIECES), max_size=3).map(
    lambda pairs: "&".join(f"{name}={value}" for name, value in pairs)
)
URLS = st.one_of(
    st.builds("{}{}?{}".format, STARTS, PIECES, OPTIONS),
    st.builds("{}?{}".format, STARTS, OPTIONS),
    st.text(max_size=30).filter(lambda text: "/" not in text),
)


@examples(10)
@given(URLS)
@example("udp://127.0.0.1?timeout=1e30")
@example("serial:a?timeout=1e7")
@example("serial:a\0b")
@example("serial:\ud800")
@example("serial:\x1b]0;x\a")
@example("serial:/dev/\x1b[2J\n?baud=9600")
@example("sim?vcd=\x1b[2J%2fb")
@example("sim?vcd=a%00b")
@example("udp://a\nb")
def test_a_hostile_url_is_one_printable_line(url: str) -> None:
    for opener in (bitlane.open, open_link):
        with pytest.raises((BitlaneError, Reached)) as caught:
            opener(url)
        assert str(caught.value).isprintable(), repr(str(caught.value))
    assert not list(Path().iterdir())


# URL, and a part of the message.
WRONG = [
    ("usb:1", "no link has the scheme 'usb'; installed: "),
    ("", "no link has the scheme ''"),
    *(
        (url, f"device {url!r}: no address; expected udp://ADDRESS[:PORT], as udp://192.168.1.50")
        for url in ("udp:", "udp://", "udp:192.168.1.50", "udp://127.0.0.1/1", "udp://[::1]:5")
    ),
    *(
        (f"udp://127.0.0.1:{port}", f"port is '{port}'; expected 1 to 65535")
        for port in ("", "0", "65536", "-1", "9" * 5000)
    ),
    ("udp://127.0.0.1?baud=1", "no option 'baud'; choose timeout, takeover"),
    ("udp://127.0.0.1?takeover=yes", "option takeover is 'yes'; expected 0 or 1, to end"),
    ("udp://127.0.0.1?keepalive=no", "option keepalive is 'no'; expected 0 or 1, to keep the"),
    *((f"udp://{host}", "has no IPv4 address: ") for host in ("a..b", "x" * 300, "\udc80")),
    ("udp://no-board", "'no-board' has no IPv4 address: Name or serv"),
    *(
        (f"{url}?timeout={text}", f"option timeout is '{text}'; expected seconds of silence, up to")
        for url in ("udp://127.0.0.1", "serial:/dev/ttyUSB1")
        for text in ("soon", "1e30", "1000001", "inf", "nan", "0", "-1")
    ),
    *(
        (f"serial:p?baud={text}", f"option baud is '{text}'; expected bits a second, a whole")
        for text in ("fast", "", "0", "-9600", "1e6")
    ),
    ("serial:p?speed=1", "device 'serial:p?speed=1': no option 'speed'; choose baud, timeout"),
    ("serial:p?baud=9600&parity=even", "no option 'parity'"),
    ("serial:p?baud=9600&baud=19200", "option baud occurs twice; expected once"),
    *(
        (url, "no port; expected serial:PORT; serial ports found: ")
        for url in ("serial", "serial:", "serial:?baud=9600")
    ),
    *((url, "expected the name of a serial port") for url in ("serial:a\0b", "serial:\ud800b")),
]


@pytest.mark.parametrize(("url", "message"), WRONG)
def test_a_url_that_is_wrong(url: str, message: str) -> None:
    with pytest.raises(BitlaneError) as caught:
        open_link(url)
    assert message in str(caught.value)
    assert str(caught.value).isprintable()
    # A port that no system has is not blamed on the baud rate.
    assert "baud" in message or "baud" in url or "baud" not in str(caught.value)


# --- parts and options of a URL -------------------------------------------------------------------


KNOWN: Options = {"width": (int, "a width in bits"), "vcd": (str, "a file")}


@pytest.mark.parametrize(
    ("text", "scheme", "target", "query"),
    [
        ("sim", "sim", "", ""),
        ("sim:pysim", "sim", "pysim", ""),
        ("sim?vcd=a:b", "sim", "", "vcd=a:b"),
        ("serial:/dev/x:3?baud=9600&timeout=1", "serial", "/dev/x:3", "baud=9600&timeout=1"),
        ("", "", "", ""),
    ],
)
def test_a_url_has_a_scheme_a_target_and_options(
    text: str, scheme: str, target: str, query: str
) -> None:
    url = DeviceUrl.parse(text)
    assert (url.text, url.scheme, url.target, url.query) == (text, scheme, target, query)


def test_options_are_read() -> None:
    assert DeviceUrl.parse("sim?width=32&vcd=a%26b").options(KNOWN) == {"width": 32, "vcd": "a&b"}
    assert DeviceUrl.parse("sim").options(KNOWN) == {}
    for query, complaint in [
        ("depth=3", "no option 'depth'; choose width, vcd"),
        ("width=32&width=64", "option width occurs twice; expected once"),
        ("width=x", "option width is 'x'; expected a width in bits"),
    ]:
        with pytest.raises(LinkError, match=complaint):
            DeviceUrl.parse(f"sim?{query}").options(KNOWN)


@pytest.mark.parametrize("start", ["sim", "sim?", "sim?width=32", "sim:pysim?width=32"])
def test_an_added_option_is_read_again(start: str) -> None:
    file = "a b&c?\udcff"
    url = DeviceUrl.parse(DeviceUrl.parse(start).with_option("vcd", file))
    assert url.has_option("vcd")
    assert url.has_option("width") == ("width" in start)
    assert url.options(KNOWN)["vcd"] == file
    assert url.text.startswith(start.removesuffix("?"))


def test_only_a_simulator_is_simulated() -> None:
    DeviceUrl.parse("sim:pysim").expect_simulated("--vcd")
    with pytest.raises(BitlaneError, match=r"--vcd: serial:x is not a simulated device; expected"):
        DeviceUrl.parse("serial:x").expect_simulated("--vcd")


# --- links of schemes ----------------------------------------------------------------------------


def fake_opener(url: str) -> ModelLink:
    link = ModelLink()
    link.description = url
    return link


def install(monkeypatch: pytest.MonkeyPatch, **links: str) -> None:
    entries = [EntryPoint(name, value, ENTRY_POINT_GROUP) for name, value in links.items()]
    monkeypatch.setattr(metadata, "entry_points", lambda **_: entries)


def test_the_scheme_finds_the_link(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, model=f"{__name__}:fake_opener")
    monkeypatch.setattr(EntryPoint, "load", lambda self: fake_opener)
    for url in ("model:/dev/x:3", "model?width=64&vcd=a:b"):
        assert open_link(url).description == url


def test_an_unknown_scheme_names_those_that_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    for links, message in (({"sim": "x:y", "serial": "x:y"}, "serial, sim"), ({}, "none")):
        install(monkeypatch, **links)
        with pytest.raises(LinkError, match=f"the scheme 'usb'; installed: {message}"):
            open_link("usb:1")


def test_an_exchange_is_its_writes_and_then_its_reads() -> None:
    link = ModelLink()
    base = link.memory_base
    results = link.exchange([(base, b"abc"), (base + 8, b"de")], [(base + 8, 2), (base, 4)])
    assert [result.tobytes() for result in results] == [b"de", b"abc\0"]
    assert link.exchange([], []) == []
    parts = [("write", 0, 3), ("write", 8, 2), ("read", 8, 2), ("read", 0, 4)]
    assert link.traffic == [(kind, base + at, size) for kind, at, size in parts]


class Silent(Link):
    """A link with the defaults of every link."""

    def read(self, address: int, size: int) -> NDArray[np.uint8]:
        raise NotImplementedError

    def write(self, address: int, data: BytesLike) -> None:
        raise NotImplementedError

    def wait(self, timeout: float) -> bool:
        raise NotImplementedError

    def close(self) -> None:
        self.closed = True


def test_a_link_is_local_open_and_without_a_simulated_clock_unless_it_says_so() -> None:
    with Silent() as link:
        assert (link.remote, link.closed, link.slow) == (False, False, False)
        assert (link.cycles, link.recording, link.memory_view) == (None, None, None)


def test_a_link_without_its_packages_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, sim="bitlane_without_such_a_module:open_link")
    advice = (
        r"needs the Python package bitlane_without_such_a_module, .* 'bitlane\[sim\]' brings it"
    )
    with pytest.raises(LinkError, match=f"{advice}; {WITHOUT_CIRCUIT}$"):
        open_link("sim")
    install(monkeypatch, serial="bitlane_without_such_a_module:open_link")
    with pytest.raises(LinkError, match=r"'bitlane\[serial\]' brings it$"):
        open_link("serial:/dev/ttyUSB1")


def test_a_folder_with_the_name_of_a_lacking_package_is_not_taken_for_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Python finds the folder ``cppsim`` of a clone, but the package is in ``cppsim/src``."""
    (tmp_path / "without_a_package").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    install(monkeypatch, sim="without_a_package.part:open_link")
    with pytest.raises(LinkError, match="needs the Python package without_a_package, which is not"):
        open_link("sim")


def test_a_link_of_another_project_without_its_packages_names_that_project(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.undo()
    folder = tmp_path / "usb_lanes-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: usb-lanes\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text("[bitlane.links]\nusb = bitlane_without_it:open\n")
    monkeypatch.syspath_prepend(tmp_path)
    expected = "bitlane_without_it, .*; expected all that usb-lanes needs, whose link it is$"
    with pytest.raises(LinkError, match=expected):
        open_link("usb:1")
