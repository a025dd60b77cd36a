"""``bitlane run --report``: the text and the data of the page, without a browser."""

import re
from html import unescape
from pathlib import Path

import pytest

from bitlane.command_line import cli

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[2] / "examples"
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
