"""Simulations start in Amaranth's simulator; a background compilation may succeed or fail."""

import gc
import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from amaranth.hdl import Fragment, Instance, Module, Signal
from amaranth.sim import Simulator

import cppsim
from cppsim import FallbackWarning, background, designs
from cppsim.background import Build
from cppsim.compiling.cache import CacheWarning
from cppsim.compiling.library import load
from cppsim.compiling.toolchain import find_compiler
from cppsim.errors import SimulationError
from cppsim.mode import Mode, set_default_mode
from cppsim.native import native
from support.processes import succeed
from support.random_designs import random_machine
from support.seeds import seeds

PATIENCE = 120.0
"""Seconds after which a wait has failed."""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Set an empty cache, whose folder does not exist yet, and forget earlier failures."""
    set_default_mode(Mode.AUTO)
    native()  # from the cache that the tests share
    monkeypatch.setenv("CPPSIM_CACHE", str(tmp_path / "cache"))
    background._unprepared.cache_clear()
    yield tmp_path / "cache"
    background._unprepared.cache_clear()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treat any run as long."""
    for name in ("_SHORT", "_SHORT_FOR_SIZE", "_PAUSE", "_LONG"):
        monkeypatch.setattr(background, name, 0.0)


def counter() -> tuple[Module, Signal]:
    m, count = Module(), Signal(32)
    m.d.sync += count.eq(count + 3)
    return m, count


def prepared() -> Any:
    return Fragment.get(counter()[0], None).prepare()


def run_until(done: Callable[[Any], bool]) -> Any:
    """Return the engine of a counter, ticked until ``done``; expect right counts."""
    m, count = counter()
    made: Any = Simulator(m, engine=cppsim.Engine)
    made.add_clock(1e-6)
    end = time.monotonic() + PATIENCE

    async def work(ctx: Any) -> None:
        ticks = 0
        while not done(made._engine) and time.monotonic() < end:
            await ctx.tick()
            ticks += 1
            assert ctx.get(count) == 3 * ticks % (1 << 32)

    made.add_testbench(work)
    made.run()
    assert done(made._engine)
    return made._engine


