"""This module says how to install the packages of an extra here. It installs nothing.

An installation from a folder notes the folder in ``direct_url.json`` (PEP 610). cppsim lies in the
same folder and in no index, so that a command for an extra that needs it has to name both.
"""

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from .version import __version__

if TYPE_CHECKING:
    from importlib.metadata import Distribution

__all__ = ["how_to_install", "how_to_install_elsewhere"]

_OWN = "bitlane"
_SIMULATOR = "cppsim"
"""The package that lies in the folder ``cppsim`` of bitlane's repository."""


def how_to_install(extra: str) -> str:
    """Return the command that adds the packages of ``extra``: ``pip install 'bitlane[onnx]'``."""
    wanted = f"'{_OWN}[{extra}]'"
    own = _installed(_OWN)
    if own is None:  # the folders of a clone on PYTHONPATH
        return f"pip install {wanted}"
    folder, editable = _origin(own)
    if not folder or not _needs_simulator(own, extra) or _installed(_SIMULATOR):
        return f"pip install {wanted}"
    option = "-e " if editable else ""
    return f"pip install {option}{shlex.quote(str(folder / _SIMULATOR))} {wanted}"


def how_to_install_elsewhere(extra: str) -> str:
    """Return the command that installs this very bitlane with ``extra`` in another environment."""
    own = _installed(_OWN)
    folder = own and _origin(own)[0]
    if not own or not folder:
        return f"pip install '{_OWN}[{extra}]=={__version__}'"
    folders = [folder / _SIMULATOR] if _needs_simulator(own, extra) else []
    words = [*map(str, folders), f"{folder}[{extra}]"]
    return f"pip install {shlex.join(words)}"


def _origin(package: "Distribution") -> tuple[Path | None, bool]:
    """Return the folder that ``package`` was installed from, and whether it is used there."""
    import json

    try:
        origin: Any = json.loads(package.read_text("direct_url.json") or "{}")
    except ValueError:
        return None, False
    kind = origin.get("dir_info")
    parts = urlsplit(origin.get("url", ""))
    if kind is None or parts.scheme != "file":
        return None, False
    folder = Path(unquote(parts.path))
    return (folder if folder.is_dir() else None), bool(kind.get("editable"))


def _needs_simulator(package: "Distribution", extra: str) -> bool:
    """Return whether ``extra``, or an extra that it includes, requires cppsim."""
    for requirement in package.requires or ():
        text, _, marker = requirement.partition(";")
        if f"extra == '{extra}'" not in marker.replace('"', "'"):
            continue
        name, _, rest = text.strip().partition("[")
        if re.split(r"[^\w-]", name)[0] == _SIMULATOR:
            return True
        if name == _OWN and any(
            _needs_simulator(package, each.strip()) for each in rest.partition("]")[0].split(",")
        ):
            return True
    return False


def _installed(package: str) -> "Distribution | None":
    # Only who lacks something waits for this import.
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        return distribution(package)
    except PackageNotFoundError:
        return None
