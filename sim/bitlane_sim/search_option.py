"""The search array in URLs and on command lines. Text only."""

from dataclasses import astuple

from bitlane_rtl.configuration import Search

SEARCH_FORM = "UNITS[,ROW_BITS[,QUERIES[,NEAREST]]]"


def search_numbers(text: str) -> dict[str, int]:
    """The parameters of the array that ``text`` describes. Raises ``ValueError``."""
    try:
        numbers = [int(word) for word in text.split(",")]
    except ValueError:
        raise ValueError("not all are whole numbers") from None
    if len(numbers) > 4:
        raise ValueError(f"{len(numbers)} numbers")
    return dict(zip(("units", "row_bits", "queries", "nearest"), numbers, strict=False))


def parse_search(text: str) -> Search:
    """The array that ``text`` describes; what is left out is as usual. Raises ``ValueError``."""
    return Search(**search_numbers(text))


def search_text(search: Search) -> str:
    """All four numbers."""
    return ",".join(map(str, astuple(search)))
