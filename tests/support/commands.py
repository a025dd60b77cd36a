"""Random valid commands for circuits of any configuration, and the memory that they must leave.

The commands come from the contract. `support.rtl.records` executes them, element by element.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitlane_rtl.abi import Lane, Mode, Op
from bitlane_rtl.configuration import Configuration
from support.rtl.records import Failure, Task, apply
from support.rtl.walks import OPERAND_MODES, Walk, random_walk


@dataclass(frozen=True)
class Form:
    """The operation of a command, its lanes, and the modes of A, B and Y."""

    op: Op
    lane: Lane
    out_lane: Lane
    modes: tuple[Mode, Mode, Mode]

    @property
    def is_dense(self) -> bool:
        return set(self.modes) == {Mode.DENSE}


def random_form(
    generator: random.Random, configuration: Configuration, *, sums: float = 0.4
) -> Form:
    """Return a form that the circuit executes; half of all are dense, ``sums`` of counts sum."""
    op = generator.choice(sorted(configuration.ops - {Op.SEARCH}))
    lane = generator.choice(sorted(configuration.lanes if op.splits_lanes else Lane))
    built = lane in configuration.lanes and lane.bytes <= configuration.data_bytes
    a, b, y = (
        generator.choice([mode for mode in modes if mode in configuration.modes])
        for modes in (OPERAND_MODES, OPERAND_MODES, (Mode.DENSE, Mode.DENSE, Mode.STRIDED))
    )
    if not built or generator.random() < 0.5:
        a = b = y = Mode.DENSE
    out_lane = generator.choice([Lane.BITS_8, Lane.BITS_32]) if op.counts else lane
    if Mode.SUM in configuration.modes and op.counts and generator.random() < sums:
        y, out_lane = Mode.SUM, Lane.BITS_32
    return Form(op, lane, out_lane, (a, b if op.reads_b else Mode.DENSE, y))


def random_tests(generator: random.Random, op: Op) -> dict[str, bool]:
    """Return TEST and NEGATE of ``op``: a third of counts is tested, and a third negated, too."""
    test, negate = generator.choice([(False, False), (True, False), (True, True)])
    return {"test": op.counts and test, "negate": op.counts and negate}


@dataclass(frozen=True, kw_only=True)
class RandomCommands:
    """A description of commands for a circuit of ``configuration``, to draw them from.

    Each stream has a region of ``size`` bytes, a multiple of 16; those of A and B begin at ``a``
    and ``b``.
    """

    configuration: Configuration
    size: int
    a: int = 0
    b: int = 0
    runs: Sequence[int] = (1, 3, 8, 33)
    counts: Sequence[int] = (1, 2, 3)
    """Elements of a run, and iterations of an outer loop."""
    long: float = 0.0
    """Probability of a command of one dense run of up to an eighth of a region."""
    sums: float = 0.4
    fences: float = 0.5
    interrupts: float = 0.0
    disjoint: bool = True
    """Whether no byte of Y is written twice by one command."""

    def draw(self, generator: random.Random, y: int) -> Task:
        """Return a command with Y in the region that begins at ``y``."""
        form = random_form(generator, self.configuration, sums=self.sums)
        if generator.random() < self.long:
            form = Form(form.op, form.lane, form.lane, (Mode.DENSE,) * 3)
            if form.op.counts:
                form = Form(form.op, form.lane, Lane.BITS_8, form.modes)
            counts = [generator.randint(100, self.size // 8)]
        else:
            counts = self._counts(generator, form)

        def walk(base: int, mode: Mode, lane: Lane, **options: bool) -> Walk:
            found = random_walk(
                generator, self.configuration, counts, mode, lane, size=self.size, **options
            )
            found.base += base
            return found

        aligned = form.op.splits_lanes or not form.is_dense
        a_mode, b_mode, y_mode = form.modes
        return Task(
            form.op,
            walk(self.a, a_mode, form.lane, aligned=False),
            walk(self.b, b_mode, form.lane, aligned=False) if form.op.reads_b else None,
            walk(y, y_mode, form.out_lane, aligned=aligned, disjoint=self.disjoint),
            saturate=generator.random() < 0.5,
            arithmetic=generator.random() < 0.5,
            **random_tests(generator, form.op),
            fence=generator.random() < self.fences,
            interrupt=generator.random() < self.interrupts,
        )

    def _counts(self, generator: random.Random, form: Form) -> list[int]:
        """Return elements of a run and iterations, so few that disjoint elements fit."""
        loops = generator.randrange(self.configuration.loops)
        counts = [generator.choice(self.runs), *generator.choices(self.counts, k=loops)]
        widest = max(form.lane.bytes, form.out_lane.bytes)
        spread = widest * (5 if Mode.STRIDED in form.modes else 2)
        while self.disjoint and prod(counts) * spread > self.size:
            counts = [max(1, count // 2) for count in counts]
        return counts


def dense(base: int, elements: int, lane: Lane = Lane.BITS_8) -> Walk:
    """Return one run of consecutive elements."""
    return Walk(base, [elements], [lane.bytes], Mode.DENSE, lane)


def logic(op: Op, a: int, b: int | None, y: int, size: int, **options: Any) -> Task:
    """Return a logic operation on ``size`` consecutive bytes."""
    second = None if b is None else dense(b, size)
    return Task(op, dense(a, size), second, dense(y, size), **options)


_GUARD = 64
"""Guard bytes between the regions of the tensors; no command may touch them."""


@dataclass
class Outcome:
    """The memory after some commands, the number that retired, and the fault that stopped them."""

    memory: NDArray[np.uint8]
    retired: int
    fault: Failure | None


def random_commands(
    generator: random.Random, configuration: Configuration, count: int
) -> list[Task]:
    """Return commands of any kind; A, B and each Y have separate regions between guard bytes."""
    room = configuration.memory_bytes - (count + 3) * _GUARD
    share = room // (count + 2) // 16 * 16
    bases = [_GUARD + region * (share + _GUARD) for region in range(count + 2)]
    commands = RandomCommands(
        configuration=configuration,
        size=share,
        a=bases[0],
        b=bases[1],
        runs=(1, 3, 8, 21, 40),
        sums=0.3,
        fences=0.3,
    )
    return [commands.draw(generator, base) for base in bases[2:]]


def expected(
    tasks: Sequence[Task],
    before: NDArray[np.uint8],
    *,
    bad_reads: frozenset[int] = frozenset(),
    bad_writes: frozenset[int] = frozenset(),
) -> Outcome:
    """Return the outcome of ``tasks`` by the contract, in order, up to the first fault."""
    memory = before.copy()
    for number, task in enumerate(tasks):
        if failure := apply(task, memory, bad_reads, bad_writes):
            return Outcome(memory, number, failure)
    return Outcome(memory, len(tasks), None)
