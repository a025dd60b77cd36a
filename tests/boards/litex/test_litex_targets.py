"""``bitlane build litex:TARGET``: targets whose bitstream a vendor's tool makes, and refusals."""

import re
import tempfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import SimpleNamespace
from typing import Any

import pytest

from bitlane.command_line.cli import DONE, UNUSABLE, main
from bitlane.errors import BitlaneError
from bitlane_boards.litex.targets import build_target
from bitlane_rtl.abi import ABI_VERSION
from support.boards.litex import PAGE

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:invalid escape sequence"),  # LiteX's.
    pytest.mark.filterwarnings("ignore::SyntaxWarning"),
]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that YoWASP's programs see, unlike those in ``/tmp``.

    HOME and the checkout may lie below ``/tmp``, as in a fresh clone with an empty HOME.
    """
    with tempfile.TemporaryDirectory(prefix="bitlane-", dir="/var/tmp") as made:
        yield Path(made)


def test_the_verilog_of_a_target_of_quartus_is_written_and_read(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its memory has 16 bits: LiteDRAM makes two words of a beat."""
    assert main(["build", "litex:terasic_de0nano", "-o", str(folder)]) == DONE
    printed = capsys.readouterr().out
    (gateware, script) = re.findall(r"next +cd (\S+) && sh (\S+)", printed)[0]
    assert (Path(gateware) / script).is_file()
    verilog = (Path(gateware) / "terasic_de0nano.v").read_text(encoding="utf-8")
    assert "bitlane_core bitlane_core(" in verilog
    csr = (folder / "csr.csv").read_text(encoding="utf-8")
    assert f"constant,bitlane_abi_version,{ABI_VERSION},," in csr
    assert re.search(
        r"^memory_region,bitlane_memory,0x40000000,33554432,cached\+linker$", csr, re.M
    )


@pytest.mark.parametrize(
    "options", [["--seed", "1"], ["--seeds", "1:3"], ["--ip", "10.0.0.1"], ["--workers", "2"]]
)
def test_options_of_our_boards_are_refused(
    options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["build", "litex:terasic_de0nano", *options]) == UNUSABLE
    complaint = f"bitlane: build: {options[0]} is for the project's own boards\n"
    assert capsys.readouterr().err == complaint


def test_a_folder_that_the_tools_do_not_see_is_refused() -> None:
    hidden = Path("/tmp/bitlane-not-made/build")
    with pytest.raises(BitlaneError, match=f"{hidden}: the tools see no files in /tmp; choose"):
        build_target("terasic_de0nano", hidden)
    assert not hidden.parent.exists()


def test_what_cannot_be_built_is_refused(folder: Path) -> None:
    for name, options, complaint in [
        ("nothing", (), "litex-boards has no target 'nothing'"),
        ("ulx3s", (), "has no target 'ulx3s'; did you mean radiona_ulx3s"),
        ("", (), "has no target ''; expected one like radiona_ulx3s"),
        ("../x", (), r"litex-boards has no target '\.\./x'"),
        ("digilent_arty", (), "A7DDRPHY must be trained by LiteX's BIOS"),
        ("terasic_de0nano", ("l2_size=8192",), "L2 cache would hide data from the core"),
        ("colorlight_i5", (), r"sdram has 0 pins of byte masks \(dm\) for 32 data pins"),
        ("colorlight_i5", ("nonsense=1",), "the target has no option 'nonsense'; choose "),
        ("radiona_ulx3s", ("sys_clk_frq=5e6",), "'sys_clk_frq'; did you mean sys_clk_freq"),
        ("radiona_ulx3s", ("",), "the target has no option ''; choose "),
        ("radiona_ulx3s", ("revision",), "option 'revision' has no value; expected revision=VAL"),
        ("radiona_ulx3s", ("revision=",), "option 'revision=' has no value; expected revision=V"),
        ("radiona_ulx3s", ("revision=1.7", "revision=2.0"), "option 'revision' is given twice"),
    ]:
        with pytest.raises(BitlaneError, match=complaint) as raised:
            build_target(name, folder, options)
        assert "\n" not in str(raised.value)
        assert not (folder / "gateware").exists()


def test_options_of_a_target_are_its_own_and_those_of_litex() -> None:
    from bitlane_boards.litex.targets import _names, _values

    target = import_module("litex_boards.targets.radiona_ulx3s").BaseSoC
    given = ["sys_clk_freq=40e6", "with_led_chaser=False", "cpu_type=None", "l2_size=0"]
    assert _values([*given, "uart_name=serial"], _names(target)) == {
        "sys_clk_freq": 40e6,
        "with_led_chaser": False,
        "cpu_type": None,
        "l2_size": 0,
        "uart_name": "serial",
    }


def _memories() -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Yield the memories with banks of all platforms of litex-boards, with the platforms' names."""
    from litex_boards import platforms

    for name in sorted(module.name for module in iter_modules(platforms.__path__)):
        for resources in vars(import_module(f"litex_boards.platforms.{name}")).values():
            if not isinstance(resources, list):
                continue
            for resource in resources:
                parts = {getattr(part, "name", "") for part in resource[2:]}
                if {"dq", "ba"} <= parts:
                    yield name, resource


def test_a_memory_without_masks_is_refused_on_every_platform() -> None:
    """LiteDRAM drops the byte strobes there, and a write of a byte writes a word."""
    from litex.build.generic_platform import ConstraintManager

    from bitlane_boards.litex.soc import _expect_masks

    refused = set()
    memories = list(_memories())
    for name, resource in memories:
        manager = ConstraintManager([resource], [])
        phy = SimpleNamespace(phytype="GENSDRPHY")
        controller = SimpleNamespace(settings=SimpleNamespace(phy=phy))
        soc = SimpleNamespace(
            platform=SimpleNamespace(constraint_manager=manager),
            sdram=SimpleNamespace(controller=controller),
        )
        with pytest.raises(BitlaneError, match="no pins of the memory of GENSDRPHY"):
            _expect_masks(soc)
        if hasattr(manager.request(resource[0], resource[1]), "dm"):
            _expect_masks(soc)
            continue
        with pytest.raises(BitlaneError, match=f"{resource[0]} has 0 pins of byte masks"):
            _expect_masks(soc)
        refused.add(name)
    assert len(memories) > 100
    for each in ("5a_75b", "5a_75e", "i5", "i5a_907", "i9plus"):
        assert f"colorlight_{each}" in refused
    page = PAGE.read_text(encoding="utf-8")
    # LiteX does not use the memory "dram" of the Analog Pocket, but "sdram".
    assert [name for name in sorted(refused) if f"`{name}`" not in page] == ["analog_pocket"]


def test_memory_that_a_core_cannot_have_is_refused() -> None:
    from litex_boards.targets.radiona_ulx3s import BaseSoC

    from bitlane_boards.litex import add_bitlane

    for size in (0, -64, 100, 1 << 26):
        soc = BaseSoC(cpu_type=None, with_uart=False, l2_size=0)
        with pytest.raises(BitlaneError, match=rf"^add_bitlane: memory_bytes.* {size}\b") as raised:
            add_bitlane(soc, memory_bytes=size)
        assert "\n" not in str(raised.value)
        assert "bitlane_memory" not in soc.bus.regions
