"""Compilers: which is found, its flags, how it dies; full disks, processes at once, libraries."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from amaranth.hdl import Module, Signal

import cppsim
from cppsim import FallbackWarning, native
from cppsim.batch import threads
from cppsim.circuits import Circuit, build
from cppsim.compiling import (
    Builder,
    Compiler,
    bare,
    find_compiler,
    hasty,
    library,
    load,
    provide,
    selecting,
    straight,
)
from cppsim.errors import SimulationError
from cppsim.model import build as models
from cppsim.testing import Bench, same_on
from support.carriers import inverter
from support.processes import run_python
from support.seeds import slow
from support.small import counter

ZIGLANG = f"{sys.executable} -m ziglang c++"
CHOICES = [slow(ZIGLANG), *filter(shutil.which, ("g++", "clang++", "c++"))]
"""Compilers of this machine; the full tier always has ziglang."""


@pytest.fixture(params=CHOICES)
def compiler(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Compiler:
    monkeypatch.setenv("CPPSIM_CXX", request.param)
    return find_compiler()


def test_every_compiler_takes_the_flags_of_every_library(
    compiler: Compiler, tmp_path: Path
) -> None:
    """A flag that a compiler does not know or use causes a warning, which is an error here."""
    source, made = tmp_path / "source.cc", tmp_path / "source.o"
    source.write_text('extern "C" int f() { return 3; }\n', encoding="utf-8")
    builders = (
        library.builder(("-O1", *threads._words()[1])),
        library.builder(("-Og",)),
        native.BUILDER,
        models.builder("cppsim"),
    )
    flags = dict.fromkeys(flag for builder in builders for flag in builder.flags_for(compiler))
    words = [flag for flag in flags if flag not in ("-w", "-shared")]
    compiler.run([*words, "-Werror", "-c", "-o", str(made), str(source)])
    assert made.stat().st_size


GCC = "g++ (Debian 12.2.0-14) 12.2.0\nCopyright (C) 2022 Free Software Foundation, Inc."
OTHERS = (
    "Apple clang version 15.0.0 (clang-1500.3.9.4)",
    "clang version 22.1.8\nTarget: x86_64-unknown-linux-gnu",
    "mine",
)


@pytest.mark.parametrize("version", OTHERS)
def test_a_compiler_that_is_not_gcc_is_given_none_of_gccs_flags(version: str) -> None:
    compiler = Compiler(("g++",), version)
    tunings = (bare, hasty, selecting, straight)
    assert [tune(compiler) for tune in tunings] == [()] * 4


def test_gcc_is_given_flags_of_its_own() -> None:
    compiler = Compiler(("c++",), GCC)
    assert [len(flags(compiler)) for flags in (hasty, selecting, straight)] == [1, 2, 3]
    assert len(bare(compiler)) == 3 * (sys.platform == "linux")


def test_a_large_source_is_compiled_with_less_effort(
    fresh_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    levels: list[str] = []

    def note(compiler: Compiler, arguments: list[str], scratch: Path) -> None:
        levels.extend(word for word in arguments if word.startswith("-O"))
        raise SimulationError("no luck")

    monkeypatch.setattr(Compiler, "run", note)
    large, huge = " " * 600_000, " " * 2_100_000
    for source, flags in (("", ()), (large, ()), (large, ("-mavx2",)), (huge, ())):
        with pytest.raises(SimulationError, match="no luck"):
            library.provide(source, flags)
    assert levels == ["-O1", "-Og", "-O1", "-O0"]


def test_missing_compiler_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CPPSIM_CXX", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(
        SimulationError, match=r"install g\+\+ or clang\+\+, or run pip install ziglang$"
    ):
        find_compiler()


@pytest.mark.parametrize("chosen", ["no-such-compiler -O9", '"g++', " "])
def test_chosen_compiler_that_does_not_run_is_named(
    chosen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CPPSIM_CXX", chosen)
    with pytest.raises(SimulationError, match=re.escape(f"CPPSIM_CXX: {chosen!r} is no")):
        find_compiler()


def test_compiler_that_does_not_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cppsim.compiling.toolchain.DEADLINE_SECONDS", 0.1)
    with pytest.raises(SimulationError, match=r"^sleep 100 still runs after 0\.1 s$"):
        Compiler(("sleep", "100"), "").run([])


# --- trouble --------------------------------------------------------------------------------------


LAST = 'for last; do [ "$out" = next ] && out=$last; [ "$last" = -o ] && out=next; done\n'
"""A shell's line that finds the file that a compiler has to write."""

TEMPORARY = 'echo x > "$TMPDIR/ccABC.s"\n'

NOT_WHOLE = "reported success, but wrote no whole library"

