"""Compilers that die or take long, full disks, processes at once: a line, and nothing left."""

import os
import shlex
import shutil
import subprocess
import sys
import threading
import warnings
from pathlib import Path
from typing import Any

import pytest
from amaranth.hdl import Module, Signal

import cppsim
from cppsim import FallbackWarning
from cppsim.compiling import library
from cppsim.compiling.library import Builder, load, provide
from cppsim.compiling.toolchain import find_compiler
from cppsim.errors import SimulationError
from support.processes import run_python

LAST = 'for last; do [ "$out" = next ] && out=$last; [ "$last" = -o ] && out=next; done\n'
"""A shell's line that finds the file that a compiler has to write."""

TEMPORARY = 'echo x > "$TMPDIR/ccABC.s"\n'

DYING = {
    "fails": ("echo 'a.cc: error: no luck' >&2; exit 1", "failed with status 1: a.cc: error: no"),
    "fails in silence": ("exit 3", "failed with status 3: no message"),
    "is killed": ("kill -9 $$", "was killed by SIGKILL: no message"),
    "fails with half a file": ('head -c 1000 /bin/sh > "$out"; exit 1', "failed with status 1: no"),
    "writes half a file": ('head -c 1000 /bin/sh > "$out"', "reported success, but wrote no whole"),
    "writes 10 bytes": ('head -c 10 /bin/sh > "$out"', "reported success, but wrote no whole"),
    "writes nothing": ("true", "reported success, but wrote no whole library"),
}


def left_in(*folders: Path) -> list[Path]:
    return [path for folder in folders for path in folder.rglob("*") if not path.is_dir()]


def counter() -> tuple[Module, Signal]:
    m, count = Module(), Signal(32)
    m.d.sync += count.eq(count + 3)
    return m, count


def script(path: Path, text: str) -> str:
    """Write a shell script, which says that it is a compiler; return its path."""
    path.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo 1.0 && exit\n{text}\n')
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Set an empty folder of temporary files, and return it."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


