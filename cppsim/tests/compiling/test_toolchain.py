"""Every C++ compiler accepts the flags that are passed to it."""

import re
import shutil
import sys
from pathlib import Path

import pytest

from cppsim import native
from cppsim.batch import threads
from cppsim.compiling import library
from cppsim.compiling.toolchain import Compiler, bare, find_compiler, hasty, selecting, straight
from cppsim.errors import SimulationError
from cppsim.model import build
from support.seeds import slow

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
        build.builder("cppsim"),
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
        SimulationError,
        match=r"install g\+\+ or clang\+\+, or run pip install ziglang$",
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
    monkeypatch.setattr("cppsim.compiling.toolchain._DEADLINE_SECONDS", 0.1)
    with pytest.raises(SimulationError, match=r"^sleep 100 still runs after 0\.1 s$"):
        Compiler(("sleep", "100"), "").run([])