def wait_until(done: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not done() and time.monotonic() < end:
        time.sleep(0.01)
    assert done()


def is_running(process: int) -> bool:
    background.can_build()  # which hears of those that have ended
    return Path(f"/proc/{process}").exists()


def slow_compiler(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Use a compiler that marks its start with a file, then is slow.

    It is fast if there is a file ``swift`` in ``folder``.
    """
    wrapper, begun = folder / "slow-c++", folder / "begun"
    command = " ".join(find_compiler().command)
    wrapper.write_text(
        f'#!/bin/sh\n[ "$1" = --version ] && echo slow && exit\necho $$ > {begun}\n'
        f'[ -e {folder}/swift ] || sleep 100\nexec {command} "$@"\n'
    )
    wrapper.chmod(0o755)
    monkeypatch.setenv("CPPSIM_CXX", str(wrapper))
    return begun


def whole(cache: Path) -> list[Path]:
    """Return the complete folders in the cache."""
    return [x for x in cache.glob("cppsim/*") if x.is_dir() and ".work-" not in x.name]


@pytest.mark.usefixtures("impatient")
def test_a_long_run_goes_on_in_compiled_code(cache: Path) -> None:
    engine = run_until(lambda engine: engine.compiled)
    assert engine.reason == ""
    files = {"library.so", "layout.pickle", "checksums.json"}
    assert {x.name for x in whole(cache)[0].iterdir()} == files
    assert len(whole(cache)) == 1


def test_a_short_run_starts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "_SHORT", PATIENCE)
    monkeypatch.setattr(background, "Build", lambda design: pytest.fail("a process was started"))
    ticks = iter(range(100))
    assert not run_until(lambda _: next(ticks, None) is None or False).compiled


@pytest.mark.usefixtures("impatient")
def test_what_cannot_be_compiled_is_told_once_the_run_is_long() -> None:
    m, _ = counter()
    m.submodules.cell = Instance("CELL", o_o=Signal())
    made: Any = Simulator(m, engine=cppsim.Engine)
    made.add_clock(1e-6)
    end = time.monotonic() + PATIENCE

    async def work(ctx: Any) -> None:
        while made._engine._switch.due < end and time.monotonic() < end:
            await ctx.tick()

    made.add_testbench(work)
    with pytest.warns(cppsim.FallbackWarning, match="Instance is not known here") as told:
        made.run()
    assert len(told) == 1
    assert not made._engine.compiled


@pytest.mark.usefixtures("impatient")
def test_without_a_compiler_it_is_told_once_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CPPSIM_CXX", "no-such-compiler")
    with pytest.warns(cppsim.FallbackWarning, match="no-such-compiler' is not a C"):
        run_until(lambda engine: bool(engine.reason))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run_until(lambda engine: bool(engine.reason))


def test_a_build_that_is_killed_leaves_no_broken_cache(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = slow_compiler(tmp_path, monkeypatch)
    build = Build(prepared())
    wait_until(begun.exists)
    os.killpg(build._process, signal.SIGKILL)
    wait_until(lambda: not is_running(build._process))
    with pytest.raises(SimulationError, match="the process that compiles has been ended"):
        build.result()
    assert not whole(cache)
    monkeypatch.delenv("CPPSIM_CXX")
    again = Build(prepared())
    wait_until(lambda: again.result() is not None)
    assert len(whole(cache)) == 1


def test_a_killed_python_leaves_no_broken_cache(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = slow_compiler(tmp_path, monkeypatch)
    script = (
        "import time\n"
        "from amaranth.hdl import Fragment\n"
        "from cppsim.background import Build\n"
        "from support.random_designs import random_machine\n"
        "build = Build(Fragment.get(random_machine(1).module, None).prepare())\n"
        "print(build._process, flush=True)\n"
        "time.sleep(100)\n"
    )
    command = [sys.executable, "-c", script]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as python:
        assert python.stdout is not None
        process = int(python.stdout.readline())
        wait_until(begun.exists)
        python.kill()
    os.killpg(process, signal.SIGKILL)
    assert not whole(cache)
    # The same compiler gives the library the key of the unfinished build.
    (tmp_path / "swift").touch()
    again = Build(Fragment.get(random_machine(1).module, None).prepare())
    wait_until(lambda: again.result() is not None)
    assert len(whole(cache)) == 1
    assert not list(cache.glob("cppsim/*.work-*"))


def test_a_build_ends_with_what_asked_for_it(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = slow_compiler(tmp_path, monkeypatch)
    build = Build(prepared())
    process = build._process
    wait_until(begun.exists)
    compiler = int(begun.read_text())
    del build
    gc.collect()
    wait_until(lambda: not is_running(process) and not is_running(compiler))
    assert not whole(cache)
    assert not list(cache.glob("cppsim/*.work-*"))


def test_a_copy_of_the_process_begins_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = slow_compiler(tmp_path, monkeypatch)
    build = Build(prepared())
    wait_until(begun.exists)
    copy = os.fork()
    if copy == 0:
        lost = build.lost
        del build
        gc.collect()
        os._exit(7 if lost else 0)
    _, status = os.waitpid(copy, 0)
    assert os.waitstatus_to_exitcode(status) == 7
    assert is_running(build._process)


def test_processes_that_build_at_once_compile_once(cache: Path) -> None:
    builds = [Build(prepared()) for _ in range(3)]
    for build in builds:
        wait_until(lambda build=build: build.result() is not None)
    assert len(whole(cache)) == 1


def test_sources_are_the_same_whatever_the_order_of_sets() -> None:
    count = len(seeds(1, 6))
    script = (
        "from amaranth.hdl import Fragment\n"
        "from cppsim.designs import written\n"
        "from support.random_designs import random_machine\n"
        f"for seed in range({count}):\n"
        "    design = Fragment.get(random_machine(seed).module, None).prepare()\n"
        "    print(written(design)[1].text)\n"
    )
    texts = [
        succeed(sys.executable, "-c", script, PYTHONHASHSEED=seed)
        for seed in ("1", "77", "2")[: len(seeds(2, 3))]
    ]
    assert len(set(texts)) == 1
    assert texts[0].count("int step()") == count


def test_a_system_without_fork_says_that_auto_does_not_compile(
    monkeypatch: pytest.MonkeyPatch, impatient: None
) -> None:
    monkeypatch.delattr(os, "fork")
    message = "simulator: mode auto needs fork, which this system lacks; use mode always"
    with pytest.warns(FallbackWarning, match=message) as warned:
        engine = run_until(lambda engine: bool(engine.reason))
    assert [warning.filename for warning in warned] == [__file__]
    assert not engine.compiled


@pytest.mark.parametrize("size", [0, 1000])
def test_a_damaged_library_is_compiled_anew(cache: Path, impatient: None, size: int) -> None:
    run_until(lambda engine: engine.compiled)
    [library] = (cache / "cppsim").glob("*/library.so")
    content = library.read_bytes()
    library.unlink()  # this process has it in memory
    library.write_bytes(content[:size])
    load.cache_clear()
    with pytest.warns(CacheWarning, match=r": damaged; it is built anew$") as warned:
        run_until(lambda engine: engine.compiled)
    assert [warning.filename for warning in warned] == [__file__]


@pytest.mark.parametrize("enabled", [True, False])
def test_no_garbage_is_collected_while_a_design_is_written(
    monkeypatch: pytest.MonkeyPatch, enabled: bool
) -> None:
    during: list[bool] = []

    def fail(design: Any, **options: Any) -> None:
        during.append(gc.isenabled())
        raise SimulationError("no luck")

    monkeypatch.setattr(designs, "lower", fail)
    was = gc.isenabled()
    (gc.enable if enabled else gc.disable)()
    try:
        with pytest.raises(SimulationError, match="no luck"):
            designs.built(prepared())
        during.append(gc.isenabled())
    finally:
        (gc.enable if was else gc.disable)()
    assert during == [False, enabled]