@pytest.mark.parametrize(("text", "reason"), DYING.values(), ids=DYING)
def test_a_compiler_that_dies(
    text: str,
    reason: str,
    tmp_path: Path,
    fresh_cache: Path,
    scratch: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CPPSIM_CXX", script(tmp_path / "c++", LAST + TEMPORARY + text))
    with pytest.warns(FallbackWarning) as warned:
        simulator = cppsim.Simulator(counter()[0])
    [warning] = warned
    assert str(warning.message).startswith(f"left to Amaranth's simulator: c++ {reason}")
    assert "\n" not in str(warning.message)
    assert warning.filename == __file__
    simulator.add_clock(1e-6)
    simulator.run_until(1e-5)
    assert left_in(fresh_cache, scratch) == []


def test_a_compiler_that_cannot_be_started(
    tmp_path: Path, fresh_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Path(script(tmp_path / "c++", ""))
    monkeypatch.setenv("CPPSIM_CXX", str(path))
    find_compiler()
    path.write_text("#!/nowhere/sh\n")
    with pytest.warns(FallbackWarning, match=r"simulator: c\+\+ cannot be started: No such file"):
        cppsim.Simulator(counter()[0])
    assert left_in(fresh_cache) == []


def test_a_library_without_the_functions_of_a_design(fresh_cache: Path) -> None:
    with pytest.raises(SimulationError, match=r"not a library of a design: .*simulation_create"):
        load(provide("int nothing;\n"))


def test_a_cache_that_is_removed_meanwhile_is_made_again(fresh_cache: Path) -> None:
    for step in (3, 5):
        m, count = Module(), Signal(32)
        m.d.sync += count.eq(count + step)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            cppsim.Simulator(m)
        assert any(fresh_cache.rglob("library.so"))
        shutil.rmtree(fresh_cache)


def test_an_entry_that_is_removed_before_it_is_read_is_built_again(
    fresh_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, removed = Builder.folder, []

    def remove_once(*arguments: Any) -> Path:
        made = folder(*arguments)
        if not removed:
            removed.append(made)
            shutil.rmtree(made)
        return made

    monkeypatch.setattr(Builder, "folder", remove_once)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cppsim.Simulator(counter()[0])
    assert len(removed) == 1


def test_another_kind_of_machine_has_its_own_entries(
    fresh_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = provide("int nothing;\n")
    monkeypatch.setattr("platform.machine", lambda: "another")
    assert provide("int nothing;\n") != first


FULL = """\
import resource
import sys
sys.dont_write_bytecode = True  # Python would leave parts of modules, which other tests import
from amaranth.hdl import Module, Signal
import cppsim
resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, {size}))
m, count = Module(), Signal(32)
m.d.sync += count.eq(count + 3)
async def work(ctx):
    await ctx.tick().repeat(10)
    print(ctx.get(count))
simulator = cppsim.Simulator(m)
simulator.add_clock(1e-6)
simulator.add_testbench(work)
simulator.run()
"""


@pytest.mark.parametrize("size", [100, 4096])
def test_a_disk_that_takes_no_more(size: int, fresh_cache: Path, scratch: Path) -> None:
    done = run_python("-c", FULL.format(size=size))
    assert (done.returncode, done.stdout) == (0, "30\n"), done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("<string>")]
    first, second = lines
    assert first.startswith(f"<string>:12: CacheWarning: {fresh_cache}: File too large; ")
    assert second.startswith("<string>:12: FallbackWarning: left to Amaranth's simulator: ")
    assert left_in(fresh_cache, scratch) == []


def test_a_disk_that_is_full_while_it_is_written(
    fresh_cache: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, *_: object, **__: object) -> None:
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(Path, "write_text", refuse)
    message = r"source\.cc: No space left on device; free space, or set CPPSIM_CACHE to another"
    with pytest.warns(FallbackWarning, match=message):
        cppsim.Simulator(counter()[0])
    assert left_in(fresh_cache, scratch) == []


def test_two_processes_compile_a_design_once(
    tmp_path: Path, fresh_cache: Path, scratch: Path
) -> None:
    log = tmp_path / "log"
    command = " ".join(find_compiler().command)
    compiler = script(tmp_path / "c++", f'echo started >> "{log}"; sleep 0.5; exec {command} "$@"')
    code = "from cppsim.compiling.library import provide; print(provide('int nothing;\\n'))"
    environment = {**os.environ, "CPPSIM_CXX": compiler, "PYTHONPATH": os.pathsep.join(sys.path)}
    started = [
        subprocess.Popen(
            [sys.executable, "-W", "error", "-c", code],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    [made] = {process.communicate(timeout=600)[0].strip() for process in started}
    assert [process.returncode for process in started] == [0, 0, 0]
    assert log.read_text() == "started\n"
    entry = Path(made).parent
    assert set(left_in(fresh_cache)) == {Path(made), entry / "checksums.json"}
    assert left_in(scratch) == []


@pytest.mark.slow
def test_a_design_of_5000_signals(fresh_cache: Path) -> None:
    m, signals = Module(), [Signal(16, name=f"s{k}", init=k) for k in range(5000)]
    for k, signal in enumerate(signals):
        with m.If(signals[k - 2][0] ^ signals[k - 7][3]):
            m.d.sync += signal.eq(signals[k - 1] + signals[k - 3])
    found = []
    for mode in ("always", "off"):

        async def work(ctx: object) -> None:
            await ctx.tick().repeat(5)  # type: ignore[attr-defined]
            found.append([ctx.get(signal) for signal in signals])  # type: ignore[attr-defined]

        with warnings.catch_warnings():
            warnings.simplefilter("error")
            simulator = cppsim.Simulator(m, mode=mode)
        simulator.add_clock(1e-6)
        simulator.add_testbench(work)
        simulator.run()
    assert found[0] == found[1]


# --- notices --------------------------------------------------------------------------------------

LINE = "cppsim: compiling a design, once for this circuit"
ZIG = "; zig's first compilation takes minutes, as it builds its C++ library, too"


@pytest.mark.parametrize(("patience", "line"), [(0.0, "compiling\n"), (threading.TIMEOUT_MAX, "")])
def test_a_long_compilation_is_reported_and_a_short_one_is_not(
    patience: float,
    line: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(library, "_PATIENCE", patience)
    with library.noticed("compiling"):
        for timer in threading.enumerate():
            if isinstance(timer, threading.Timer) and not patience:
                timer.join()
    assert capsys.readouterr().err == line


@pytest.mark.parametrize("zig", [False, True])
def test_what_a_design_becomes_is_compiled_with_notice(
    zig: bool,
    tmp_path: Path,
    fresh_cache: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """This machine's compiler runs under zig's name: zig itself takes minutes."""
    command = shlex.join(find_compiler().command)
    if zig:
        monkeypatch.setenv("CPPSIM_CXX", script(tmp_path / "zig", f'exec {command} "$@"'))
    monkeypatch.setattr(library, "_PATIENCE", 0.0)
    for _ in range(2):
        provide("int nothing;\n")
    assert capsys.readouterr().err == f"{LINE}{ZIG if find_compiler().is_zig else ''}\n"
    assert not zig or find_compiler().is_zig
