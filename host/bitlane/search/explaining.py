"""The cost table of a search: how its rows are accessed, and by which commands."""

from collections.abc import Sequence

from ..compiler.explain import Explanation, aligned, traffic
from ..driver import Command
from ..lowering import cycles
from .database import Database
from .scan import ScanBackend, ScanLayout, ScannedRows
from .subsets import AccessPlan, GatheredRows, HostRows, RowRange, in_place

_HEAD = ["access", "rows", "others", "commands", "bytes read", "bytes written", "cycles"]


def explain_plan(
    database: Database, plan: AccessPlan, queries: int, backend: ScanBackend
) -> Explanation:
    """Return a line for each kind of access in ``plan``, and their sum. Executes nothing."""
    # Addresses do not matter but for where they are in a beat.
    base = database.driver.geometry.memory_base
    streamed = [each for each in plan.accesses if isinstance(each, RowRange)]
    gathered = [each for each in plan.accesses if isinstance(each, GatheredRows)]
    sent = [each for each in plan.accesses if isinstance(each, HostRows)]
    copies = list(database.copies([each.addresses for each in gathered], base))
    kinds: list[tuple[str, Sequence[RowRange | HostRows]]] = [
        ("in place", streamed),
        ("gathered", in_place(gathered, base, database.stride)),
        ("sent", sent),
    ]
    abilities = database.driver.geometry.abilities
    lines: list[tuple[str, tuple[int, ...]]] = []
    for name, ranges in kinds:
        if not ranges:
            continue
        rows = ScannedRows(database, ranges)
        wanted = sum(each.rows for each in ranges)
        commands = _compare(rows, queries, backend)
        if name == "gathered":
            commands = copies + commands
        costs = len(commands), *traffic(commands), cycles(commands, abilities)
        lines.append((name, (wanted, rows.count - wanted, *costs)))
    columns = zip(*(numbers for _, numbers in lines), strict=True)
    total = tuple(map(sum, columns)) if lines else (0,) * (len(_HEAD) - 1)
    cells = [[name, *(f"{number:,}" for number in numbers)] for name, numbers in lines]
    cells.append(["search", *(f"{number:,}" for number in total)])
    return Explanation("\n".join(aligned([_HEAD, *cells], 1)))


def _compare(rows: ScannedRows, queries: int, backend: ScanBackend) -> list[Command]:
    """Return the commands that compare ``rows`` to as many queries."""
    driver = rows.database.driver
    layout = ScanLayout(driver.allocator.largest(), queries, rows, backend)
    base = driver.geometry.memory_base
    return [
        command
        for first in range(0, queries, layout.queries)
        for piece in layout.tiles(base, first, min(layout.queries, queries - first))
        for command in piece.commands
    ]
