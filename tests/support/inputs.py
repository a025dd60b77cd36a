"""The digest of all files on which the result of a test module depends. No tests here.

A module depends on its own file, on the ``conftest.py`` of its folders, and on all below `ROOTS`
that these import, at any level. Of the product it depends on whole folders:

| It imports, or something does that it imports | Folders |
|---|---|
| ``bitlane_rtl`` | `rtl` |
| ``cppsim`` | `cppsim/src` |
| another package, ``subprocess``, ``runpy``, or it names ``sys.executable`` | `PRODUCT` |
| a file of `RUNNER`; or ``__file__`` is in its text | all files that git knows |

The contracts in ``pyproject.toml`` say that the first two import no other package. The others load
one another by name, as devices and commands, which no import shows.

Files of cppsim, a project of its own, depend on no folder outside it.

The marks of a module are those that its ``pytestmark`` names. Files that git ignores count only
where they are imported; a module that git ignores has no digest.

A module with the mark ``any_circuit`` tests a tool on any circuit, one with ``any_rtl`` a tool that
never looks into `rtl`, and one with ``any_face`` what lies below or beside the faces of the host:
the folders of the mark in `MARKS` do not count.

A module with the mark ``reads(*names)`` reads no files by ``__file__``, its own or that of a module
which it imports, but those of `PRODUCT` and ``names``, files and folders.

Versions of Python, of all installed distributions and of the C++ compiler are part of each digest,
and the programs and the variables of the environment that tests obey.
"""

import ast
import functools
import hashlib
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Collection, Iterable, Iterator
from importlib.metadata import distributions
from pathlib import Path

from bitlane_sim.builds import find_compiler as bitlanes_compiler
from cppsim.build import find_compiler as cppsims_compiler
from cppsim.errors import SimulationError

PRODUCT = ("boards", "cppsim/src", "host", "pyproject.toml", "requirements", "rtl", "sim")
"""Folders and files of which any program of the project consists."""

ALONE = {"bitlane_rtl": ("rtl",), "cppsim": ("cppsim/src",)}
"""Packages that import no other package of the product, and their folders."""

CPPSIM = "cppsim"

ENGINE = ("addresses", "bit_unit", "control", "datapath", "search")
"""Folders of the engine's parts, which tools know by what the engine computes alone."""

OTHER_PARTS = ("bus", "ethernet", "link", "ports", "serial", "stream_unit", "streams")
"""Folders of `rtl` beside the engine's, but the binary interface."""

FACES = ("arrays", "compiler", "dask", "dml", "model_file", "onnx", "pool", "profile", "search")
"""Folders of the host's faces, which circuits, boards and their tools never call."""

MARKS = {
    "any_circuit": {f"rtl/bitlane_rtl/{folder}" for folder in ENGINE},
    "any_rtl": {f"rtl/bitlane_rtl/{folder}" for folder in (*ENGINE, *OTHER_PARTS)},
    "any_face": {f"host/bitlane/{folder}" for folder in FACES},
}
"""The folders that do not count, by the mark of the module."""

READS = "pytest.mark.reads"
"""The mark that names the files and folders which a module reads."""

OTHERS = {
    *("bitlane", "bitlane_boards", "bitlane_sim"),
    *("asyncio", "importlib", "multiprocessing", "runpy", "subprocess"),
}
"""Packages that may load any other."""

SETTINGS = ("pyproject.toml", "pytest.ini", "tox.ini", "setup.cfg", "conftest.py")
"""Files of the project's folder that pytest obeys, or would."""

PROGRAMS = (
    *("bash", "clang", "dot", "g++", "gcc", "git", "iverilog", "make", "node", "openFPGALoader"),
    *("riscv64-unknown-elf-gcc", "sh", "verilator", "vvp"),
)
"""Programs of the system that tests run, or find: their place, size and time of change count."""

VARIABLES = (
    *("AMARANTH", "BITLANE", "COCOTB", "CPPSIM", "DASK", "FAISS", "HYPOTHESIS", "OPENFPGALOADER"),
    *("YOSYS", "YOWASP", "ZIG"),
    *("CC", "CFLAGS", "CPATH", "CPLUS", "CPPFLAGS", "CXX", "C_INCLUDE", "LD", "LIBRARY_PATH"),
    *(
        "COLUMNS",
        "FORCE_COLOR",
        "HOME",
        "LANG",
        "LC_",
        "NO_COLOR",
        "SEED",
        "TMPDIR",
        "TZ",
        "XDG_CACHE",
    ),
    *("PYTEST_ADDOPTS", "PYTEST_DISABLE", "PYTEST_PLUGINS", "PYTEST_TIMEOUT", "PYTHON"),
)
"""Starts of environment variables that count."""

