"""Parsing the URL of a device, reading its options, and adding one."""

import pytest

from bitlane.errors import BitlaneError, LinkError
from bitlane.links.url import DeviceUrl, Options

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
