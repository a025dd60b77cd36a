"""``bitlane build litex:TARGET``: targets whose bitstream a vendor's tool makes, and refusals.

The report on LiteDRAM's read-modify-write, too: its program prints what the page shows.
"""

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import SimpleNamespace
from typing import Any

import pytest

from bitlane.command_line import DONE, main
from bitlane.errors import BitlaneError
from bitlane_boards.litex import build_target
from bitlane_rtl.abi import ABI_VERSION
from support.boards.litex import PAGE
from support.docs.pages import ROOT

pytestmark = [
    pytest.mark.any_face,
    pytest.mark.slow,
    pytest.mark.any_circuit,
    pytest.mark.reads("docs", "examples"),
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


@pytest.mark.parametrize(
    ("name", "masks", "size"),
    [("terasic_de0nano", True, 1 << 25), ("terasic_de10nano", False, 1 << 26)],
)
def test_the_verilog_of_a_target_of_quartus_is_written_and_read(
    name: str, masks: bool, size: int, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Their memories have 16 bits: LiteDRAM makes two words of a beat."""
    assert main(["build", f"litex:{name}", "-o", str(folder)]) == DONE
    printed = capsys.readouterr().out
    (gateware, script) = re.findall(r"next +cd (\S+) && sh (\S+)", printed)[0]
    assert (Path(gateware) / script).is_file()
    verilog = (Path(gateware) / f"{name}.v").read_text(encoding="utf-8")
    assert "bitlane_core bitlane_core(" in verilog
    assert ("bitlane_whole_beats_32 bitlane_whole_beats_32(" in verilog) != masks
    csr = (folder / "csr.csv").read_text(encoding="utf-8")
    assert f"constant,bitlane_abi_version,{ABI_VERSION},," in csr
    assert f"\nmemory_region,bitlane_memory,0x40000000,{size},cached+linker\n" in csr


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
        ("colorlight_i5", ("sdram_rate=1:2",), "words of 64 bits, of which a write of the bus has"),
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


def _of_page() -> list[tuple[str, str]]:
    """Return the targets that need options, and the options, as the page has them."""
    return re.findall(r"^\| `(\w+)` \| `(.*)` \|$", PAGE.read_text(encoding="utf-8"), re.M)


@pytest.mark.parametrize(("name", "options"), _of_page())
def test_the_options_of_the_page_give_a_soc_with_the_core(name: str, options: str) -> None:
    from bitlane_boards.litex.targets import _with_core

    soc = _with_core(name, options.split("&"))
    soc.finalize()
    verilog = str(soc.platform.get_verilog(soc, name="top"))
    assert "bitlane_whole_beats_32 bitlane_whole_beats_32(" in verilog
    assert set(soc.bus.masters) == {"etherbone" if "etherbone" in options else "uartbone"}


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


def _with_memory(resource: tuple[Any, ...] | None, phy: str = "GENSDRPHY") -> Any:
    """Return as much of a SoC with this memory as the search for masks looks at."""
    from litex.build.generic_platform import ConstraintManager

    manager = ConstraintManager([resource] if resource else [], [])
    if resource:
        manager.request(resource[0], resource[1])
    settings = SimpleNamespace(phy=SimpleNamespace(phytype=phy))
    return SimpleNamespace(
        platform=SimpleNamespace(constraint_manager=manager),
        sdram=SimpleNamespace(controller=SimpleNamespace(settings=settings)),
    )


def test_the_page_names_every_platform_whose_memory_has_no_masks() -> None:
    """LiteDRAM drops the byte strobes there, and a write of a byte writes a word."""
    from bitlane_boards.litex.soc import _has_masks

    memories = list(_memories())
    assert len(memories) > 100
    bare = {name for name, resource in memories if not _has_masks(_with_memory(resource))}
    page = PAGE.read_text(encoding="utf-8")
    # LiteX does not use the memory "dram" of the Analog Pocket, but "sdram".
    assert [name for name in sorted(bare) if f"`{name}`" not in page] == ["analog_pocket"]
    (eight,) = re.findall(r"\n\n- ((?:`\w+`,?\s+){8})", page)
    assert set(re.findall(r"\w+", eight)) == set(WITHOUT_MASKS) <= bare


def test_masks_that_are_unknown_are_refused() -> None:
    from litex.build.generic_platform import Pins, Subsignal

    from bitlane_boards.litex.soc import _has_masks

    with pytest.raises(BitlaneError, match=r"no pins of the memory of GENSDRPHY.* masks=False$"):
        _has_masks(_with_memory(None))
    assert _has_masks(_with_memory(None, "SDRAMPHYModel"))
    parts = [Subsignal("dq", Pins(16)), Subsignal("ba", Pins(2)), Subsignal("dm", Pins(1))]
    with pytest.raises(BitlaneError, match=r"sdram has 1 pins of byte masks \(dm\) for 16 data"):
        _has_masks(_with_memory(("sdram", 0, *parts)))


WITHOUT_MASKS = (
    "colorlight_5a_75b",
    "colorlight_5a_75e",
    "colorlight_i5",
    "colorlight_i5a_907",
    "colorlight_i9plus",
    "linsn_rv901t",
    "sipeed_tang_mega_138k",
    "terasic_de10nano",
)


def _soc_on(platform: Any, rate: str = "1:1", **options: Any) -> Any:
    """Return a SoC with the SDRAM of ``platform``; not all platforms have targets of their own."""
    from litedram.modules import AS4C32M16, M12L64322A
    from litedram.phy import GENSDRPHY, HalfRateGENSDRPHY
    from litex.gen import ClockDomain
    from litex.soc.integration.soc_core import SoCCore

    hz = 50e6
    soc = SoCCore(platform, hz, **{"cpu_type": None, "with_uart": False} | options)
    for clock in ("sys", "sys2x"):
        setattr(soc, f"cd_{clock}", ClockDomain(clock))
    pads = platform.request("sdram")
    soc.sdrphy = (HalfRateGENSDRPHY if rate == "1:2" else GENSDRPHY)(pads, hz)
    chip = (M12L64322A if len(pads.dq) == 32 else AS4C32M16)(hz, rate)
    soc.add_sdram("sdram", phy=soc.sdrphy, module=chip, l2_cache_size=0)
    return soc


@pytest.mark.parametrize("name", WITHOUT_MASKS)
def test_the_core_writes_whole_words_where_there_are_no_masks(name: str) -> None:
    from bitlane_boards.litex import add_bitlane

    platform = import_module(f"litex_boards.platforms.{name}").Platform()
    soc = _soc_on(platform)
    core = add_bitlane(soc)
    soc.finalize()
    verilog = str(platform.get_verilog(soc, name="top"))
    assert "bitlane_whole_beats_32 bitlane_whole_beats_32(" in verilog
    assert {Path(source).name for source, *_ in platform.sources} >= {"bitlane_whole_beats_32.v"}
    assert core.configuration.memory_bytes == soc.bus.regions["main_ram"].size


def test_a_soc_that_writes_less_than_words_without_masks_is_refused() -> None:
    from litex_boards.platforms import colorlight_i5

    from bitlane_boards.litex import add_bitlane
    from bitlane_rtl.configurations import full

    for rate, options, configuration, complaint in [
        ("1:1", {"cpu_type": "vexriscv"}, None, "store of a byte by vexriscv would overwrite"),
        ("1:2", {}, None, "words of 64 bits, of which a write of the bus has 32; expected words"),
        ("1:2", {"bus_data_width": 64}, full(32), "write of the bus has 32; expected words of"),
    ]:
        soc = _soc_on(colorlight_i5.Platform(), rate, **options)
        with pytest.raises(BitlaneError, match=complaint) as raised:
            add_bitlane(soc, configuration=configuration)
        assert "\n" not in str(raised.value)
        assert "bitlane_memory" not in soc.bus.regions


def test_memory_that_a_core_cannot_have_is_refused() -> None:
    from litex_boards.targets.radiona_ulx3s import BaseSoC

    from bitlane_boards.litex import add_bitlane

    for size in (0, -64, 100, 1 << 26):
        soc = BaseSoC(cpu_type=None, with_uart=False, l2_size=0)
        with pytest.raises(BitlaneError, match=rf"^add_bitlane: memory_bytes.* {size}\b") as raised:
            add_bitlane(soc, memory_bytes=size)
        assert "\n" not in str(raised.value)
        assert "bitlane_memory" not in soc.bus.regions


def test_the_program_prints_what_the_page_shows() -> None:
    """If this fails with a newer LiteDRAM, the fault may be mended there."""
    page = (ROOT / "docs" / "litedram_report.md").read_text(encoding="utf-8")
    program = ROOT / "examples" / "litedram" / "read_modify_write.py"
    assert f"    python {program.relative_to(ROOT)}\n" in page
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True)
    assert f"```text\n{done.stdout}```\n" in page