ROOTS = ("tools", "tests", "cppsim/tools", "cppsim/tests", "cppsim/examples")
"""Folders that tests import from, besides the product's."""

_SHARED = ("rotation", "seeds")
"""Modules of the runner that tests use as well."""

_ALONE = ("durations", "inputs", "known", "runner", "verdicts")

RUNNER = (
    *(f"tests/support/{name}.py" for name in _ALONE),
    *(f"cppsim/tests/support/{name}.py" for name in _SHARED),
)
"""Files that run the tests. Only their text counts, as no test runs the files that they import."""

_OF_THE_RUNNER = {f"support.{name}" for name in _ALONE}


class Inputs:
    """The files that git knows in ``root``, as they are on disk now, and what depends on them.

    What needs git raises ``OSError`` or ``subprocess.CalledProcessError`` without it or outside a
    repository.
    """

    def __init__(self, root: Path) -> None:
        self._root, self._roots = root, [root / each for each in ROOTS]
        self._read = functools.cache(_File)
        self._imported = functools.cache(self._import)

    @functools.cached_property
    def _sums(self) -> dict[str, str]:
        """The content of each file, whether it can be executed, and whether git tracks it."""
        listed = subprocess.run(
            ["git", "ls-files", "-z", "-t", "--cached", "--others", "--exclude-standard"],
            cwd=self._root,
            capture_output=True,
            check=True,
        ).stdout
        listing = sorted(os.fsdecode(listed).split("\0"))
        entries = (entry.split(" ", 1) for entry in listing if entry)
        return {name: f"{state == '?'} {_sum(self._root / name)}" for state, name in entries}

    @functools.cached_property
    def _tools(self) -> list[str]:
        return tools()

    def knows(self, module: Path) -> bool:
        """Return whether git knows the file ``module``, and so sees it change."""
        return str(module.relative_to(self._root)) in self._sums

    def of_everything(self, but: Collection[Path]) -> str:
        """Return the SHA-256 of all files that git knows ``but`` some."""
        sums = self._sums.items()
        return _digest(f"{name} {each}" for name, each in sums if self._root / name not in but)

    def of_tests(self, module: Path) -> str:
        """Return the SHA-256 of `files_of_tests`."""
        files = sorted(self.files_of_tests(module))
        sums = (f"{os.path.relpath(file, self._root)} {_sum(file)}" for file in files)
        return _digest(sums)

    def files_of_tests(self, module: Path) -> set[Path]:
        """Return ``module`` and the other files of tests that take part in it."""
        return self._closure([module, *self._conftests(module)])

    def digest(self, module: Path) -> str:
        """Return the SHA-256 of all that the result of the test module ``module`` depends on.

        Raises ``ValueError`` if its mark `READS` names what is not there, and ``OSError`` or
        ``SyntaxError`` if a file of tests cannot be read.
        """
        files = self.files_of_tests(module)
        places = {place for file in files for place in self._places(file)}
        if (reads := self._read(module).reads) is not None:
            if gone := [
                each for each in reads if not any(_is_below(x, {each}) for x in self._sums)
            ]:
                raise ValueError(f"{module}: {READS} names {gone}, which are not there")
            places = (places - {""}) | {*PRODUCT, *reads}
        names = {str(file.relative_to(self._root)) for file in files}
        names |= {*SETTINGS, *RUNNER}
        names |= {name for name in self._sums if _is_below(name, places)}
        names = {name for name in names if not _is_below(name, self._read(module).left_out)}
        sums = ((name, self._sums.get(name) or _sum(self._root / name)) for name in sorted(names))
        parts = (*self._tools, *map(" ".join, sums))
        return _digest(parts)

    def _places(self, file: Path) -> set[str]:
        places = self._read(file).places
        if self._root / CPPSIM not in file.parents:
            return places
        within = {place for place in places if _is_below(place, {CPPSIM})}
        return within | {CPPSIM for place in places if place == ""}

    def _conftests(self, module: Path) -> list[Path]:
        found = (folder / "conftest.py" for folder in module.parents)
        return [path for path in found if self._is_of_tests(path) and path.is_file()]

    def _is_of_tests(self, path: Path) -> bool:
        return any(root in path.parents for root in self._roots)

    def _closure(self, files: Iterable[Path]) -> set[Path]:
        """Return ``files`` and all below `ROOTS` that they import, but those of `RUNNER`."""
        runner = {self._root / name for name in RUNNER}
        found, left = set[Path](), set(files)
        while left:
            file = left.pop()
            found.add(file)
            left |= self._imported(file) - found - runner
        return found

    def _import(self, file: Path) -> set[Path]:
        """Return the files below `ROOTS` that ``file`` imports or names."""
        read = self._read(file)
        imported = {path for name in read.imports for path in self._files_of(file, name)}
        return imported | {path for name in read.named for path in self._named(name)}

    def _files_of(self, importer: Path, name: str) -> Iterator[Path]:
        """Yield the files that an import of ``name`` runs, if they are below `ROOTS`."""
        depth = len(name) - len(name.lstrip("."))
        for folder in [importer.parents[depth - 1]] if depth else self._roots:
            for part in name[depth:].split("."):
                folder = folder / part
                paths = (folder / "__init__.py", folder.with_suffix(".py"))
                yield from (path for path in paths if path.is_file())

    def _named(self, name: str) -> Iterator[Path]:
        """Yield the file of the module ``name``, or all below the longest folder in its name."""
        for root in self._roots:
            yield from self._files_of(root, name)
            folder = root
            for part in name.split("."):
                if not part or not (folder / part).is_dir():
                    break
                folder = folder / part
            if folder not in (root, root / name.partition(".")[0]):
                yield from folder.rglob("*.py")


