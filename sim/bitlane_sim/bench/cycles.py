"""Prints the speed contract as a table. Measures nothing."""

from .contract import Row

__all__ = ["HEADER", "line", "summary"]

_LINE = "{:55} {:>4}  {:15} {:>7} {:>7} {:>6} {:>9} {:>6}  {}"
HEADER = _LINE.format(
    *("work", "bits", "unit", "goal", "bound", "peer", "measured", "ratio", "met")
)


def line(row: Row) -> str:
    ratio = "-" if row.ratio is None else f"{row.ratio:.3f}"
    met = {None: "-", True: "yes", False: "NO"}[row.met]
    known = (_number(row, value) for value in (row.goal, row.bound, row.peer))
    measured = _number(row, row.measured, 4)
    return _LINE.format(row.work, row.width, row.unit, *known, measured, ratio, met)


def _number(row: Row, value: float | None, digits: int = 3) -> str:
    if value is None:
        return "-"
    return f"{value:g}" if row.unit == "cycles" else f"{value:.{digits}f}"


def summary(rows: list[Row]) -> str:
    """How many of the rows that have a goal meet it."""
    goals = [row for row in rows if row.met is not None]
    return f"{sum(map(bool, (row.met for row in goals)))} of {len(goals)} rows met"
