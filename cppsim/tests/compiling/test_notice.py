"""A long compilation is reported on standard error, a short one is not."""

import shlex
import threading
from pathlib import Path

import pytest

from cppsim.compiling import library
from cppsim.compiling.library import provide

LINE = "cppsim: compiling a design, once for this circuit"
ZIG = "; zig's first compilation takes minutes, as it builds its C++ library, too"


def test_a_long_compilation_is_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(library, "_PATIENCE", 0.0)
    with library.noticed("cppsim: compiling"):
        for timer in threading.enumerate():
            if isinstance(timer, threading.Timer):
                timer.join()
    assert capsys.readouterr().err == "cppsim: compiling\n"


def test_a_short_one_is_not(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(library, "_PATIENCE", threading.TIMEOUT_MAX)
    with library.noticed("cppsim: compiling"):
        pass
    assert capsys.readouterr().err == ""


def test_what_a_design_becomes_is_compiled_with_notice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CPPSIM_CACHE", str(tmp_path))
    monkeypatch.setattr(library, "_PATIENCE", 0.0)
    for _ in range(2):
        provide("int nothing;\n")
    assert capsys.readouterr().err == f"{LINE}{ZIG if library.find_compiler().is_zig else ''}\n"


def test_zig_takes_minutes_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # This machine's compiler under the name: zig itself takes minutes.
    zig = tmp_path / "zig"
    zig.write_text(f'#!/bin/sh\nexec {shlex.join(library.find_compiler().command)} "$@"\n')
    zig.chmod(0o755)
    monkeypatch.setenv("CPPSIM_CXX", str(zig))
    monkeypatch.setenv("CPPSIM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(library, "_PATIENCE", 0.0)
    provide("int nothing;\n")
    assert capsys.readouterr().err == f"{LINE}{ZIG}\n"
