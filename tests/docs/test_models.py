"""The tables of the page on models are those of the code."""

from collections.abc import Callable

import pytest

from support.docs.model_tables import level_table, operator_table
from support.docs.pages import ROOT

PAGE = ROOT / "docs" / "models.md"


@pytest.mark.parametrize("table", [operator_table, level_table])
def test_the_page_has_the_tables_of_the_code(table: Callable[[], list[str]]) -> None:
    wanted = "\n".join(table())
    assert wanted in PAGE.read_text(encoding="utf-8"), f"\n{wanted}"
