"""The speed contract: what is measured, how, its goal, and the best that others reach.

All figures are clock cycles of the simulated circuit, so a run gives the same ones every time.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass

from bitlane.commands import Command, Walk
from bitlane_rtl.abi import Lane, Mode, Op
from bitlane_rtl.configuration import Configuration

from ..simulator import Simulator
from .job import dense, execute, move
from .sram import three_streams

__all__ = ["Row", "measure"]

_MEMORY = 1 << 24
_A, _B, _Y = 0, 1 << 20, 1 << 21


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the contract.

    ``measured`` is in ``unit``; ``goal`` is met if it is not below it, or not above it if ``less``;
    ``ratio``: measured to ``limit``, what the buses allow, or None where that is 0.
    """

    work: str
    width: int
    unit: str
    limit: float
    goal: float
    peer: str
    measured: float
    less: bool = False

    @property
    def met(self) -> bool:
        return self.measured <= self.goal if self.less else self.measured >= self.goal

    @property
    def ratio(self) -> float | None:
        return self.measured / self.limit if self.limit else None

    def as_dict(self) -> dict[str, object]:
        return {**asdict(self), "ratio": self.ratio, "met": self.met}


def measure(
    widths: Sequence[int], evaluator: str, progress: Callable[[str], None]
) -> Iterator[Row]:
    """Measure every row for every width in bits; ``progress`` is told what comes next."""
    for width in widths:
        progress(f"{width} bits, two read ports")
        with _simulator(width, 2, evaluator) as simulator:
            yield from _two_ports(simulator, width)
        progress(f"{width} bits, one read port")
        with _simulator(width, 1, evaluator) as simulator:
            yield _shared_port(simulator, width)
    progress("32 bits, on-chip memory with one port")
    yield Row(
        "three streams on one single-port SRAM",
        32,
        "word/cycle",
        1 / 3,
        0.33,
        "-",
        three_streams(evaluator),
    )


class _simulator:
    """A simulator of an engine with all operators, closed at the end."""

    def __init__(self, width: int, ports: int, evaluator: str) -> None:
        configuration = Configuration(data_width=width, read_ports=ports, memory_bytes=_MEMORY)
        self._simulator = Simulator(configuration, evaluator)

    def __enter__(self) -> Simulator:
        return self._simulator

    def __exit__(self, *exception: object) -> None:
        self._simulator.close()


def _shared_port(simulator: Simulator, width: int) -> Row:
    job = execute(simulator, [move(Op.XOR, 1 << 16, _A, _B, _Y)])
    rate = job.written / job.writing
    return Row("64 KiB XOR, shared read port", width, "beat/cycle", 0.5, 0.499, "-", rate)


def _two_ports(simulator: Simulator, width: int) -> Iterator[Row]:
    beat = width // 8

    def row(work: str, unit: str, goal: float, peer: str, value: float, limit: float = 1.0) -> Row:
        return Row(work, width, unit, limit, goal, peer, value)

    for op, b in ((Op.NOT, None), (Op.XOR, _B)):
        job = execute(simulator, [move(op, 1 << 16, _A, b, _Y)])
        between = job.written / job.writing
        yield row(f"64 KiB {op.name}, first to last write", "beat/cycle", 1.0, "1.000", between)
        if width <= 64:
            whole = job.written / job.done
            yield row(f"64 KiB {op.name}, with start-up", "beat/cycle", 0.998, "0.999", whole)

    job = execute(simulator, [move(Op.NOT, 1 << 16, _A, None, _Y)], latency=30)
    value = job.written / job.done
    yield row("64 KiB NOT, 30 cycles of latency", "beat/cycle", 0.98, "0.938", value)

    job = execute(simulator, [move(Op.NOT, 64, _A, None, _Y)])
    beats = 64 // beat
    yield Row(
        f"64 B NOT, doorbell to last response (N = {beats})",
        width,
        "cycles",
        beats + 3,
        beats + 12,
        "N + 6",
        job.done,
        less=True,
    )

    for name, a, goal in (("aligned", _A, 0.0), ("A at odd bytes", _A + 1, 1.0)):
        commands = [move(Op.NOT, 64, a + 128 * k, None, _Y + 128 * k) for k in range(12)]
        job = execute(simulator, commands)
        idle = (job.writing - job.written) / (len(commands) - 1)
        yield Row(
            f"idle write cycles between 64 B commands, {name}",
            width,
            "cycles",
            goal,
            goal,
            "1",
            idle,
            less=True,
        )

    job = execute(simulator, [_rows(256)])
    yield row("256 rows of 64 B at odd addresses", "of bound", 0.98, "0.80", job.bound / job.done)

    elements = 4096
    for name, command in (("gather", _gather(elements)), ("scatter", _scatter(elements))):
        job = execute(simulator, [command])
        yield row(f"{name} of 16-bit elements", "element/cycle", 0.98, "-", elements / job.done)

    for lane, out_lane in ((Lane.BITS_8, Lane.BITS_32), (Lane.BITS_64, Lane.BITS_8)):
        job = execute(simulator, [_count(lane, out_lane, 1 << 16)])
        name = f"64 KiB COUNT, {lane.bits} to {out_lane.bits} bits"
        yield row(name, "of bound", 0.99, "-", job.bound / job.done)

    job = execute(simulator, [move(Op.XOR, 1 << 16, _A, _B, _Y)], stall=0.5)
    value = 2 * job.bound / job.done
    yield row("64 KiB XOR, half of all handshakes stalled", "of slowest port", 0.95, "-", value)


def _rows(count: int) -> Command:
    """Rows of 64 bytes, 65 and 67 bytes apart, so that every byte offset occurs."""
    return Command(
        Op.NOT,
        Lane.BITS_8,
        Lane.BITS_8,
        64,
        dense(_A + 1, 64, (65,), 65 * (count - 1)),
        None,
        dense(_Y + 3, 64, (67,), 67 * (count - 1)),
        (count,),
    )


def _strided(base: int, stride: int, count: int, lane: Lane) -> Walk:
    return Walk(base, base + stride * (count - 1) + lane.bytes - 1, Mode.STRIDED, stride)


def _gather(count: int) -> Command:
    lane = Lane.BITS_16
    a = _strided(_A + 2, 6, count, lane)
    return Command(Op.NOT, lane, lane, count, a, None, dense(_Y, 2 * count))


def _scatter(count: int) -> Command:
    lane = Lane.BITS_16
    y = _strided(_Y + 2, 6, count, lane)
    return Command(Op.NOT, lane, lane, count, dense(_A, 2 * count), None, y)


def _count(lane: Lane, out_lane: Lane, size: int) -> Command:
    count = size // lane.bytes
    a, y = dense(_A, size), dense(_Y, count * out_lane.bytes)
    return Command(Op.COUNT, lane, out_lane, count, a, None, y)
