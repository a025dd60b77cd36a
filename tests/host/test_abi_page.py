"""docs/registers.md: nothing in it but what `abi` says, and all of that."""

from pathlib import Path

from bitlane.abi_page import page
from bitlane_rtl import abi

PAGE = Path(__file__).parents[2] / "docs" / "registers.md"


def test_the_committed_page_is_the_rendered_one() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run make docs"


def test_every_register_field_and_code_is_there() -> None:
    text = page()
    names = [entry.name for entry in abi.REGISTERS]
    names += [bits.name for entry in abi.REGISTERS for bits in entry.bits if bits.summary]
    names += [*abi.RECORD, *(bits.name for bits in abi.RECORD["CONTROL"].bits)]
    names += [code.name for codes in (abi.Op, abi.Lane, abi.Mode, abi.Status) for code in codes]
    assert [name for name in names if f"`{name}`" not in text] == []


def test_every_table_row_has_its_columns() -> None:
    columns = None
    for line in page().splitlines():
        cells = line.count("|")
        if not cells:
            columns = None
            continue
        columns = columns or cells
        assert cells == columns, line
