"""Plants bugs: components as they would be with other source. Changes no file."""

import importlib
import inspect
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType

import pytest


@dataclass(frozen=True)
class Bug:
    """A bug: ``replacement`` for ``text``, which occurs once in ``module`` of `bitlane_rtl`."""

    module: str
    text: str
    replacement: str

    def __str__(self) -> str:
        return f"{self.module}: {self.text} -> {self.replacement}"


def plant(bug: Bug, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the classes of ``bug.module`` the methods that they would have with ``bug`` in it.

    Whoever imported a class sees it changed; functions of the module change within it alone, and
    constructors not at all.
    """
    module = importlib.import_module(f"bitlane_rtl.{bug.module}")
    path = Path(inspect.getfile(module))
    source = path.read_text(encoding="utf-8")
    assert source.count(bug.text) == 1, f"{path} has {source.count(bug.text)} times {bug.text!r}"
    changed = dict(vars(module))
    exec(compile(source.replace(bug.text, bug.replacement), path, "exec"), changed)
    for name, original in vars(module).items():
        if isinstance(original, type) and original.__module__ == module.__name__:
            for method, function in vars(changed[name]).items():
                if isinstance(function, FunctionType) and not method.startswith("__"):
                    monkeypatch.setattr(original, method, function)