DYING = {
    "fails": (
        "echo note >&2; echo 'a.cc: error: no luck' >&2; echo more >&2; exit 1",
        "failed with status 1: a.cc: error: no luck",
    ),
    "fails in silence": ("exit 3", "failed with status 3: no message"),
    "is killed": ("kill -9 $$", "was killed by SIGKILL: no message"),
    "fails with half a file": (
        'head -c 1000 /bin/sh > "$out"; exit 1',
        "failed with status 1: no message",
    ),
    "writes half a file": (
        'head -c 1000 /bin/sh > "$out"',
        "reported success, but wrote no whole library",
    ),
    "writes 10 bytes": (
        'head -c 10 /bin/sh > "$out"',
        "reported success, but wrote no whole library",
    ),
    "writes nothing": ("true", NOT_WHOLE),
}


def left_in(*folders: Path) -> list[Path]:
    return [path for folder in folders for path in folder.rglob("*") if not path.is_dir()]


def script(path: Path, text: str) -> str:
    """Write a shell script, which says that it is a compiler; return its path."""
    version = f'case "$*" in *--version) echo {path.name}; exit;; esac'
    path.write_text(f"#!/bin/sh\n{version}\n{text}\n")
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
    assert str(warning.message) == f"left to Amaranth's simulator: c++ {reason}"
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
        cppsim.Simulator(counter(step=step)[0])
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
@pytest.mark.usefixtures("fresh_cache")
@same_on("always")
def test_a_design_of_5000_signals(sim: Bench) -> None:
    m, signals = Module(), [Signal(16, name=f"s{k}", init=k) for k in range(5000)]
    for k, signal in enumerate(signals):
        with m.If(signals[k - 2][0] ^ signals[k - 7][3]):
            m.d.sync += signal.eq(signals[k - 1] + signals[k - 3])
    sim.run(m, sim.awaits(1, lambda ctx: ctx.tick().repeat(5), *signals))


# --- notices --------------------------------------------------------------------------------------

LINE = "cppsim: compiling a design, once for this circuit"
ZIG = "; zig's first compilation takes minutes, as it builds its C++ library, too"


@pytest.mark.parametrize(("patience", "line"), [(0.0, "compiling\n"), (threading.TIMEOUT_MAX, "")])
def test_a_long_compilation_is_reported_and_a_short_one_is_not(
    patience: float, line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(library, "NOTICE_SECONDS", patience)
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
    monkeypatch.setattr(library, "NOTICE_SECONDS", 0.0)
    for _ in range(2):
        provide("int nothing;\n")
    assert capsys.readouterr().err == f"{LINE}{ZIG if find_compiler().is_zig else ''}\n"
    assert not zig or find_compiler().is_zig


# --- libraries of models --------------------------------------------------------------------------


@pytest.fixture
def stand_in(fresh_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use a compiler that copies a program, after ``LATE`` seconds, and an empty cache."""
    text = f'{LAST}sleep ${{LATE:-0}}; cat /bin/true > "$out"'
    monkeypatch.setenv("CPPSIM_CXX", script(tmp_path / "stand-in", text))


@pytest.mark.usefixtures("stand_in")
def test_a_circuit_is_compiled_once_and_anew_for_what_changes(
    tmp_path: Path,
    fresh_cache: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(library, "NOTICE_SECONDS", 0.0)
    monkeypatch.setenv("LATE", "0.3")
    first, again = (build(Circuit(inverter())) for _ in range(2))
    assert capsys.readouterr().err == "cppsim: compiling the circuit, once for this circuit\n"
    assert (first.fresh, again.fresh) == (True, False)
    assert first.path == again.path
    assert first.seconds == again.seconds > 0
    assert fresh_cache in first.path.parents
    files = {path.name for path in first.path.parent.iterdir()}
    assert files == {"library.so", "about.pickle", "checksums.json"}
    monkeypatch.setenv("LATE", "0")
    others = [build(Circuit(inverter()), waveform=True)]
    # Its files have changed since they were loaded: what runs here still is what it was.
    monkeypatch.setattr("cppsim.model.build.source_digest", lambda *names: "newer")
    others.append(build(Circuit(inverter())))
    monkeypatch.setattr("cppsim.model.build.CODE_DIGEST", "newer")
    others.append(build(Circuit(inverter())))
    command = " ".join(find_compiler().command)
    wrapper = script(tmp_path / "my-c++", f'exec {command} "$@"')
    monkeypatch.setenv("CPPSIM_CXX", f"{wrapper} -O1")
    others.append(build(Circuit(inverter())))
    assert all(other.fresh for other in others)
    assert len({each.path for each in (first, *others)}) == 5
    assert others[-1].compiler == "my-c++ -O1"
