"""Compiling: once for every content, whoever asks, and with errors that say what to do."""

import sys
from pathlib import Path

import pytest

from cppsim.compiling import library
from cppsim.compiling.toolchain import find_compiler
from cppsim.errors import SimulationError
from cppsim.model.build import build
from cppsim.model.circuit import Circuit
from support.evaluated import Inverter


@pytest.fixture
def stand_in(fresh_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use a compiler that copies a program, after ``LATE`` seconds, and an empty cache."""
    copy = 'while [ "$1" != -o ]; do shift; done; sleep ${LATE:-0}; cat /bin/true > "$2"'
    compiler(tmp_path / "stand-in", copy, monkeypatch)


def compiler(path: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a compiler whose version is its name, and that runs ``script``; choose it."""
    version = f'case "$*" in *--version) echo {path.name}; exit;; esac'
    path.write_text(f"#!/bin/sh\n{version}\n{script}\n")
    path.chmod(0o755)
    monkeypatch.setenv("CPPSIM_CXX", str(path))
    return path


@pytest.mark.usefixtures("stand_in")
@pytest.mark.parametrize("terminal", [False, True])
def test_a_first_compilation_is_reported_on_a_terminal_and_in_a_pipe(
    terminal: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(library, "_PATIENCE", 0.0)
    monkeypatch.setenv("LATE", "1.5")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    build(Circuit(Inverter()))
    line = "cppsim: compiling the circuit, once for this circuit\n"
    assert capsys.readouterr().err == line
    build(Circuit(Inverter()))
    assert capsys.readouterr().err == ""


def test_same_circuit_is_compiled_once_and_another_one_anew(fresh_cache: Path) -> None:
    first = build(Circuit(Inverter()))
    again = build(Circuit(Inverter()))
    other = build(Circuit(Inverter()), waveform=True)
    assert (first.fresh, again.fresh, other.fresh) == (True, False, True)
    assert first.path == again.path != other.path
    assert first.seconds == again.seconds > 0
    assert fresh_cache in first.path.parents
    files = {path.name for path in first.path.parent.iterdir()}
    assert files == {"library.so", "about.pickle", "checksums.json"}


@pytest.mark.usefixtures("stand_in")
def test_changed_compiler_compiles_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = build(Circuit(Inverter()))
    command = " ".join(find_compiler().command)
    wrapper = compiler(tmp_path / "my-c++", f'exec {command} "$@"', monkeypatch)
    monkeypatch.setenv("CPPSIM_CXX", f"{wrapper} -O1")
    second = build(Circuit(Inverter()))
    assert second.fresh
    assert second.path != first.path
    assert second.compiler == "my-c++ -O1"


@pytest.mark.usefixtures("stand_in")
def test_another_writer_compiles_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    first = build(Circuit(Inverter()))
    # Its files have changed since they were loaded: what runs here still is what it was.
    monkeypatch.setattr("cppsim.model.build.source_digest", lambda *names: "newer")
    second = build(Circuit(Inverter()))
    monkeypatch.setattr("cppsim.model.build._LOADED", "newer")
    third = build(Circuit(Inverter()))
    assert len({first.path, second.path, third.path}) == 3


def test_failing_compiler_gives_its_first_error_in_one_line(
    fresh_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = "echo note >&2; echo 'x.cc:1: error: no disk' >&2; echo more >&2; exit 3"
    compiler(tmp_path / "bad-c++", script, monkeypatch)
    message = r"^bad-c\+\+ failed with status 3: x\.cc:1: error: no disk$"
    with pytest.raises(SimulationError, match=message):
        build(Circuit(Inverter()))
