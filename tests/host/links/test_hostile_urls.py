"""URLs are parsed; of a hostile one the error is one printable line, and nothing is opened."""

import socket
from errno import ENOENT
from pathlib import Path
from typing import NoReturn

import pytest
import serial
from hypothesis import example, given
from hypothesis import strategies as st

import bitlane
from bitlane.errors import BitlaneError, LinkError
from bitlane.links import link as link_module
from bitlane.links import udp
from bitlane.links.link import open_link
from bitlane.links.url import DeviceUrl, Options
from bitlane_sim.device import link as simulator_link
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
    found = link_module._installed()
    monkeypatch.setattr(link_module, "_installed", lambda: found)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(serial, "Serial", no_port)
    monkeypatch.setattr(socket, "getaddrinfo", no_name)
    monkeypatch.setattr(udp, "DatagramSocket", reach)
    monkeypatch.setattr(simulator_link, "Simulator", reach)


# No slash: files of this computer stay out of the test.
PIECES = st.one_of(
    st.text(
        "\0\a\b\t\n\r\x1b[2J:;?&=%+#@ .,-_0123456789exinfa\x7f\x85\u2028\udc80\ud800é", max_size=12
    ),
    st.text(max_size=8).filter(lambda text: "/" not in text),
    st.sampled_from(
        [
            "1",
            "0",
            "-1",
            "1e30",
            "1e400",
            "nan",
            "inf",
            "-0.0",
            "1e-300",
            "0x10",
            "1_0",
            "\uff19",
            "9" * 5000,
            "1GiB",
            "1e9GiB",
            "all",
            "%00",
            "%0a",
            "%ff",
            "%1b]0;x%07",
            "127.0.0.1",
        ]
    ),
)
NAMES = st.sampled_from(
    [
        "timeout",
        "takeover",
        "baud",
        "width",
        "ports",
        "memory",
        "loops",
        "slots",
        "ops",
        "modes",
        "lanes",
        "search",
        "latency",
        "stall",
        "seed",
        "vcd",
        "record",
        "nosuch",
        "",
        "\x1b[2J",
    ]
)
STARTS = st.sampled_from(
    [
        "sim",
        "sim:",
        "sim:pysim",
        "sim:compiled",
        "serial:",
        "serial:/dev/",
        "udp:",
        "udp://",
        "udp://localhost:",
        "usb:",
        "",
        "\0",
        "udp:///",
        "SIM",
        " sim",
    ]
)
OPTIONS = st.lists(st.tuples(NAMES, PIECES), max_size=3).map(
    lambda pairs: "&".join(f"{name}={value}" for name, value in pairs)
)
URLS = st.one_of(
    st.builds("{}{}?{}".format, STARTS, PIECES, OPTIONS),
    st.builds("{}?{}".format, STARTS, OPTIONS),
    st.text(max_size=30).filter(lambda text: "/" not in text),
)


@examples(20)
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


@pytest.mark.parametrize("url", ["serial:a\0b", "serial:\ud800b"])
def test_a_port_that_no_system_has_is_not_blamed_on_the_baud_rate(url: str) -> None:
    with pytest.raises(BitlaneError, match="expected the name of a serial port") as caught:
        open_link(url)
    assert "baud" not in str(caught.value)


@pytest.mark.parametrize("url", ["udp://127.0.0.1", "serial:/dev/ttyUSB1"])
@pytest.mark.parametrize("text", ["1e30", "1000001", "inf", "nan", "0", "-1"])
def test_a_timeout_has_bounds(url: str, text: str) -> None:
    with pytest.raises(BitlaneError, match=f"option timeout is '{text}'; expected seconds of"):
        open_link(f"{url}?timeout={text}")


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
