"""The speed contract: what is measured, how, its goal, and the best that others reach.

All figures are clock cycles of the simulated circuit, so a run gives the same ones every time.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from importlib.metadata import entry_points

from bitlane_rtl.abi import Lane, Op
from bitlane_rtl.configuration import Configuration
from bitlane_rtl.configurations import full

from .. import commands
from ..device.simulator import Simulator
from .job import execute
from .sram import three_streams

ENTRY_POINT_GROUP = "bitlane.contract"
"""Entry points that yield more rows for a width in bits; they run compiled code."""

_SIZE = 1 << 16
_QUEUED = 12
"""Commands rung for at once, where the cycles between them are measured."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the contract.

    ``measured`` is in ``unit``; ``goal`` is met if it is not below it, or not above it if ``less``;
    None: shown, but the contract asks for nothing at this width. ``bound``: what the buses allow.
    ``peer``: the best that another core was measured to reach, None if there is none.
    ``ratio``: measured to ``bound``, or None where that is 0.
    """

    work: str
    width: int
    unit: str
    bound: float
    goal: float | None
    peer: float | None
    measured: float
    less: bool = False

    @property
    def met(self) -> bool | None:
        if self.goal is None:
            return None
        return self.measured <= self.goal if self.less else self.measured >= self.goal

    @property
    def ratio(self) -> float | None:
        return self.measured / self.bound if self.bound else None

    def as_dict(self) -> dict[str, object]:
        return {**asdict(self), "ratio": self.ratio, "met": self.met}


def full_engine(width: int, ports: int) -> Configuration:
    """The engine that is measured."""
    return replace(full(width), read_ports=ports)


def measure(
    widths: Sequence[int], evaluator: str, progress: Callable[[str], None]
) -> Iterator[Row]:
    """Measure every row for every width in bits; ``progress`` gets the name of the next row."""
    for width in widths:
        progress(f"{width} bits, two read ports")
        with closing(Simulator(full_engine(width, 2), evaluator)) as simulator:
            yield from _long(simulator, width)
            yield from _short(simulator, width)
            yield from _shapes(simulator, width)
            yield from _row_sums(simulator, width)
        progress(f"{width} bits, one read port")
        with closing(Simulator(full_engine(width, 1), evaluator)) as simulator:
            job = execute(simulator, [commands.logic(Op.XOR, _SIZE)])
            rate = job.written / job.done
            work = "64 KiB XOR, shared read port, with start-up"
            yield Row(work, width, "beat/cycle", 0.5, 0.499, None, rate)
        progress(f"{width} bits, on-chip memory with one port")
        work = "16 KiB XOR, three streams on one single-port SRAM"
        rate = three_streams(width, evaluator)
        yield Row(work, width, "word/cycle", 1 / 3, 0.33, None, rate)
        if evaluator == "compiled":
            for entry in entry_points(group=ENTRY_POINT_GROUP):
                progress(f"{width} bits, {entry.name}")
                yield from entry.load()(width)


_STARTED_PEER = {32: 0.999, 64: 0.997}
"""aximm2s -> axis2mm: 16384 beats in 16406 cycles, 8192 in 8214."""

_SHORT_PEER = {32: 22, 64: 14, 128: 10}
"""axi_cdma, descriptor accepted to last response of 64 bytes."""


def _long(simulator: Simulator, width: int) -> Iterator[Row]:
    """Long dense transfers: rates."""

    def row(work: str, goal: float | None, peer: float | None, value: float) -> Row:
        return Row(work, width, "beat/cycle", 1.0, goal, peer, value)

    for op in (Op.NOT, Op.XOR):
        job = execute(simulator, [commands.logic(op, _SIZE)])
        work = f"64 KiB {op.name}"
        yield row(f"{work}, first to last write", 1.0, 1.0, job.written / job.writing)
        goal = 0.998 if width <= 64 else None
        peer = _STARTED_PEER.get(width)
        yield row(f"{work}, with start-up", goal, peer, job.written / job.done)
    job = execute(simulator, [commands.logic(Op.NOT, _SIZE)], latency=30)
    yield row("64 KiB NOT, 30 cycles of latency", 0.98, 0.938, job.written / job.done)
    job = execute(simulator, [commands.logic(Op.XOR, _SIZE)], stall=0.5)
    work = "64 KiB XOR, half of all handshakes stalled"
    value = 2 * job.bound / job.done
    yield Row(work, width, "of slowest port", 1.0, 0.95, None, value)


def _short(simulator: Simulator, width: int) -> Iterator[Row]:
    """Short commands: cycles."""
    beats = 8 * 64 // width
    job = execute(simulator, [commands.logic(Op.NOT, 64)])
    yield Row(
        f"64 B NOT, doorbell to last response (N = {beats})",
        width,
        "cycles",
        beats + 3,
        beats + {32: 12, 64: 14}[width] if width <= 64 else None,
        _SHORT_PEER.get(width),
        job.done,
        less=True,
    )
    # Y in the middle of a beat needs a beat more on W; A beyond it a beat more on R.
    for name, op, a, y, bound in (
        ("NOT, aligned", Op.NOT, 0, 0, 0.0),
        ("XOR, aligned", Op.XOR, 0, 0, 0.0),
        ("NOT, Y at odd bytes", Op.NOT, 0, 1, 0.0),
        ("NOT, A at odd bytes", Op.NOT, 1, 0, 1.0),
    ):
        job = execute(simulator, commands.queue(op, _QUEUED, 64, a=a, y=y))
        idle = (job.writing - job.written) / (_QUEUED - 1)
        work = f"idle write cycles between 64 B {name}"
        yield Row(work, width, "cycles", bound, bound, 1, idle, less=True)


def _shapes(simulator: Simulator, width: int) -> Iterator[Row]:
    """Runs that do not fill beats, and lanes that change."""

    def row(work: str, unit: str, goal: float, peer: float | None, value: float) -> Row:
        return Row(work, width, unit, 1.0, goal, peer, value)

    job = execute(simulator, [commands.rows(256)])
    work = "256 rows of 64 B at odd addresses"
    yield row(work, "of bound", 0.98, 0.80, job.bound / job.done)
    job = execute(simulator, [commands.rows(256, Op.XOR)])
    work = "256 rows of 64 B at odd addresses, XOR"
    yield row(work, "of bound", 0.98, None, job.bound / job.done)
    elements = 4096
    for name, command in (
        ("gather", commands.gather(elements)),
        ("scatter", commands.scatter(elements)),
    ):
        job = execute(simulator, [command])
        work = f"{name} of 16-bit elements"
        yield row(work, "element/cycle", 0.98, None, elements / job.done)
    for lane, out_lane in ((Lane.BITS_8, Lane.BITS_32), (Lane.BITS_64, Lane.BITS_8)):
        job = execute(simulator, [commands.count(lane, out_lane, _SIZE)])
        work = f"64 KiB COUNT, {lane.bits} to {out_lane.bits} bits"
        yield row(work, "of bound", 0.99, None, job.bound / job.done)


def _row_sums(simulator: Simulator, width: int) -> Iterator[Row]:
    """Count the bits that differ in rows: a number for each row."""
    for work, goal, command in (
        ("256 rows of 256 B against one, row sums", 0.98, commands.against_one(256, 256)),
        ("256 pairs of rows of 256 B, row sums", 0.98, commands.pairs(256, 256)),
        (
            "256 pairs of rows of 255 B at odd addresses, row sums",
            0.97,
            commands.odd_pairs(256, 255),
        ),
        ("1024 rows of 8 B against one, row sums", 0.98, commands.against_one(1024, 8)),
    ):
        job = execute(simulator, [command])
        yield Row(work, width, "of bound", 1.0, goal, None, job.bound / job.done)
    job = execute(simulator, [commands.array_equal(_SIZE)])
    work = "two arrays of 64 KiB, whether they are equal"
    least = 0.998 if width <= 64 else None
    yield Row(work, width, "of bound", 1.0, least, None, job.bound / job.done)


_LINE = "{:55} {:>4}  {:15} {:>7} {:>7} {:>6} {:>9} {:>6}  {}"
HEADER = _LINE.format(
    *("work", "bits", "unit", "goal", "bound", "peer", "measured", "ratio", "met")
)


def line(row: Row) -> str:
    """Return ``row`` as a line of the table below `HEADER`."""
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
    """Return a line with the number of rows that meet their goal."""
    goals = [row for row in rows if row.met is not None]
    return f"{sum(map(bool, (row.met for row in goals)))} of {len(goals)} rows met"
