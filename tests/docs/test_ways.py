"""Calls take the way through the modules that a page shows, and changes that a page shows work.

The site of all pages builds without a warning.
"""

import importlib
import os
import pkgutil
import re
import secrets
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np
import pytest
from amaranth.hdl import Const, Module, Signal
from amaranth.lib.wiring import Component

import bitlane
import bitlane_rtl
import cppsim
from support.docs.pages import ROOT, blocks
from support.seeds import stride

Call = tuple[str, str]
"""A file relative to the top of the repository, and the qualified name of a function in it."""


def steps(page: str, heading: str) -> list[list[Call]]:
    """Return the functions that each numbered step below ``heading`` links."""
    text = (ROOT / page).read_text(encoding="utf-8")
    below = re.split(rf"^#+ {heading}\n", text, flags=re.M)[1]
    numbered = re.split(r"^\d+\. ", re.split(r"^##", below, flags=re.M)[0], flags=re.M)[1:]
    return [
        [
            ((ROOT / page).parent.joinpath(file).resolve().relative_to(ROOT).as_posix(), name)
            for name, file in re.findall(r"\[`([\w.]+)`\]\((\S+\.py)\)", step)
        ]
        for step in numbered
    ]


def calls(run: Callable[[], object]) -> list[Call]:
    """Return the project's functions that ``run`` calls, in the order of their first calls."""
    called: dict[int, CodeType] = {}

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            called[id(frame.f_code)] = frame.f_code

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    found: dict[Call, None] = {}
    for code in called.values():
        # The body of a class, which runs when its module is imported, is not optimized.
        if code.co_flags & CO_OPTIMIZED and code.co_filename.startswith(str(ROOT)):
            file = Path(code.co_filename).relative_to(ROOT).as_posix()
            found[file, re.sub(r"\.<locals>\..*|\.__init__$", "", code.co_qualname)] = None
    return list(found)


def test_a_call_of_the_host_takes_the_way_that_the_page_shows() -> None:
    # No other test has this shape, so that no plan of the call is cached.
    a = np.arange(2 * 7 * 3, dtype=np.uint8).reshape(2, 7, 3)
    with bitlane.open("sim:pysim?width=32&memory=4KiB&slots=2&ops=xor&lanes=8") as device:
        called = calls(lambda: device.bit_xor(a[::-1], a[:, :, ::-1]))
    compare(steps("docs/host.md", "The way of one call"), called)


def test_a_design_takes_the_way_through_cppsim_that_the_page_shows() -> None:
    m, count = Module(), Signal(8)
    # No cache has this design.
    step = secrets.randbits(60)
    m.d.sync += count.eq(count + Const(step, 60))

    async def testbench(ctx: Any) -> None:
        await ctx.tick().repeat(10)
        assert ctx.get(count) == 10 * step % 256

    def simulate() -> None:
        simulator = cppsim.Simulator(m, mode="always")
        simulator.add_clock(1e-6)
        simulator.add_testbench(testbench)
        simulator.run()

    compare(steps("cppsim/docs/how_it_works.md", "The way of a design"), calls(simulate))


def compare(walk: list[list[Call]], called: list[Call]) -> None:
    """Each step of ``walk`` begins no earlier in ``called`` than the step before it."""
    assert len(walk) > 5
    assert all(walk)
    assert {call for step in walk for call in step} - set(called) == set()
    begun = [min(called.index(call) for call in step) for step in walk]
    assert begun == sorted(begun), [walk[n][0] for n in range(len(walk))]


def test_a_walk_in_another_order_is_found() -> None:
    walk = [[("a.py", f"f{number}")] for number in range(6)]
    called = [step[0] for step in walk]
    compare(walk, called)
    with pytest.raises(AssertionError):
        compare(walk[::-1], called)
    with pytest.raises(AssertionError):
        compare(walk, called[1:])


PAGE = ROOT / "docs" / "extending.md"

