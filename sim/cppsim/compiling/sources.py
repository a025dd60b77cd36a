"""A digest of source files, part of the keys of a cache."""

import hashlib
import os
from collections.abc import Iterator
from importlib.util import find_spec

__all__ = ["source_digest"]

_SUFFIXES = (".py", ".h")


def source_digest(*names: str) -> str:
    """SHA-256 of all Python and C++ of packages and modules, as it is on disk now.

    Raises ``ModuleNotFoundError`` for an unknown name, ``OSError`` if a file disappears or a
    package is installed without its sources.
    """
    total = hashlib.sha256()
    for name in names:
        files = sorted(_files(name))
        if not files:
            raise FileNotFoundError(
                f"package {name} has no source files; expected it installed in a folder, with them"
            )
        for relative, path in files:
            with open(path, "rb") as file:  # noqa: PTH123 - see `_files`
                content = file.read()
            total.update(f"{name} {relative} {len(content)}\n".encode())
            total.update(content)
    return total.hexdigest()


def _files(name: str) -> Iterator[tuple[str, str]]:
    """Yield the files of a package or module: the path within it, and the whole path.

    Paths are text: as objects, those of a system's sources take 10 ms.
    """
    spec = find_spec(name)
    if spec is None:
        raise ModuleNotFoundError(f"no module named {name!r}", name=name)
    if spec.submodule_search_locations is None:
        yield "", str(spec.origin)
        return
    for root in map(str, spec.submodule_search_locations):
        for folder, _, files in os.walk(root, followlinks=True):
            for file in files:
                # Editors keep locks and copies in files that begin with a dot.
                if file.endswith(_SUFFIXES) and not file.startswith("."):
                    path = f"{folder}{os.sep}{file}"
                    yield path[len(root) + 1 :], path
