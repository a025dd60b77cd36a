"""The circuit at a glance: rates over transfer sizes, and what cycles are spent on."""

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass

from bitlane.driver.commands import Command
from bitlane_rtl.abi import Lane, Op

from ..campaigns import commands
from ..device.simulator import Simulator
from .contract import full_engine
from .job import execute
from .waits import Waits, spend

_SIZES = tuple(64 << k for k in range(11))
"""Bytes of a transfer: 64 B to 64 KiB."""

_SIZE = 1 << 12
"""Bytes of the work whose cycles are sorted: small enough to show what starting costs."""

PEER_POINTS = {
    "aximm2s -> axis2mm": {64: 16 / 38, 256: 64 / 86, 4096: 1024 / 1046, 65536: 16384 / 16406},
    "axi_cdma": {64: 16 / 22, 256: 64 / 73, 4096: 1024 / 1093, 65536: 16384 / 17413},
    "axidma": {64: 16 / 36, 256: 64 / 87, 4096: 1024 / 1137, 65536: 16384 / 17937},
}
"""Beats a cycle by bytes of a copy, 32 bits wide, from accepted command to last response: recorded
from the sources that `area.peers` names, on a memory like ours."""


@dataclass(frozen=True, slots=True)
class Point:
    """A transfer of ``size`` bytes on ``ports`` read ports: ``rate`` in beats written a cycle,
    from DOORBELL to the last response; ``bound``: what the ports allow, however long it is."""

    work: str
    width: int
    ports: int
    size: int
    rate: float
    bound: float


@dataclass(frozen=True, slots=True)
class Spent:
    """The cycles of ``work`` by cause, on an engine of ``width`` bits."""

    work: str
    width: int
    waits: Waits


@dataclass(frozen=True, slots=True)
class Profile:
    """All that the picture of `plot` shows."""

    points: tuple[Point, ...]
    spent: tuple[Spent, ...]

    def as_dict(self) -> dict[str, object]:
        return {
            "points": [asdict(point) for point in self.points],
            "spent": [asdict(spent) for spent in self.spent],
        }


def measure_profile(
    widths: Sequence[int], evaluator: str, progress: Callable[[str], None]
) -> Profile:
    """Measure rates for every width in bits, and sort the cycles of the first of 64, 32 and 128."""
    points: list[Point] = []
    spent: list[Spent] = []
    detailed = next(width for width in (64, 32, 128) if width in widths)
    for width in widths:
        for ports, op, bound in ((2, Op.NOT, 1.0), (1, Op.XOR, 0.5)):
            progress(f"{width} bits, {ports} read port{'s'[: ports - 1]}: transfer sizes")
            with closing(Simulator(full_engine(width, ports), evaluator)) as simulator:
                for size in _SIZES:
                    job = execute(simulator, [commands.logic(op, size)])
                    rate = job.written / job.done
                    points.append(Point(op.name, width, ports, size, rate, bound))
                if width == detailed:
                    progress(f"{width} bits: where cycles go")
                    spent += _sort(simulator, width, ports)
    return Profile(tuple(points), tuple(spent))


def _sort(simulator: Simulator, width: int, ports: int) -> list[Spent]:
    elements = _SIZE // 4
    xor = commands.logic(Op.XOR, _SIZE)
    work: list[tuple[str, Command, int, float]] = [("4 KiB XOR, one read port", xor, 0, 0.0)]
    if ports == 2:
        move = commands.logic(Op.NOT, _SIZE)
        work = [
            ("64 B NOT", commands.logic(Op.NOT, 64), 0, 0.0),
            ("4 KiB NOT", move, 0, 0.0),
            ("4 KiB NOT, latency 30", move, 30, 0.0),
            ("4 KiB XOR, two read ports", xor, 0, 0.0),
            ("4 KiB XOR, half stalled", xor, 0, 0.5),
            ("64 odd rows of 64 B", commands.rows(_SIZE // commands.ROW), 0, 0.0),
            ("gather of 16-bit elements", commands.gather(elements), 0, 0.0),
            ("scatter of 16-bit elements", commands.scatter(elements), 0, 0.0),
            ("4 KiB COUNT, 8 to 32 bits", commands.count(Lane.BITS_8, Lane.BITS_32, _SIZE), 0, 0.0),
            ("4 KiB COUNT, 64 to 8 bits", commands.count(Lane.BITS_64, Lane.BITS_8, _SIZE), 0, 0.0),
        ]
    return [
        Spent(name, width, spend(simulator, command, latency=latency, stall=stall))
        for name, command, latency, stall in work
    ]
