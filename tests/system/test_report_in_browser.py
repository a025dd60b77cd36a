"""``bitlane run --report``: the page in a real browser, light, dark and narrow."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bitlane.command_line import cli
from support.browser import Page, opened

pytestmark = pytest.mark.deep

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
