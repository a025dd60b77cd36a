"""Compiling: once for every content, whoever asks, and with errors that say what to do."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from bitlane_sim.cache import CacheWarning, cache_folder, cached
from bitlane_sim.circuit import Circuit
from bitlane_sim.cxxrtl.compile import build
from bitlane_sim.cxxrtl.source import mangle
from bitlane_sim.evaluator import SimulationError
from bitlane_sim.toolchain import Compiler, find_compiler
from support.sim.evaluated import STORAGE, Inverter, Mixer


@pytest.fixture
def fresh_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BITLANE_CACHE", str(tmp_path / "a cache"))
    return tmp_path / "a cache"


def test_cache_folder_is_chosen_by_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BITLANE_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert cache_folder() == Path.home() / ".cache" / "bitlane"
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert cache_folder() == Path("/somewhere/bitlane")
    monkeypatch.setenv("BITLANE_CACHE", "/elsewhere")
    assert cache_folder() == Path("/elsewhere")


def test_a_cache_that_cannot_be_written_is_told_and_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a file"
    file.write_bytes(b"")
    monkeypatch.setenv("BITLANE_CACHE", str(file / "below"))
    with pytest.warns(
        CacheWarning, match=r"a file/below/.*; set BITLANE_CACHE to a folder"
    ) as told:
        first = cached("kind", "key", lambda folder: (folder / "made").touch())
    assert (first / "made").exists()
    assert str(first.parent) in str(told[0].message)
    assert cached("kind", "key", lambda folder: pytest.fail("built twice")) == first


def test_a_user_without_a_home_folder_has_a_cache_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> Path:
        raise RuntimeError("Could not determine home directory.")

    for variable in ("BITLANE_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(Path, "home", nowhere)
    told = (
        r"the cache: this user has no home folder; .* is used until Python ends; set BITLANE_CACHE"
    )
    with pytest.warns(CacheWarning, match=told):
        first = cached("kind", "key", lambda folder: (folder / "made").touch())
    assert (first / "made").exists()
    assert cached("kind", "key", lambda folder: pytest.fail("built twice")) == first


def test_a_cache_that_one_may_not_look_into_is_no_error(
    fresh_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_dir = Path.is_dir

    def refuse_once(path: Path) -> bool:
        monkeypatch.setattr(Path, "is_dir", is_dir)
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "is_dir", refuse_once)
    ready = cached("kind", "key", lambda folder: (folder / "made").touch())
    assert ready == fresh_cache / "kind" / "key"
    assert (ready / "made").exists()


def test_a_first_compilation_is_told_on_a_terminal(
    fresh_cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    build(Circuit(Inverter()), waveform=True)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    build(Circuit(Inverter()))
    build(Circuit(Inverter()))
    line = "bitlane: compiling the circuit, once for this computer\n"
    assert capsys.readouterr().err == line


def test_same_circuit_is_compiled_once_and_another_one_anew(fresh_cache: Path) -> None:
    first = build(Circuit(Inverter()))
    again = build(Circuit(Inverter()))
    other = build(Circuit(Inverter()), waveform=True)
    assert (first.fresh, again.fresh, other.fresh) == (True, False, True)
    assert first.path == again.path != other.path
    assert first.seconds == again.seconds > 0
    assert fresh_cache in first.path.parents
    assert {path.name for path in first.path.parent.iterdir()} == {"model.so", "about.json"}


def test_changed_compiler_compiles_anew(
    fresh_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = build(Circuit(Inverter()))
    wrapper = tmp_path / "my-c++"
    command = " ".join(find_compiler().command)
    wrapper.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo mine || exec {command} "$@"\n')
    wrapper.chmod(wrapper.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("BITLANE_CXX", f"{wrapper} -O1")
    second = build(Circuit(Inverter()))
    assert second.fresh
    assert second.path != first.path
    assert second.compiler == "my-c++ -O1"


def test_processes_that_ask_at_once_compile_once(fresh_cache: Path) -> None:
    script = (
        "from bitlane_sim.circuit import Circuit; from bitlane_sim.cxxrtl.compile import build;"
        "from support.sim.evaluated import STORAGE, Mixer;"
        "print(build(Circuit(Mixer()), STORAGE).fresh)"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", script]
    workers = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    answers = [worker.communicate(timeout=120)[0].strip() for worker in workers]
    assert sorted(answers) == ["False", "False", "True"]
    assert not build(Circuit(Mixer()), STORAGE).fresh


def test_failed_build_leaves_nothing_behind(fresh_cache: Path) -> None:
    def fail(folder: Path) -> None:
        (folder / "half").write_text("done")
        raise SimulationError("no luck")

    with pytest.raises(SimulationError, match="no luck"):
        cached("kind", "key", fail)
    assert [path.name for path in (fresh_cache / "kind").iterdir()] == ["key.lock"]
    ready = cached("kind", "key", lambda folder: (folder / "whole").touch())
    assert (ready / "whole").exists()


def test_missing_compiler_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BITLANE_CXX", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(SimulationError, match=r"install g\+\+ or clang\+\+, or run `pip install"):
        find_compiler()


def test_chosen_compiler_that_does_not_run_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BITLANE_CXX", "no-such-compiler -O9")
    with pytest.raises(SimulationError, match="BITLANE_CXX: 'no-such-compiler -O9' is no"):
        find_compiler()


def test_failing_compiler_gives_its_first_error_in_one_line(
    fresh_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrapper = tmp_path / "bad-c++"
    wrapper.write_text(
        '#!/bin/sh\n[ "$1" = --version ] && echo 1 && exit\n'
        "echo note >&2; echo 'x.cc:1: error: no disk' >&2; echo more >&2; exit 3\n"
    )
    wrapper.chmod(wrapper.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("BITLANE_CXX", str(wrapper))
    message = r"^bad-c\+\+ failed with status 3: x\.cc:1: error: no disk$"
    with pytest.raises(SimulationError, match=message):
        build(Circuit(Inverter()))


def test_compiler_that_does_not_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bitlane_sim.toolchain._DEADLINE_SECONDS", 0.1)
    with pytest.raises(SimulationError, match=r"^sleep 100 still runs after 0\.1 s$"):
        Compiler(("sleep", "100"), "").run([])


@pytest.mark.parametrize(
    ("name", "mangled"), [("a", "p_a"), ("a_b__c", "p_a__b____c"), ("x.y[3]", "p_x_2e_y_5b_3_5d_")]
)
def test_names_are_mangled_like_cxxrtl_does(name: str, mangled: str) -> None:
    assert mangle(name) == mangled
