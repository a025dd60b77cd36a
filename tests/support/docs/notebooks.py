"""The notebooks in docs/, made of pages: each cell is executed, and its output stored.

    python -m support.docs.notebooks

writes ``docs/first_hour_numpy.ipynb`` and ``docs/first_hour_fpga.ipynb`` from the pages of these
names. The format is nbformat 4.5.
"""

import ast
import contextlib
import doctest
import io
import json
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bitlane import BitlaneError

from .pages import ROOT, blocks

NOTEBOOKS = tuple(ROOT / "docs" / f"first_hour_{name}.ipynb" for name in ("numpy", "fpga"))

_NOTE = """\
*This notebook is made of [{page}]({page}). `pip install ./cppsim '.[sim]' notebook` in a
clone of the repository, in a new environment, installs the packages for it.*
"""


def cells(page: Path) -> Iterator[tuple[str, str]]:
    """Yield the cells of the notebook of ``page``: "markdown" or "code", and the source.

    A cell of code ends where the page shows output. Blocks of other languages stay in the text.
    """
    (kind, first), *rest = _cells(page)
    yield kind, first.replace("\n\n", f"\n\n{_NOTE.format(page=page.name)}\n", 1)
    yield from rest


def _cells(page: Path) -> Iterator[tuple[str, str]]:
    lines = page.read_text(encoding="utf-8").splitlines(keepends=True)
    end = 0
    for block in blocks(page):
        if block.language == "python":
            # The fences are the lines before and behind the block.
            yield "markdown", "".join(lines[end : block.line - 2]).strip()
            end = block.line + block.text.count("\n")
            yield from (("code", source) for source in code_cells(block.text))
    yield "markdown", "".join(lines[end:]).strip()


def code_cells(text: str) -> Iterator[str]:
    """Yield the statements of a doctest up to each output."""
    source = ""
    for example in doctest.DocTestParser().get_examples(text):
        source += example.source
        if example.want:
            yield source.rstrip("\n")
            source = ""
    if source:
        yield source.rstrip("\n")


def execute(source: str, names: dict[str, Any]) -> list[dict[str, Any]]:
    """Execute a cell in ``names``, as a kernel does; return its outputs in the form of nbformat."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    outputs: list[dict[str, Any]] = []
    with contextlib.redirect_stdout(printed):
        try:
            exec(compile(tree, "<cell>", "exec"), names)
            if isinstance(last, ast.Expr):
                result = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)
                outputs += [_shown(result)] if result is not None else []
        except BitlaneError as error:
            outputs += [_raised(error)]
    text = printed.getvalue()
    stream = {"output_type": "stream", "name": "stdout", "text": _lines(text)}
    return [stream, *outputs] if text else outputs


def _shown(result: Any) -> dict[str, Any]:
    data = {"text/plain": _lines(repr(result))}
    if hasattr(result, "_repr_html_"):
        data["text/html"] = _lines(result._repr_html_())
    return {"output_type": "execute_result", "data": data, "metadata": {}}


def _raised(error: Exception) -> dict[str, Any]:
    name, _, value = traceback.format_exception_only(error)[-1].strip().partition(": ")
    return {
        "output_type": "error",
        "ename": name,
        "evalue": value,
        "traceback": [f"{name}: {value}"],
    }


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def notebook(page: Path) -> dict[str, Any]:
    """Return the notebook of ``page``, executed."""
    names: dict[str, Any] = {}
    found: list[dict[str, Any]] = []
    count = 0
    for number, (kind, source) in enumerate(cells(page)):
        cell: dict[str, Any] = {"id": f"cell-{number}", "cell_type": kind, "metadata": {}}
        if kind == "code":
            count += 1
            outputs = execute(source, names)
            for output in outputs:
                if output["output_type"] == "execute_result":
                    output["execution_count"] = count
                elif output["output_type"] == "error":
                    cell["metadata"] = {"tags": ["raises-exception"]}
            cell |= {"execution_count": count, "outputs": outputs}
        found.append(cell | {"source": _lines(source)})
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": found, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def text_of(output: dict[str, Any]) -> str:
    """Return an output as Python's prompt prints it; of an error, its last line."""
    if output["output_type"] == "stream":
        return "".join(output["text"])
    if output["output_type"] == "error":
        return f"{output['ename']}: {output['evalue']}\n"
    return "".join(output["data"]["text/plain"]) + "\n"


def main() -> None:
    """Write the notebooks."""
    for file in NOTEBOOKS:
        made = notebook(file.with_suffix(".md"))
        text = json.dumps(made, indent=1, ensure_ascii=False, sort_keys=True)
        file.write_text(f"{text}\n", encoding="utf-8")
        print(f"wrote {file.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
