"""``bitlane build litex:TARGET``: targets whose bitstream a vendor's tool makes, and refusals."""

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from bitlane.command_line.cli import DONE, UNUSABLE, main
from bitlane.errors import BitlaneError
from bitlane_boards.litex.targets import build_target
from bitlane_rtl.abi import ABI_VERSION

pytestmark = pytest.mark.slow


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that YoWASP's programs see, unlike those of temporary files."""
    build = Path.home() / ".cache" / "bitlane"
    build.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=build) as made:
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


def test_what_cannot_be_built_is_refused(folder: Path, tmp_path: Path) -> None:
    for name, options, complaint in [
        ("nothing", (), "litex-boards has no target 'nothing'"),
        ("../x", (), r"litex-boards has no target '\.\./x'"),
        ("digilent_arty", (), "A7DDRPHY must be trained by LiteX's BIOS"),
        ("terasic_de0nano", ("l2_size=8192",), "L2 cache would hide data from the core"),
    ]:
        with pytest.raises(BitlaneError, match=complaint) as raised:
            build_target(name, folder, options)
        assert "\n" not in str(raised.value)
    if tmp_path.is_relative_to("/tmp"):
        with pytest.raises(BitlaneError, match="the tools see no files in /tmp; choose another"):
            build_target("terasic_de0nano", tmp_path)
