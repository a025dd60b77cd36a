"""Flags for compilers of written C++: each compiler takes what it is given."""

from pathlib import Path

from cppsim.compiling.flags import selecting
from cppsim.compiling.toolchain import Compiler, find_compiler


def test_the_compiler_that_is_found_takes_its_flags(tmp_path: Path) -> None:
    compiler, source = find_compiler(), tmp_path / "empty.cc"
    source.write_text("", encoding="utf-8")
    made = tmp_path / "empty.o"
    compiler.run([*selecting(compiler), "-Werror", "-c", "-o", str(made), str(source)])
    assert made.stat().st_size


def test_a_compiler_that_is_not_gcc_is_given_none() -> None:
    assert selecting(Compiler(("g++",), "Apple clang version 15.0.0 (clang-1500.3.9.4)")) == ()


def test_gcc_is_told_to_select() -> None:
    version = "g++ (Debian 12.2.0-14) 12.2.0\nCopyright (C) 2022 Free Software Foundation, Inc."
    assert len(selecting(Compiler(("g++",), version))) == 2
