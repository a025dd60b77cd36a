"""Random commands for a core, and the memory that they must leave, guard bytes included.

The commands come from the contract. `models.record`, which shares no code with a circuit,
executes them.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bitlane_rtl.abi import RECORD_WORDS, Lane, Mode, Op
from bitlane_rtl.configuration import Configuration
from support.models.record import Fault, Interpreter, Record
from support.rtl.records import Task, pack
from support.rtl.walks import OPERAND_MODES, Walk, random_walk

__all__ = ["Outcome", "copy", "expected", "random_commands"]

_GUARD = 64
"""Guard bytes between the regions of the tensors; no command may touch them."""


@dataclass
class Outcome:
    """The memory after some commands, the number that retired, and the fault that stopped them."""

    memory: NDArray[np.uint8]
    retired: int
    fault: Fault | None


def copy(op: Op, a: int, b: int | None, y: int, size: int) -> Task:
    """Return a logic operation on ``size`` consecutive bytes."""

    def dense(base: int) -> Walk:
        return Walk(base, [size], [1], Mode.DENSE, Lane.BITS_8)

    return Task(op, dense(a), None if b is None else dense(b), dense(y))


def random_commands(
    generator: random.Random, configuration: Configuration, count: int
) -> list[Task]:
    """Return commands of any kind; A, B and each Y have separate regions between guard bytes."""
    room = configuration.memory_bytes - (count + 3) * _GUARD
    share = room // (count + 2) // 16 * 16
    return [_random_command(generator, configuration, share, number) for number in range(count)]


def _base(share: int, region: int) -> int:
    return _GUARD + region * (share + _GUARD)


def _random_command(
    generator: random.Random, configuration: Configuration, share: int, number: int
) -> Task:
    op = generator.choice(sorted(configuration.ops))
    widest = configuration.data_bytes.bit_length() - 1
    lane = Lane(generator.randrange(4))
    out_lane = generator.choice([Lane.BITS_8, Lane.BITS_32]) if op.counts else lane
    modes = [generator.choice(OPERAND_MODES) for _ in range(2)]
    y_mode = generator.choice([Mode.DENSE, Mode.DENSE, Mode.STRIDED])
    if lane > widest or generator.random() < 0.5:
        modes, y_mode = [Mode.DENSE, Mode.DENSE], Mode.DENSE
    if Mode.SUM in configuration.modes and op.counts and generator.random() < 0.3:
        y_mode, out_lane = Mode.SUM, Lane.BITS_32
    if not op.reads_b:
        modes[1] = Mode.DENSE
    plain = modes == [Mode.DENSE, Mode.DENSE] and y_mode is Mode.DENSE
    counts = [generator.choice([1, 3, 8, 21, 40])]
    counts += [generator.choice([1, 2, 3]) for _ in range(generator.randrange(configuration.loops))]
    while np.prod(counts) * max(lane.bytes, out_lane.bytes) * 5 > share:
        counts = [max(1, count // 2) for count in counts]

    def walk(region: int, mode: Mode, which: Lane, **options: bool) -> Walk:
        found = random_walk(
            generator,
            configuration,
            counts,
            mode,
            which,
            size=share,
            **{"aligned": False} | options,
        )
        base = _base(share, region)
        found.base += base - base % 16
        return found

    return Task(
        op,
        walk(0, modes[0], lane),
        walk(1, modes[1], lane) if op.reads_b else None,
        walk(
            2 + number,
            y_mode,
            out_lane,
            aligned=op.splits_lanes or not plain,
            disjoint=True,
        ),
        saturate=generator.random() < 0.5,
        arithmetic=generator.random() < 0.5,
        fence=generator.random() < 0.3,
    )


def expected(
    configuration: Configuration,
    tasks: Sequence[Task],
    before: NDArray[np.uint8],
    *,
    bad_reads: frozenset[int] = frozenset(),
    bad_writes: frozenset[int] = frozenset(),
) -> Outcome:
    """Return the outcome of ``tasks`` by the contract, in order, up to the first fault."""
    model = Interpreter(
        memory_bytes=configuration.memory_bytes,
        memory_base=configuration.memory_base,
        data_bytes=configuration.data_bytes,
        loops=configuration.loops,
        length_bits=configuration.length_bits,
        count_bits=configuration.count_bits,
        ops=configuration.ops,
        lanes=configuration.lanes,
        modes=configuration.modes,
        read_ports=2,  # a fault names the operand, however many ports there are
        fail_reads=bad_reads,
        fail_writes=bad_writes,
    )
    model.memory[:] = before
    for number, task in enumerate(tasks):
        words = pack(task)
        try:
            model.execute(Record(words + [0xEEEEEEEE] * (RECORD_WORDS - len(words))))
        except Fault as fault:
            return Outcome(model.memory, number, fault)
    return Outcome(model.memory, len(tasks), None)
