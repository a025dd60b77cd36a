"""Prints areas and clocks as a table. Measures nothing."""

from collections.abc import Mapping, Sequence

from .designs import BLOCKS, DESIGNS, ON_REQUEST, Design
from .families import FAMILIES
from .measure import AreaRow
from .peers import Peer
from .place import Step

__all__ = ["choose", "introduction", "lines", "path_lines", "summary"]

_HEAD = (
    f"{'design':28} {'LUT4':>5} {'carry':>5} {'FF':>5} {'RAM':>16} {'MHz':>6} {'of seeds':>13}"
    f" {'GB/s':>5}  goal"
)


def choose(families: Sequence[str], names: Sequence[str], *, blocks: bool) -> list[Design]:
    """The designs for ``families``, of those only ``names`` if there are any.

    Raises ``ValueError`` for a name that no design of these families has.
    """
    usual = [design for design in DESIGNS + (BLOCKS if blocks else ()) if design.family in families]
    every = [design for design in DESIGNS + ON_REQUEST + BLOCKS if design.family in families]
    if not names:
        return usual
    for name in names:
        if all(design.name != name for design in every):
            have = ", ".join(dict.fromkeys(design.name for design in every))
            raise ValueError(f"{name!r} is no design; there are {have}")
    return [design for design in every if design.name in names]


def introduction(designs: Sequence[Design], seeds: int, versions: Mapping[str, str]) -> list[str]:
    """What is measured, on what, how and with what, and the table's head."""
    chips = {FAMILIES[design.family] for design in designs}
    text = [
        "Placed and routed out of context, between flip-flops whose cells do not count.",
        f"MHz: median of {seeds} seed{'s'[: seeds - 1]}; GB/s: width x MHz / 8, a beat a cycle.",
        ", ".join(f"{name} {version}" for name, version in versions.items()),
        "",
        *(f"{chip.name}: {chip.chip}" for chip in sorted(chips, key=lambda chip: chip.name)),
        *(f"{name}: {scope}" for name, scope in _scopes(designs).items()),
        "",
    ]
    return [*text, _HEAD]


def _scopes(designs: Sequence[Design]) -> dict[str, str]:
    scopes: dict[str, str] = {}
    for design in designs:
        if design not in BLOCKS:
            scopes.setdefault(design.name.replace(str(design.width), "W"), design.scope)
    return scopes


def summary(rows: Sequence[AreaRow]) -> str:
    """How many were placed, and how many of those with a goal meet it."""
    placed = [row for row in rows if not row.failure]
    goals = [row for row in rows if row.design.has_goal]
    met = sum(bool(row.met) for row in goals)
    return f"{len(placed)} of {len(rows)} designs placed; {met} of {len(goals)} goals met"


def lines(row: AreaRow) -> list[str]:
    """The row and, below it, its peers'."""
    design = row.design
    name = f"{design.family} {design.name}"
    if row.failure:
        size = f" (mapped to {row.cells.lut4} LUT4, {row.cells.ff} FF)" if row.cells else ""
        return [f"{name:28} NOT PLACED{size}: {row.failure}"]
    assert row.cells is not None
    assert row.mhz is not None
    assert row.gigabytes is not None
    ram = " ".join(f"{count} {_SHORT.get(kind, kind)}" for kind, count in row.cells.ram.items())
    clocks = sorted(placement.mhz for placement in row.placements)
    spread = f"{clocks[0]:.1f}-{clocks[-1]:.1f}"
    goals = []
    if design.most_lut4 is not None:
        goals.append(f"<= {design.most_lut4} LUT4")
    if design.least_mhz is not None:
        goals.append(f">= {design.least_mhz:g} MHz")
    verdict = {None: "-", True: ", ".join(goals) + ": met", False: ", ".join(goals) + ": NOT MET"}
    cells = row.cells
    line = (
        f"{name:28} {cells.lut4:5} {cells.carry:5} {cells.ff:5} {ram or '-':>16} {row.mhz:6.1f}"
        f" {spread:>13} {row.gigabytes:5.2f}  {verdict[row.met]}"
    )
    return [line, *map(_peer_line, row.peers)]


_SHORT = {"TRELLIS_DPR16X4": "DPR16X4", "SB_RAM40_4K": "RAM40"}


def _peer_line(peer: Peer) -> str:
    carry = "-" if peer.carry is None else str(peer.carry)
    ram = f"{peer.ram} RAM"
    return (
        f"  {peer.name:26} {peer.lut4:5} {carry:>5} {peer.ff:5} {ram:>16} {peer.mhz:6.1f}"
        f" {'':13} {peer.gigabytes:5.2f}  peer, recorded"
    )


def path_lines(row: AreaRow) -> list[str]:
    """The path that bounds the median placement's clock: parts of no delay are left out."""
    if row.median is None:
        return []
    path = row.median.path
    total = sum(step.delay for step in path)
    wires = sum(step.delay for step in path if step.kind == "routing")
    levels = sum(step.kind == "logic" and step.delay > 0 for step in path)
    title = (
        f"{row.design.family} {row.design.name}: {total:.2f} ns, {wires:.2f} of it on wires,"
        f" {levels} cells between the flip-flops (seed {row.median.seed})"
    )
    return [title, *(_step_line(step, at) for step, at in _running(path) if step.delay > 0)]


def _running(path: Sequence[Step]) -> list[tuple[Step, float]]:
    sums, total = [], 0.0
    for step in path:
        total += step.delay
        sums.append((step, total))
    return sums


def _step_line(step: Step, at: float) -> str:
    return f"  {at:6.2f} ns  {step.delay:+.2f}  {step.kind:9} {step.name}"
