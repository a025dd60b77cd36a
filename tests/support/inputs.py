"""What the result of a test module depends on, as one digest. No tests here.

A module depends on its own file, on the ``conftest.py`` of its folders, and on all below ``tests``
that these import, at any level. Of the product it depends on whole folders:

| It imports, or something does that it imports | Folders |
|---|---|
| ``bitlane_rtl`` | `rtl` |
| ``cppsim`` | `sim/cppsim` |
| another package, ``subprocess``, ``importlib``, or it names ``sys.executable`` | `PRODUCT` |
| nothing of these, but ``__file__`` is in its text | all files that git knows |

The contracts in ``pyproject.toml`` say that the first two import no other package. The others load
one another by name, as devices and commands, which no import shows.

Versions of Python, of all installed distributions and of the C++ compiler are part of each digest.
"""

import ast
import functools
import hashlib
import platform
import subprocess
from collections.abc import Iterable, Iterator
from importlib.metadata import distributions
from pathlib import Path

from bitlane_sim.builds import find_compiler
from cppsim.errors import SimulationError

PRODUCT = ("boards", "host", "pyproject.toml", "requirements", "rtl", "sim")
"""Folders and files of which any program of the project consists."""

ALONE = {"bitlane_rtl": ("rtl",), "cppsim": ("sim/cppsim",)}
"""Packages that import no other package of the product, and their folders."""

OTHERS = {"bitlane", "bitlane_boards", "bitlane_sim", "importlib", "multiprocessing", "subprocess"}
"""Packages that may load any other."""

RUNNER = (
    "conftest.py",
    *(
        f"support/{name}.py"
        for name in ("durations", "inputs", "known", "rotation", "seeds", "verdicts")
    ),
)
"""What runs the tests, of which only the text counts: the tests do not run what it imports."""


class Inputs:
    """The files that git knows in ``root``, as they are on disk now, and what depends on them.

    Raises ``OSError`` or ``subprocess.CalledProcessError`` without git or outside a repository.
    """

    def __init__(self, root: Path) -> None:
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=root,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        self._root, self._tests = root, root / "tests"
        self._sums = {name: _sum(root / name) for name in sorted(listed.split("\0")) if name}
        self._tools = _tools()

    def digest(self, module: Path) -> str:
        """Return the SHA-256 of all that the result of the test module ``module`` depends on."""
        files = self._closure([module, *self._conftests(module)])
        places = {place for file in files for place in _places(file)}
        names = {str(file.relative_to(self._root)) for file in files}
        names |= {f"tests/{name}" for name in RUNNER}
        names |= {name for name in self._sums if _is_below(name, places)}
        parts = [*self._tools, *(f"{name} {self._sums.get(name, '')}" for name in sorted(names))]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    def _conftests(self, module: Path) -> list[Path]:
        found = (folder / "conftest.py" for folder in module.parents if folder != self._tests)
        return [path for path in found if self._tests in path.parents and path.is_file()]

    def _closure(self, files: Iterable[Path]) -> set[Path]:
        """Return ``files`` and all below ``tests`` that they import, but those of `RUNNER`."""
        runner = {self._tests / name for name in RUNNER}
        found, left = set[Path](), set(files)
        while left:
            file = left.pop()
            found.add(file)
            imported = {path for name in _imports(file) for path in self._files_of(file, name)}
            left |= imported - found - runner
        return found

    def _files_of(self, importer: Path, name: str) -> Iterator[Path]:
        """Yield the files that an import of ``name`` runs, if they are below ``tests``."""
        depth = len(name) - len(name.lstrip("."))
        folder = importer.parents[depth - 1] if depth else self._tests
        for part in name[depth:].split("."):
            folder = folder / part
            yield from (
                path
                for path in (folder / "__init__.py", folder.with_suffix(".py"))
                if path.is_file()
            )


def _is_below(name: str, places: set[str]) -> bool:
    return "" in places or any(name == place or name.startswith(f"{place}/") for place in places)


@functools.cache
def _imports(file: Path) -> frozenset[str]:
    """Return the modules that ``file`` may import, at any place; relative ones begin with dots."""
    names = set[str]()
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            dot = "." if node.module else ""
            names |= {base, *(f"{base}{dot}{alias.name}" for alias in node.names)}
    return frozenset(names)


@functools.cache
def _places(file: Path) -> frozenset[str]:
    """Return the folders and files of the product that ``file`` itself depends on; "" is all."""
    text = file.read_text(encoding="utf-8")
    if "__file__" in text:
        return frozenset({""})
    packages = {name.partition(".")[0] for name in _imports(file)}
    if packages & OTHERS or "sys.executable" in text:
        return frozenset(PRODUCT)
    return frozenset(place for name in packages & ALONE.keys() for place in ALONE[name])


def _sum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "missing"


def _tools() -> list[str]:
    try:
        compiler = find_compiler().version
    except SimulationError:
        compiler = "no compiler"
    found = {f"{each.name} {each.version}" for each in distributions()}
    return [platform.python_version(), platform.platform(), compiler, *sorted(found)]