class _File:
    """The dependencies that a file of tests names.

    Attributes
    ----------
    imports : set of str
        Modules that it may import, at any place; relative ones begin with dots.
    named : set of str
        Modules below ``support`` that a text in it names, or the start of such a name.
    places : set of str
        Folders and files of the product; "" is everything.
    left_out : set of str
        Folders that do not count, as its marks say.
    reads : set of str or None
        What its mark `READS` names, None without the mark.
    """

    def __init__(self, path: Path) -> None:
        content = path.read_bytes()
        self.imports, self.named = set[str](), set[str]()
        self.left_out = set[str]()
        self.reads: set[str] | None = None
        tree = ast.parse(content, str(path))
        for statement in tree.body:
            if isinstance(statement, ast.Assign) and "pytestmark" in map(
                ast.unparse, statement.targets
            ):
                self._note_marks(path, statement.value)
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                self.imports |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                base = "." * node.level + (node.module or "")
                dot = "." if node.module else ""
                self.imports |= {base, *(f"{base}{dot}{alias.name}" for alias in node.names)}
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                self.named |= {node.value} if _NAME.fullmatch(node.value) else set()
        self.places = self._places(content)

    def _note_marks(self, path: Path, marks: ast.expr) -> None:
        for node in ast.walk(marks):
            if isinstance(node, ast.Attribute):
                self.left_out |= MARKS.get(node.attr, set())
            elif isinstance(node, ast.Call) and ast.unparse(node.func) == READS:
                try:
                    self.reads = {name for each in node.args for name in _names(each)}
                except ValueError:
                    told = f"{path}: {ast.unparse(node)}; expected names in quotes"
                    raise ValueError(told) from None

    def _places(self, content: bytes) -> set[str]:
        if b"__file__" in content or self.imports & _OF_THE_RUNNER:
            return {""}
        packages = {name.partition(".")[0] for name in self.imports}
        if packages & OTHERS or b"sys.executable" in content:
            return set(PRODUCT)
        return {place for name in packages & ALONE.keys() for place in ALONE[name]}


def _names(argument: ast.expr) -> tuple[str, ...]:
    """Return the texts of ``argument``, which may have a star. Raises ``ValueError``."""
    if isinstance(argument, ast.Starred):
        return tuple(ast.literal_eval(argument.value))
    return (ast.literal_eval(argument),)


_NAME = re.compile(r"support\.[\w.]*")


def _is_below(name: str, places: set[str]) -> bool:
    return "" in places or any(name == place or name.startswith(f"{place}/") for place in places)


def _sum(path: Path) -> str:
    if not path.is_file():
        return "missing"
    return f"{os.access(path, os.X_OK)} {hashlib.sha256(path.read_bytes()).hexdigest()}"


def _digest(parts: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(parts).encode(errors="surrogateescape")).hexdigest()


def _program(name: str) -> str:
    """Return what changes when another version of the program ``name`` is installed."""
    place = shutil.which(name)
    if place is None:
        return f"{name} None"
    found = Path(place).stat()
    return f"{name} {Path(place).resolve()} {found.st_size} {found.st_mtime_ns}"


def tools() -> list[str]:
    """Return all of `versions` and `variables`."""
    return [*versions(), *variables()]


def versions() -> list[str]:
    """Return the versions of Python, packages, compilers and programs."""
    compilers = []
    for find in (bitlanes_compiler, cppsims_compiler):
        try:
            compilers.append(find().version)
        except SimulationError:
            compilers.append("no compiler")
    packages = {f"{each.name} {each.version}" for each in distributions()}
    python = [platform.python_version(), platform.platform()]
    return [*python, *compilers, *sorted(packages), *map(_program, PROGRAMS)]


def variables() -> list[str]:
    """Return the variables of the environment that tests obey, with their values."""
    found = (f"{name}={value}" for name, value in os.environ.items() if name.startswith(VARIABLES))
    return sorted(found)
