"""A design from the cache is simulated like one that has just been compiled, and is not lowered."""

import gc
import os
import random
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from amaranth.hdl import Assert, Cover, Format, Fragment, Module, Print, Signal
from amaranth.lib.memory import Memory

import cppsim
from cppsim import FallbackWarning, designs, engine
from cppsim.compiling import CACHE, CacheWarning, find_compiler
from cppsim.errors import SimulationError
from cppsim.testing import EXECUTORS, Bench, random_machine
from support.processes import succeed
from support.recomputed import expect_same
from support.seeds import seeds
from support.small import counter, foreign


@pytest.fixture
def unwritten(monkeypatch: pytest.MonkeyPatch, fresh_cache: Path) -> Callable[[], None]:
    """Return a function from which on a design that is not in the cache fails the test."""

    def start() -> None:
        monkeypatch.setattr(engine, "built", designs.built)
        monkeypatch.setattr(designs, "written", lambda *_: pytest.fail("a design is lowered"))

    return start


class Shown:
    """A design with all that a simulation shows."""

    def __init__(self, name: str) -> None:
        self.module = m = Module()
        self.count, self.low = Signal(8, name=name), Signal(4, name=f"{name}_low")
        m.submodules.memory = self.memory = Memory(shape=8, depth=4, init=[1, 2, 3])
        port = self.memory.write_port()
        m.d.comb += [port.addr.eq(2), port.en.eq(1), port.data.eq(self.count)]
        m.d.comb += self.low.eq(self.count[:4] + 1)
        m.d.sync += [self.count.eq(self.count + 1), Print(Format("{:02x}", self.count))]
        m.d.sync += Cover(self.count == 2, "two")
        m.d.comb += Print("low", self.low)

    def run(self) -> list[Any]:
        """Return what a testbench sees of it, its prints, and its waveforms as text."""
        sim = Bench(EXECUTORS["always"])

        async def work(ctx: Any) -> None:
            for _ in range(3):
                await ctx.tick().sample(self.low)
                sim.seen.append((ctx.get(self.low), ctx.get(self.memory.data[2])))
            await ctx.tick().until((self.low ^ self.count[:4]) == 7)
            sim.seen.append(ctx.get(self.count + 1))

        sim.run(self.module, work, traces=())
        return [*sim.seen[:-1], str(sim.seen[-1])]


def test_a_design_from_the_cache_shows_the_same(unwritten: Callable[[], None]) -> None:
    first = Shown("count").run()
    unwritten()
    again = Shown("other").run()
    assert again[:-1] == first[:-1]
    assert again[-1] == first[-1].replace("count", "other")
    assert "Coverage hit at" in first[-2]


def test_a_check_that_has_moved_fails_at_its_line(unwritten: Callable[[], None]) -> None:
    def failing(lines: int) -> str:
        m, count = counter()
        code = compile(
            "\n" * lines + "check = Assert(count < 2, 'too many')", f"f{lines}.py", "exec"
        )
        names: dict[str, Any] = {"Assert": Assert, "count": count}
        exec(code, names)
        m.d.sync += names["check"]
        simulator = cppsim.Simulator(m)
        simulator.add_clock(1e-6)
        with pytest.raises(AssertionError, match="too many") as raised:
            simulator.run_until(9e-6)
        frame = raised.traceback[-1]
        return f"{Path(str(frame.path)).name}:{frame.lineno + 1}"

    assert failing(3) == "f3.py:4"
    unwritten()
    assert failing(7) == "f7.py:8"


def test_an_entry_may_go_while_its_design_runs(
    unwritten: Callable[[], None], fresh_cache: Path
) -> None:
    Shown("count").run()
    unwritten()
    design = Shown("count")
    sim = Bench(EXECUTORS["always"])
    work = sim.awaits(1, lambda ctx: ctx.tick().until(design.count + design.low == 9), design.count)
    simulator = sim.simulator(design.module, work)
    CACHE.clear()
    simulator.run()
    assert sim.seen[0][2] == 5


def _damage(path: Path, choose: random.Random) -> str:
    """Damage ``path``, a file of an entry, in one of many ways; return which."""
    content = bytearray(path.read_bytes())
    kind = choose.choice(["flip", "cut", "insert", "other", "remove", "folder", "unreadable"])
    if kind == "flip" and content:
        content[choose.randrange(len(content))] ^= 1 << choose.randrange(8)
    elif kind == "cut":
        del content[choose.randrange(len(content) + 1) :]
    elif kind == "insert":
        at = choose.randrange(len(content) + 1)
        content[at:at] = choose.randbytes(choose.randrange(1, 40))
    elif kind == "other":
        content = bytearray(choose.choice([b"", b"{}", b"null", b"\x80\x05N.", b"\x7fELF"]))
    path.unlink()
    if kind == "folder":
        path.mkdir()
    elif kind != "remove":
        path.write_bytes(content)
        path.chmod(0 if kind == "unreadable" else 0o600)
    return f"{path.name}: {kind}"


