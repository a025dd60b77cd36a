"""The GTKWave save file beside a waveform file groups streams and names enumeration values."""

import re
from pathlib import Path

import pytest

from bitlane.command_line import cli
from bitlane_rtl.abi import Op
from bitlane_sim.device.gtkwave import write_save_file

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[3] / "examples"

HEADER = """\
$timescale 1 fs $end
$scope module top $end
$var wire 4 ! op [3:0] $end
$var wire 1 " m_axi__awvalid $end
$var wire 1 # m_axi__awready $end
$var wire 32 $ m_axi__awaddr [31:0] $end
$var wire 1 % alone__valid $end
$scope module inner $end
$var wire 1 & i__ready $end
$var wire 8 ' i__payload__data [7:0] $end
$var wire 1 ( i__valid $end
$var string 1 ) i__payload__kind $end
$upscope $end
$upscope $end
$enddefinitions $end
#0
$var wire 1 * no__valid $end
"""


def groups(save: str) -> dict[str, list[str]]:
    """Return the signals in each group of a save file."""
    found: dict[str, list[str]] = {}
    for title, body in re.findall(r"^-(\S[^\n]*)\n(.*?)^-\1$", save, re.M | re.S):
        found[title] = re.findall(r"^(?:\+\{.*\} )?(\w\S+)$", body, re.M)
    return found


def test_a_stream_has_valid_and_ready_before_what_they_go_with(tmp_path: Path) -> None:
    waves = tmp_path / "w.vcd"
    waves.write_text(HEADER)
    write_save_file(waves)
    save = (tmp_path / "w.gtkw").read_text()
    assert groups(save) == {
        "top.m_axi__aw": [f"top.m_axi__aw{x}" for x in ("valid", "ready", "addr[31:0]")],
        "top.inner.i": [f"top.inner.i__{x}" for x in ("valid", "ready", "payload__data[7:0]")],
        "enumerations": ["top.op[3:0]"],
    }
    assert f'[dumpfile] "{waves}"' in save
    assert f"^1 {tmp_path / 'w.op.txt'}\n" in save
    names = dict(line.split() for line in (tmp_path / "w.op.txt").read_text().splitlines())
    assert names == {f"{op.value:x}": op.name for op in Op}


@pytest.mark.parametrize("evaluator", ["pysim", "compiled"])
def test_every_name_is_one_of_the_waveform_file(
    evaluator: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    waves = tmp_path / "w.vcd"
    device = f"sim:{evaluator}?memory=64KiB&width=32&ports=1&loops=1&ops=not"
    words = ["run", str(EXAMPLES / "bit_not.json"), "--device", device, "--vcd", str(waves)]
    assert cli.main(words) == cli.DONE, capsys.readouterr()
    found = groups((tmp_path / "w.gtkw").read_text())
    known = variables(waves.read_text().partition("$enddefinitions")[0])
    assert len(found) > 10
    for title, names in found.items():
        assert set(names) <= known, title
    buses = [title for title in found if title.rpartition(".")[2].startswith("m_axi__")]
    assert {title.rpartition("__")[2] for title in buses} >= {"aw", "w", "b", "ar", "r"}


def variables(header: str) -> set[str]:
    """Return the full names of all signals, with the ranges that GTKWave adds."""
    path: list[str] = []
    found = set()
    for line in header.splitlines():
        words = line.split()
        if words[0] == "$scope":
            path.append(words[2])
        elif words[0] == "$upscope":
            path.pop()
        elif words[0] == "$var":
            bits = int(words[2])
            found.add(".".join([*path, words[4] + (f"[{bits - 1}:0]" if bits > 1 else "")]))
    return found
