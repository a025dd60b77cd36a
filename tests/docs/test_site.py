"""The site: it builds without a warning, and shows what it is to show."""

import importlib
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest
from amaranth.lib.wiring import Component

import bitlane_rtl
from support.docs.pages import ROOT

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    words = ["--quiet", "--fail-on-warning", "--keep-going", "-b", "html", "-d", folder / "kept"]
    sphinx = [sys.executable, "-m", "sphinx", *words, ROOT / "docs", folder]
    built = subprocess.run(sphinx, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return folder


def test_every_page_is_in_the_navigation(site: Path) -> None:
    shown = set(re.findall(r'class="reference internal" href="([^"#]+)"', text(site, "index")))
    pages = {path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")}
    assert {path.with_suffix(".html").as_posix() for path in pages} - shown == {"index.html"}


INTERFACES = [
    "bitlane",
    "bitlane.array_api",
    "bitlane.dask",
    "bitlane.dml",
    "bitlane.onnx",
    "cppsim",
]


@pytest.mark.parametrize("name", INTERFACES)
def test_every_public_name_is_in_the_reference(site: Path, name: str) -> None:
    pages = "".join(path.read_text(encoding="utf-8") for path in (site / "api").glob("*.html"))
    module = importlib.import_module(name)
    public = [each for each in module.__all__ if not each.startswith("_")]
    own = {each for each in public if callable(getattr(module, each))}
    foreign = {each for each in own if getattr(module, each).__module__.startswith("numpy")}
    assert len(own) > 3
    described = set(re.findall(rf'id="(?:{re.escape(name)}|bitlane)\.(\w+)"', pages))
    assert own - foreign - described == set()


def test_every_component_is_in_the_reference(site: Path) -> None:
    described = set(re.findall(r'id="(bitlane_rtl\.[\w.]+)"', text(site, "api/bitlane_rtl")))
    components = set()
    for found in pkgutil.walk_packages(bitlane_rtl.__path__, "bitlane_rtl."):
        module = importlib.import_module(found.name)
        for thing in (getattr(module, name) for name in getattr(module, "__all__", ())):
            if isinstance(thing, type) and issubclass(thing, Component):
                components.add(f"{thing.__module__}.{thing.__qualname__}")
    assert len(components) > 40
    assert components - described == set()


def test_ports_are_in_the_reference_as_they_are_written(site: Path) -> None:
    page = re.sub(r"<[^>]+>", "", text(site, "api/bitlane_rtl"))
    assert " object at 0x" not in page
    assert re.search(r"complaint: Out\(Complaint\(\)\).*\s+The complaint about dropped", page)
    assert re.search(r"transfer\s*The transfer to execute", page)


def text(site: Path, page: str) -> str:
    return (site / f"{page}.html").read_text(encoding="utf-8")