@pytest.mark.parametrize("seed", seeds(10, 200))
def test_damage_of_any_kind_changes_no_result(
    seed: int, fresh_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The design is compiled anew, or left to Amaranth's simulator: with a warning of one line."""
    choose = random.Random(seed)
    # Compiled at once, in the middle of the run, never.
    monkeypatch.setenv("CPPSIM_INTERPRET", ("0", "50", "1000000")[seed % 3])
    expected = Shown("count").run()
    files = sorted(path for path in fresh_cache.rglob("*") if path.is_file())
    assert {path.name for path in files} >= {"layout.pickle", "checksums.json"}
    assert any(path.name == "library.so" for path in files) == (seed % 3 < 2)
    done = [_damage(path, choose) for path in choose.sample(files, choose.randint(1, 2))]
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        assert Shown("count").run() == expected, done
    for warning in warned:
        assert issubclass(warning.category, (CacheWarning, FallbackWarning)), done
        assert "\n" not in str(warning.message)


_BUILD = """
from amaranth.hdl import Fragment
from cppsim import designs
from cppsim.testing import random_design
lower, lowered = designs.lower, []
designs.lower = lambda *a, **b: lowered.append(a) or lower(*a, **b)
designs.built(Fragment.get(random_design(1, 'machine').module, None).prepare())
print(not lowered)
"""


def test_another_process_finds_the_entry(fresh_cache: Path) -> None:
    found = [succeed(sys.executable, "-c", _BUILD, PYTHONHASHSEED=x) for x in ("1", "2")]
    assert found == ["False\n", "True\n"]


def test_what_cannot_be_compiled_leaves_no_entry(fresh_cache: Path) -> None:
    with pytest.warns(cppsim.FallbackWarning, match="Instance is not known here: 'CELL' at"):
        cppsim.Simulator(foreign())
    assert not list(fresh_cache.glob("cppsim/*"))


def test_an_oversight_is_reported_as_one(change: Callable[..., None]) -> None:
    change(designs, "lower", lambda design, **options: {}["sync"])
    reason = r"an error in cppsim \(KeyError: 'sync'\); please report it"
    with pytest.warns(cppsim.FallbackWarning, match=reason):
        cppsim.Simulator(counter()[0])


def test_the_entry_of_another_design_is_found_out(fresh_cache: Path) -> None:
    right, wrong = (Fragment.get(counter(step=x)[0], None).prepare() for x in (1, 2))
    expect_same(right, designs.built(right))
    with pytest.raises(AssertionError, match="is not the entry of this design"):
        expect_same(wrong, designs.built(right))


def _whole(cache: Path) -> list[Path]:
    """Return the complete entries of designs."""
    return [x.parent for x in cache.glob("cppsim/*/layout.pickle") if ".work-" not in x.parent.name]


def test_a_killed_python_leaves_no_broken_cache(
    fresh_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrapper, begun = tmp_path / "slow-c++", tmp_path / "begun"
    command = " ".join(find_compiler().command)
    wrapper.write_text(
        f'#!/bin/sh\n[ "$1" = --version ] && echo slow && exit\necho $$ > {begun}\n'
        f'[ -e {tmp_path}/swift ] || exec sleep 100\nexec {command} "$@"\n'
    )
    wrapper.chmod(0o755)
    monkeypatch.setenv("CPPSIM_CXX", str(wrapper))
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, "-c", _BUILD], env=environment) as python:
        end = time.monotonic() + 120
        while not (begun.exists() and begun.read_text()) and time.monotonic() < end:
            time.sleep(0.01)
        python.kill()
    os.kill(int(begun.read_text()), signal.SIGKILL)
    assert not _whole(fresh_cache)
    # The same compiler gives the library the key of the unfinished build.
    (tmp_path / "swift").touch()
    succeed(sys.executable, "-c", _BUILD)
    assert len(_whole(fresh_cache)) == 1
    assert not list(fresh_cache.glob("cppsim/*.work-*"))


@pytest.mark.parametrize("enabled", [True, False])
def test_no_garbage_is_collected_while_a_design_is_written(
    monkeypatch: pytest.MonkeyPatch, fresh_cache: Path, enabled: bool
) -> None:
    during: list[bool] = []

    def fail(design: Any, **options: Any) -> None:
        during.append(gc.isenabled())
        raise SimulationError("no luck")

    monkeypatch.setattr(designs, "lower", fail)
    design = Fragment.get(random_machine(1).module, None).prepare()
    was = gc.isenabled()
    (gc.enable if enabled else gc.disable)()
    try:
        with pytest.raises(SimulationError, match="no luck"):
            designs.built(design)
        during.append(gc.isenabled())
    finally:
        (gc.enable if was else gc.disable)()
    assert during == [False, enabled]
