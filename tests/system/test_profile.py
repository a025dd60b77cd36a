"""``bitlane run --trace`` and ``--report``: the data of the circuit's counters."""

import json
import re
from html import unescape
from pathlib import Path

import pytest

from bitlane import dml
from bitlane.command_line import DONE, cli
from bitlane.driver import RecordingDriver
from bitlane.links import open_link
from bitlane.model_file import load_model, prepare, run
from bitlane.profile.activity import bursts, busy_spans, ports, recorded_commands, stalls
from support.command_line import CommandLine

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[2] / "examples"
LEVEL = dml.FeatureLevel.LEVEL_4_1
COUNTED = {"read data awaited", "read data not taken", "write data not taken"}
"""Causes that the circuit's counters count as stalls."""


@pytest.mark.parametrize("name", ["hamming", "strided"])
def test_beats_and_stalls_are_those_that_the_circuit_counts(name: str) -> None:
    """The circuit's counters observe the ports from inside, independently of the recorder."""
    model = load_model(EXAMPLES / f"{name}.json", LEVEL)
    url = "sim:pysim?memory=64KiB&loops=2&record=9999&stall=0.3&seed=3"
    with (
        open_link(url) as link,
        RecordingDriver(link) as driver,
        dml.Device(driver, LEVEL) as device,
    ):
        assert run(prepare(model, device), print)
        counters, recording = driver.counters(), link.recording
    assert recording is not None
    assert len(recorded_commands(recording)) == len(driver.commands)
    counted = sum(end - first for first, end in busy_spans(recording))
    assert counted == counters["BUSY_CYCLES"] > 0
    found = set[str]()
    for port, letter in zip(ports(recording), "ABY", strict=True):
        beats = sum(burst.beats for burst in bursts(recording, port))
        assert beats == counters[f"{letter}_BEATS"] > 0
        lost = [x for x in stalls(recording, port) if x.cause in COUNTED]
        assert sum(x.end - x.first for x in lost) == counters[f"{letter}_STALLS"]
        found |= {x.cause for x in lost}
    assert found


@pytest.mark.parametrize(
    ("name", "dispatches"), [("bit_xor", ["xor"]), ("hamming", ["differ", "count"])]
)
def test_the_report_and_the_command_line_have_one_figure(
    name: str, dispatches: list[str], tmp_path: Path, cli: CommandLine
) -> None:
    file = tmp_path / "report.html"
    device = "sim:pysim?memory=64KiB&loops=2&stall=0.2&seed=1"
    words = ["run", str(EXAMPLES / f"{name}.json"), "--device", device, "--report", str(file)]
    ran = cli(*words)
    assert ran.code == DONE
    printed = re.findall(r"median \(CPU\), (\d+) cycles", ran.out)
    summary = file.read_text(encoding="utf-8").partition('<section id="summary">')[2]
    rows = re.findall(
        r"<td>([^<]*)</td><td class=number>\d+</td><td class=number>([\d,]+)</td>",
        summary.partition("</section>")[0],
    )
    shown = {unescape(row): int(cycles.replace(",", "")) for row, cycles in rows}
    assert len(printed) == len(dispatches)
    assert {sum(shown[each] for each in dispatches)} == set(map(int, printed))


def test_a_trace_that_is_too_long_is_cut_and_said_so(tmp_path: Path, cli: CommandLine) -> None:
    file = tmp_path / "t.json"
    device = "sim:pysim?memory=64KiB&loops=2&record=5"
    words = ["run", str(EXAMPLES / "bit_not.json"), "--device", device, "--trace", str(file)]
    ran = cli(*words)
    assert ran.code == DONE
    assert "Check 'not': 4 bytes equal" in ran.out
    assert ran.err.startswith("bitlane: cut: the recording had no room for what came after")
    assert json.loads(file.read_text())["otherData"]["cut"] in ran.err


# --- the report -----------------------------------------------------------------------------------


DEVICE = "sim:pysim?memory=64KiB&loops=2&stall=0.2&seed=1"

ADDRESS = re.compile(r"""(?:src|href)=["']?([^"'>\s]+)""")


def write(example: str, path: Path, device: str = DEVICE) -> str:
    """Run ``example`` and return its report."""
    words = ["run", str(EXAMPLES / example), "--device", device, "--report", str(path)]
    assert cli.main(words) == cli.DONE
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write("hamming.json", tmp_path_factory.mktemp("report") / "hamming.html")


def test_the_page_names_no_other_file(report: str) -> None:
    markup = re.sub(r"(?s)(<script[^>]*>).*?</script>", r"\1", report)
    assert markup.count("<script") > 1
    assert ADDRESS.findall(markup) == []


def test_the_buttons_show_dispatches_in_order_and_the_whole_run(report: str) -> None:
    found = re.findall(r'<button[^>]* data-first="(\d+)" data-end="(\d+)"', report)
    *dispatches, whole = [(int(first), int(end)) for first, end in found]
    assert len(dispatches) == 3, "initialization, differ, count"
    cycles = [cycle for dispatch in dispatches for cycle in dispatch]
    assert cycles == sorted(cycles)
    assert whole[0] < cycles[0]
    assert cycles[-1] < whole[1]


def test_it_tells_of_every_command_and_every_stall(report: str) -> None:
    text = unescape(report)
    for command in ("0 COPY, 8 bits, run 8, fence", "1 XOR, 64 bits, run 4", "2 COUNT, 64 to 8"):
        assert text.count(command) == 1
    assert text.count('<svg class="walk"') == 2 + 3 + 2
    for cause in ("write data awaited", "write data not taken"):
        assert f"</span>{cause}</td>" in text


def test_the_page_of_a_board_that_is_predicted_shows_commands_alone(tmp_path: Path) -> None:
    page = write("hamming.json", tmp_path / "predicted.html", "numpy?board=ulx3s")
    text = unescape(page)
    assert "no circuit. Predicted, not measured: 1.01 us of circuit (63 cycles" in text
    assert "The cycles are predicted; no port of a circuit was watched." in text
    cells = re.findall(r"<tr><td>(\w+)</td><td class=number>1</td><td class=number>(\d+)<", page)
    assert [name for name, _ in cells] == ["initialization", "differ", "count"]
    assert sum(int(cycles) for _, cycles in cells) == 63
    assert "Why ports stood still" not in text


def test_a_cut_is_told(tmp_path: Path) -> None:
    text = write("bit_not.json", tmp_path / "cut.html", f"{DEVICE}&record=20")
    assert "cut: the recording had no room for what came after cycle " in unescape(text)
