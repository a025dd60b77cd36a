"""The notebooks: made of their pages, and each cell gives the output that is stored."""

import doctest
import json
from pathlib import Path
from typing import Any

import pytest

from support.docs.notebooks import NOTEBOOKS, cells, execute, notebook, text_of
from support.docs.pages import blocks, name


def stored(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found


@pytest.mark.parametrize("file", NOTEBOOKS, ids=name)
def test_a_notebook_has_the_cells_of_its_page(file: Path) -> None:
    found = stored(file)["cells"]
    made = [(cell["cell_type"], "".join(cell["source"])) for cell in found]
    assert made == list(cells(file.with_suffix(".md"))), "run make notebooks"
    assert len({cell["id"] for cell in found}) == len(found)
    assert sum(cell["cell_type"] == "code" for cell in found) > 5


@pytest.mark.slow
@pytest.mark.parametrize("file", NOTEBOOKS, ids=name)
def test_each_cell_of_a_notebook_gives_its_output(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert notebook(file.with_suffix(".md")) == stored(file), "run make notebooks"


@pytest.mark.parametrize("file", NOTEBOOKS, ids=name)
def test_the_output_of_a_notebook_is_that_of_its_page(file: Path) -> None:
    page = [block for block in blocks(file.with_suffix(".md")) if block.language == "python"]
    shown = [x for block in page for x in doctest.DocTestParser().get_examples(block.text)]
    wanted = [x.exc_msg or x.want for x in shown if x.want]
    outputs = [cell["outputs"] for cell in stored(file)["cells"] if cell["cell_type"] == "code"]
    assert ["".join(map(text_of, each)) for each in outputs if each] == wanted


class Shown:
    def __repr__(self) -> str:
        return "shown"

    def _repr_html_(self) -> str:
        return "<b>shown</b>"


def test_a_cell_is_executed_as_a_kernel_does() -> None:
    names = {"Shown": Shown}
    assert execute("x = 3", names) == []
    printed, result = execute("print(x)\nShown()", names)
    assert (printed["output_type"], printed["text"]) == ("stream", ["3\n"])
    assert result["data"] == {"text/plain": ["shown"], "text/html": ["<b>shown</b>"]}
    (raised,) = execute("import bitlane\nbitlane.open('none')", names)
    assert (raised["output_type"], raised["ename"]) == ("error", "bitlane.LinkError")
    assert "no link has the scheme 'none'" in raised["evalue"]
    with pytest.raises(NameError):
        execute("y", names)