TRY = """
import sys
import numpy as np
import bitlane
from bitlane_rtl.abi import Op
from bitlane_sim.campaigns.contract import Computation, compute
from support.oracle import computed

a, b = np.arange(256, dtype=np.uint8), np.arange(256, dtype=np.uint8)[:, None]
step = int(sys.argv[2])
pairs = np.random.default_rng(1).integers(0, 256, (2, 100), np.uint64)
no = np.zeros(100, bool)
how = Computation(np.full(100, int(Op.ANDN)), np.full(100, 8), no, no, no, no)
assert compute(how, *pairs).tolist() == [computed(Op.ANDN, 8, *x) for x in pairs.T.tolist()]
for name in ("numpy", "sim:pysim"):
    with bitlane.open(f"{name}?{sys.argv[1]}") as device:
        assert "ANDN" in {op.name for op in device.driver.geometry.ops}
        some = b[::64]
        assert np.array_equal(device.bit_andn(a[::step], some), a[::step] & ~some)
        x, y = (device.asarray(each.astype(np.uint32)) for each in (a[:64], a[64:128]))
        ones = np.asarray(device.bit_count(device.bit_andn(x, y)))
        assert np.array_equal(ones, np.bitwise_count(a[:64] & ~a[64:128]))
        assert np.array_equal(np.asarray(~device.bit_andn(x, y)), ~(np.asarray(x) & ~np.asarray(y)))
        wide = np.arange(16, dtype=np.uint64) << np.uint64(40)
        assert np.array_equal(device.bit_andn(wide, wide[::-1]), wide & ~wide[::-1])
        assert np.array_equal(device.bit_shift_right(wide, 3), wide >> np.uint64(3))
        assert np.array_equal(device.bit_xor(a, 0xF0), a ^ np.uint8(0xF0))
print("computed")
"""


@dataclass(frozen=True)
class Change:
    """``old`` lines of ``file`` become ``new`` ones."""

    file: str
    old: str
    new: str


def changes() -> Iterator[Change]:
    """Yield the changes that the page shows, in its order."""
    for block in blocks(PAGE):
        if block.language != "diff":
            continue
        for part in re.split(r"^--- ", block.text, flags=re.M)[1:]:
            file, _, hunks = part.partition("\n")
            for hunk in re.split(r"^@@\n", hunks, flags=re.M):
                lines = [(line[:1], line[1:]) for line in hunk.splitlines()]
                old, new = (
                    "".join(f"{text}\n" for mark, text in lines if mark in (" ", own))
                    for own in "-+"
                )
                yield Change(file, old, new)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the packages and their tests."""
    for folder in ("rtl", "cppsim", "sim", "host", "boards", "tests"):
        skipped = shutil.ignore_patterns("__pycache__", "*.so")
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=skipped)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", ["width=32&memory=4KiB&loops=2&slots=2", "width=64&memory=4KiB"]
)
def test_what_the_page_changes_makes_an_operation(options: str, tree: Path) -> None:
    for change in changes():
        file = tree / change.file
        text = file.read_text(encoding="utf-8")
        found = text.count(f"\n{change.old}")
        assert found == 1, f"{change.file} has these lines {found} times:\n{change.old}"
        file.write_text(text.replace(f"\n{change.old}", f"\n{change.new}"), encoding="utf-8")
    packages = [
        str(tree / folder)
        for folder in ("rtl", "cppsim/src", "sim", "host", "boards", "tests", "cppsim/tests")
    ]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(packages)}
    tried = subprocess.run(
        [sys.executable, "-c", TRY, options, str(stride(3))],
        cwd=tree,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert tried.stdout == "computed\n", tried.stderr


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    words = ["--quiet", "--fail-on-warning", "--keep-going", "-b", "html", "-d", folder / "kept"]
    sphinx = [sys.executable, "-m", "sphinx", *words, ROOT / "docs", folder]
    built = subprocess.run(sphinx, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return folder


@pytest.mark.slow
def test_every_page_is_in_the_navigation(site: Path) -> None:
    shown = set(re.findall(r'class="reference internal" href="([^"#]+)"', text(site, "index")))
    pages = {path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")}
    assert {path.with_suffix(".html").as_posix() for path in pages} - shown == {"index.html"}


INTERFACES = ["cppsim", "bitlane", *(f"bitlane.{x}" for x in ("array_api", "dask", "dml", "onnx"))]


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_ports_are_in_the_reference_as_they_are_written(site: Path) -> None:
    page = re.sub(r"<[^>]+>", "", text(site, "api/bitlane_rtl"))
    assert " object at 0x" not in page
    assert re.search(r"complaint: Out\(Complaint\(\)\).*\s+The complaint about dropped", page)
    assert re.search(r"transfer\s*The transfer to execute", page)


def text(site: Path, page: str) -> str:
    return (site / f"{page}.html").read_text(encoding="utf-8")
