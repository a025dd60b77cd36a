"""Every C++ compiler accepts the flags of the libraries of pins."""

import shutil
import sys
from pathlib import Path

import pytest

from bitlane_boards.pins.model import BUILDER
from cppsim.build import find_compiler
from support.seeds import slow

ZIGLANG = f"{sys.executable} -m ziglang c++"
CHOICES = [slow(ZIGLANG), *filter(shutil.which, ("g++", "clang++", "c++"))]
"""Compilers of this machine; the full tier always has ziglang."""


@pytest.mark.parametrize("command", CHOICES)
def test_every_compiler_takes_the_flags(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A flag that a compiler does not know or use causes a warning, which is an error here."""
    monkeypatch.setenv("CPPSIM_CXX", command)
    compiler = find_compiler()
    source, made = tmp_path / "source.cc", tmp_path / "source.o"
    source.write_text('extern "C" int f() { return 3; }\n', encoding="utf-8")
    words = [flag for flag in BUILDER.flags_for(compiler) if flag not in ("-w", "-shared")]
    compiler.run([*words, "-Werror", "-c", "-o", str(made), str(source)])
    assert made.stat().st_size
