"""Prints the speed contract as a table. Measures nothing."""

from .contract import Row

__all__ = ["HEADER", "line", "summary"]

HEADER = (
    f"{'work':55} {'bits':>4}  {'unit':15} {'goal':>7} {'bound':>7} {'peer':>6}"
    f" {'measured':>9} {'ratio':>6}  met"
)


def line(row: Row) -> str:
    ratio = "-" if row.ratio is None else f"{row.ratio:.3f}"
    met = {None: "-", True: "yes", False: "NO"}[row.met]
    return (
        f"{row.work:55} {row.width:4}  {row.unit:15} {_number(row, row.goal):>7}"
        f" {_number(row, row.bound):>7} {_number(row, row.peer):>6}"
        f" {_number(row, row.measured, 4):>9} {ratio:>6}  {met}"
    )


def _number(row: Row, value: float | None, digits: int = 3) -> str:
    if value is None:
        return "-"
    return f"{value:g}" if row.unit == "cycles" else f"{value:.{digits}f}"


def summary(rows: list[Row]) -> str:
    """How many of the rows that have a goal meet it."""
    goals = [row for row in rows if row.met is not None]
    return f"{sum(map(bool, (row.met for row in goals)))} of {len(goals)} rows met"
