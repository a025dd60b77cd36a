"""Prints areas and clocks as a table. Measures nothing."""

from collections.abc import Mapping, Sequence

from ..flow import Cells
from .chips import CHIPS
from .designs import DESIGNS, ON_REQUEST, Design
from .measure import AreaRow
from .peers import Peer
from .place import Arc

__all__ = ["choose", "introduction", "lines", "path_lines", "summary"]

_HEAD = (
    f"{'design':28} {'LUT4':>5} {'carry':>5} {'FF':>5} {'RAM':>16} {'MHz':>6} {'of seeds':>13}"
    f" {'GB/s':>5}  goal"
)


def choose(families: Sequence[str], names: Sequence[str]) -> list[Design]:
    """Return the designs for ``families``; only those called ``names``, if ``names`` is not empty.

    Raises ``ValueError`` for a name that no design of these families has.
    """
    if not names:
        return [design for design in DESIGNS if design.family in families]
    every = [design for design in DESIGNS + ON_REQUEST if design.family in families]
    for name in names:
        if all(design.name != name for design in every):
            have = ", ".join(dict.fromkeys(design.name for design in every))
            raise ValueError(f"{name!r} is not a design; there are {have}")
    return [design for design in every if design.name in names]


def introduction(designs: Sequence[Design], seeds: int, versions: Mapping[str, str]) -> list[str]:
    """Return the lines above the table: method, tools, chips and designs, and its head."""
    chips = {design.family: CHIPS[design.family] for design in designs}
    scopes = {design.name.replace(str(design.width), "W"): design.scope for design in designs}
    text = [
        "Placed and routed out of context, between flip-flops whose cells do not count.",
        f"MHz: median of {seeds} seed{'s'[: seeds - 1]}; GB/s: width x MHz / 8, a beat a cycle.",
        ", ".join(f"{name} {version}" for name, version in versions.items()),
        "",
        *(f"{name}: {chip.title}" for name, chip in sorted(chips.items())),
        *(f"{name}: {scope}" for name, scope in scopes.items()),
        "",
    ]
    return [*text, _HEAD]


def summary(rows: Sequence[AreaRow]) -> str:
    """Return the line below the table, which counts placed designs and met goals."""
    placed = [row for row in rows if not row.failure]
    goals = [row for row in rows if row.design.has_goal]
    met = sum(bool(row.met) for row in goals)
    return f"{len(placed)} of {len(rows)} designs placed; {met} of {len(goals)} goals met"


def lines(row: AreaRow) -> list[str]:
    """Return the lines of ``row``, of its peers and of its parts."""
    design = row.design
    name = f"{design.family} {design.name}"
    if row.failure:
        size = f" (mapped to {row.cells.lut4} LUT4, {row.cells.ff} FF)" if row.cells else ""
        return [f"{name:28} NOT PLACED{size}: {row.failure}"]
    assert row.cells is not None
    assert row.mhz is not None
    assert row.gigabytes is not None
    clocks = sorted(placement.mhz for placement in row.placements)
    spread = f"{clocks[0]:.1f}-{clocks[-1]:.1f}"
    goals = []
    if design.most_lut4 is not None:
        goals.append(f"<= {design.most_lut4} LUT4")
    if design.least_mhz is not None:
        goals.append(f">= {design.least_mhz:g} MHz")
    verdict = {None: "-", True: ", ".join(goals) + ": met", False: ", ".join(goals) + ": NOT MET"}
    line = (
        f"{name:28} {_cells(row.cells)} {row.mhz:6.1f} {spread:>13} {row.gigabytes:5.2f}"
        f"  {verdict[row.met]}"
    )
    return [line, *map(_peer_line, row.peers), *_parts(row)]


def _cells(cells: Cells) -> str:
    ram = " ".join(f"{count} {_SHORT.get(kind, kind)}" for kind, count in cells.ram.items())
    return f"{cells.lut4:5} {cells.carry:5} {cells.ff:5} {ram or '-':>16}"


def _parts(row: AreaRow) -> list[str]:
    """Return a line for each part, below the part that contains it."""
    return [
        f"{'  ' * path.count('.') + '  ' + path.rpartition('.')[2]:28} {_cells(cells)}"
        for path, cells in row.parts.items()
    ]


_SHORT = {"TRELLIS_DPR16X4": "DPR16X4", "SB_RAM40_4K": "RAM40"}


def _peer_line(peer: Peer) -> str:
    carry = "-" if peer.carry is None else str(peer.carry)
    ram = f"{peer.ram} RAM"
    return (
        f"  {peer.name:26} {peer.lut4:5} {carry:>5} {peer.ff:5} {ram:>16} {peer.mhz:6.1f}"
        f" {'':13} {peer.gigabytes:5.2f}  peer, recorded"
    )


def path_lines(row: AreaRow) -> list[str]:
    """Return the critical path of the median placement, without parts of no delay."""
    if row.median is None:
        return []
    path = row.median.path
    total = sum(arc.delay for arc in path)
    wires = sum(arc.delay for arc in path if arc.kind == "routing")
    levels = sum(arc.kind == "logic" and arc.delay > 0 for arc in path)
    title = (
        f"{row.design.family} {row.design.name}: {total:.2f} ns, {wires:.2f} of it on wires,"
        f" {levels} cells between the flip-flops (seed {row.median.seed})"
    )
    return [title, *(_arc_line(arc, at) for arc, at in _running(path) if arc.delay > 0)]


def _running(path: Sequence[Arc]) -> list[tuple[Arc, float]]:
    sums, total = [], 0.0
    for arc in path:
        total += arc.delay
        sums.append((arc, total))
    return sums


def _arc_line(arc: Arc, at: float) -> str:
    return f"  {at:6.2f} ns  {arc.delay:+.2f}  {arc.kind:9} {arc.name}"
