"""The circuit at a glance: rates over transfer sizes, and what cycles are spent on."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from bitlane.driver import Command, Walk
from bitlane_rtl.abi import BEATS_PER_BLOCK, Lane, Mode, Op, register
from cppsim import Program
from cppsim.errors import SimulationError

from .. import commands
from ..device.simulator import Simulator
from .contract import full_engine
from .job import check_fault, execute, prepare

_CHUNK = 512
"""Cycles between two looks at whether the job has ended."""

_LIMIT = 1 << 20
"""Cycles that a job may take."""


@dataclass(frozen=True, slots=True)
class Waits:
    """Cycles by cause; their sum is the time from DOORBELL to the last write response.

    Attributes
    ----------
    busy : int
        A beat was written.
    read_a, read_b : int
        There was none to write, and the memory owed data of A, or of B, which was further behind.
    write : int
        The memory did not take a beat, or owed the last response.
    command : int
        The engine was at work: a command on its way to the first request, or data in the pipeline.
    """

    busy: int
    read_a: int
    read_b: int
    write: int
    command: int

    @property
    def total(self) -> int:
        return sum(asdict(self).values())


def _runs(walk: Walk, command: Command) -> list[tuple[int, int]]:
    """Address and bytes of everything that is read at once, of at most one loop around the run."""
    starts = [walk.base]
    for count, jump in zip(command.counts, walk.jumps, strict=True):
        starts = [start + jump * k for k in range(count) for start in starts]
    if walk.mode is Mode.DENSE:
        return [(start, command.run * command.lane.bytes) for start in starts]
    return [
        (start + walk.stride * k, command.lane.bytes)
        for start in starts
        for k in range(command.run)
    ]


def bursts(runs: Iterable[tuple[int, int]], beat: int) -> list[int]:
    """Beats of every burst that reads ``runs``, pairs of address and bytes; ``beat`` in bytes."""
    lengths = []
    for address, size in runs:
        at, last = address // beat, (address + size - 1) // beat
        while at <= last:
            end = min(last, at | (BEATS_PER_BLOCK - 1))
            lengths.append(end - at + 1)
            at = end + 1
    return lengths


def spend(simulator: Simulator, command: Command, *, latency: int = 0, stall: float = 0.0) -> Waits:
    """Run ``command``, and say what its cycles were spent on.

    On a single read port, waits for B count as waits for A; its bursts must all be as long.
    Raises ``SimulationError`` if the command does not end well.
    """
    prepare(simulator, [command], latency=latency, stall=stall)
    two = "ar_b" in simulator.channels
    seen = _watch(simulator, two=two)
    beat = simulator.configuration.data_bytes
    lengths = {"": bursts(_runs(command.a, command), beat)}
    if command.b is not None:
        more = bursts(_runs(command.b, command), beat)
        if two:
            lengths["_b"] = more
        else:
            lengths[""] += more
    owed = {suffix: _owed(seen, suffix, each) for suffix, each in lengths.items()}
    return _sort(seen, owed)


def _watch(simulator: Simulator, *, two: bool) -> dict[str, NDArray[np.int64]]:
    """Ring, and record the monitor's counts after every cycle until the interrupt."""
    names = ["doorbell__count", "w__count", "w__stalls", "aw__stalls", "b__count"]
    names += ["ar__count", "r__count", *(("ar_b__count", "r_b__count") if two else ())]
    model = simulator.evaluator
    ring = {"data": 1, "address": register("DOORBELL").offset, "write": 1, "start": 1}
    for name, value in ring.items():
        model.set(f"control__{name}", value)
    each = [*names, "irq"]
    parts = [model.run(_looks(each, 1))]
    model.set("control__start", 0)
    while not parts[-1]["irq"][-1] and len(parts) < _LIMIT // _CHUNK:
        parts.append(model.run(_looks(each, _CHUNK)))
    parts.append(model.run(_looks(each, 4)))  # the monitor counts a cycle late
    check_fault(simulator, came=bool(parts[-1]["irq"][-1]))
    return {name: np.concatenate([x[name] for x in parts]).astype(np.int64) for name in names}


def _looks(ports: Sequence[str], cycles: int) -> Program:
    """Return a program that reads ``ports`` after each of ``cycles``."""
    program = Program()
    with program.repeat(cycles):
        program.step()
        for port in ports:
            program.get(port)
    return program


def _owed(
    seen: dict[str, NDArray[np.int64]], suffix: str, lengths: Sequence[int]
) -> NDArray[np.int64]:
    """Return the beats that were requested and outstanding after each cycle."""
    asked, came = seen[f"ar{suffix}__count"], seen[f"r{suffix}__count"]
    beats = np.concatenate([[0], np.cumsum(lengths)])
    if asked[-1] != len(lengths) or came[-1] != beats[-1]:
        raise SimulationError(
            f"bench: {asked[-1]} bursts of {came[-1]} beats were read; expected {len(lengths)} of"
            f" {beats[-1]}"
        )
    return beats[asked] - came


def _sort(seen: dict[str, NDArray[np.int64]], owed: dict[str, NDArray[np.int64]]) -> Waits:
    before = slice(None, -1)
    doorbell, written, answers = seen["doorbell__count"], seen["w__count"], seen["b__count"]
    # Counts after cycles k and k + 1 differ by the events of cycle k + 1.
    busy = np.diff(written) > 0
    held = (np.diff(seen["w__stalls"]) + np.diff(seen["aw__stalls"]) > 0) | (
        written[before] == written[-1]
    )
    due_a = owed[""][before] > 0
    due_b = np.zeros_like(due_a)
    filling = (written[before] == 0) & (seen["r__count"][before] > 0)
    if "_b" in owed:
        behind = seen["r_b__count"][before] < seen["r__count"][before]
        due_b = (owed["_b"][before] > 0) & (behind | ~due_a)
        filling &= seen["r_b__count"][before] > 0
    began = int(np.argmax(doorbell > 0))
    ended = int(np.argmax(answers == answers[-1]))
    causes = np.select([busy, held, filling, due_b, due_a], [0, 1, 4, 2, 3], 4)[began:ended]
    counts = np.bincount(causes, minlength=5).tolist()
    return Waits(counts[0], counts[3], counts[2], counts[1], counts[4])


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
                    spent += _spent(simulator, width, ports)
    return Profile(tuple(points), tuple(spent))


def _spent(simulator: Simulator, width: int, ports: int) -> list[Spent]:
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
