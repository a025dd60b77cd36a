"""The commands of pip that messages and pages print: where each stands, and what it installs."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from .docs.pages import PAGES, ROOT, blocks, code_words, name

SCRIPTS = ("Makefile", ".pre-commit-config.yaml", "requirements/renew.sh")
"""Files beside the packages and pages that print a command, or show one."""

_COMMAND = re.compile(r"\bpip install ((?:[^`;,)\"\n#&]|,(?=\w))+)")
_FUNCTIONS = ("how_to_install", "how_to_install_elsewhere")


def advice() -> set[tuple[str, str]]:
    """Return each file of the project and what a command there installs, as ``bitlane[onnx]``.

    An argument of `how_to_install` that is a variable is given by the variable's name.
    """
    found = {(name(page), words) for page in _pages() for words in _shown(page)}
    for folder in ("host", "cppsim/src", "sim", "boards", "examples", "tests/support/docs"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            if path.name != "installation.py":
                found |= {(name(path), words) for words in _printed(path)}
    for file in SCRIPTS:
        text = (ROOT / file).read_text(encoding="utf-8")
        found |= {(file, _plain(words)) for words in _COMMAND.findall(text)}
    return found


def _pages() -> list[Path]:
    """Return the pages but those on changes, whose commands were right once."""
    return [page for page in PAGES if page.name != "CHANGELOG.md"]


def _shown(page: Path) -> Iterator[str]:
    for text in (*code_words(page), *(block.text for block in blocks(page))):
        yield from map(_plain, _COMMAND.findall(text))


def _printed(path: Path) -> Iterator[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documentation = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if id(node) not in documentation:
                yield from map(_plain, _COMMAND.findall(node.value))
        elif isinstance(node, ast.Call):
            yield from _of_extras(node)


def _of_extras(call: ast.Call) -> Iterator[str]:
    """Yield what a call of `how_to_install`, or of ``set_defaults(extra=...)``, makes known."""
    if isinstance(call.func, ast.Name) and call.func.id in _FUNCTIONS:
        (argument,) = call.args
        yield (
            f"bitlane[{argument.value}]"
            if isinstance(argument, ast.Constant)
            else str(ast.unparse(argument))
        )
    for keyword in call.keywords:
        if keyword.arg == "extra" and isinstance(keyword.value, ast.Constant):
            yield f"bitlane[{keyword.value.value}]"


def _plain(words: str) -> str:
    return words.strip().replace("'", "")
