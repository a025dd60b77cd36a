"""Random designs for comparisons of simulators, the same for the same seed."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from amaranth.hdl import C, Cat, ClockDomain, ClockSignal, Module, Shape, Signal, Value
from amaranth.lib.cdc import ResetSynchronizer
from amaranth.lib.memory import Memory

from .executors import EXECUTORS, Bench, Testbench
from .statements import RandomStatements
from .values import cut, random_expression, random_number, random_signal


@dataclass(frozen=True)
class RandomDesign:
    """A design, its inputs and outputs, and the periods of its clocks by domain.

    ``domains`` names all clock domains, including those whose clock the design itself drives.
    """

    module: Module
    inputs: Sequence[Signal]
    outputs: Sequence[Signal]
    clocks: dict[str, float]
    domains: Sequence[str] = ()


def random_expressions(seed: int, count: int = 12) -> RandomDesign:
    """Return ``count`` combinational signals: random expressions of inputs and earlier ones."""
    chance = random.Random(seed)
    inputs = [random_signal(chance, f"input{k}") for k in range(6)]
    leaves, outputs, m = list(inputs), [], Module()
    for number in range(count):
        value = cut(chance, random_expression(chance, leaves, chance.randint(1, 4)))
        width = max(1, len(value) + chance.choice((-2, 0, 3)))
        output = Signal(Shape(width, chance.random() < 0.5), name=f"output{number}")
        m.d.comb += output.eq(value)
        outputs.append(output)
        if chance.random() < 0.3:
            leaves.append(output)
    return RandomDesign(m, inputs, outputs, {})


def random_machine(seed: int) -> RandomDesign:
    """Return registers of three domains and a memory, under random conditions.

    One domain has falling edges, another one an asynchronous reset.
    """
    chance = random.Random(seed)
    m = Module()
    sync: Any = ClockDomain("sync")
    m.domains.sync = sync
    m.domains.fall = ClockDomain(clk_edge="neg", reset_less=True)
    late: Any = ClockDomain("late", async_reset=True)
    m.domains.late = late
    inputs = [random_signal(chance, f"input{k}") for k in range(5)] + [late.rst, sync.rst]
    registers = [
        Signal.like(random_signal(chance, ""), name=f"register{k}", reset_less=k == 3)
        for k in range(8)
    ]
    leaves = [*inputs[:5], *registers]
    for register in registers:
        # Amaranth's simulator, unlike a chip, lets an asynchronous reset clock other registers.
        domain = "sync" if register.reset_less else chance.choice(("sync", "fall", "late"))
        # Of several assignments the last one counts.
        m.d[domain] += register[len(register) // 3 :].eq(random_expression(chance, leaves, 2))
        with m.If(random_expression(chance, leaves, 2).bool()):
            m.d[domain] += register.eq(random_expression(chance, leaves, 3))
        with m.Else():
            with m.Switch(Cat(random_expression(chance, leaves, 1), C(0, 3))[:3]):
                with m.Case(0, 3):
                    part = register[: len(register) // 2 + 1]
                    m.d[domain] += part.eq(random_expression(chance, leaves, 2))
                with m.Case(1):
                    m.d[domain] += register.eq(register + 1)
    shown = [Signal(Shape(40, k == 1), name=f"shown{k}") for k in range(3)]
    for output in shown:
        m.d.comb += output.eq(random_expression(chance, leaves, 3))
    rows = _memory(chance, m, leaves)
    periods = {"sync": 1e-6, "fall": chance.choice((1e-6, 0.7e-6)), "late": 1.6e-6}
    return RandomDesign(m, inputs, [*registers, *shown, *rows], periods, tuple(periods))


def random_system(seed: int) -> RandomDesign:
    """Return random statements, state machines, memories and prints in domains of all kinds.

    Clocks may have edges at the same moment; the design itself drives one of the clocks.
    """
    chance = random.Random(seed)
    m = Module()
    sync: Any = ClockDomain("sync")
    m.domains.sync = sync
    m.domains.fall = ClockDomain(clk_edge="neg", reset_less=True)
    m.domains.late = ClockDomain(async_reset=True)
    m.domains.made = ClockDomain(reset_less=True)
    inputs = [random_signal(chance, f"input{k}") for k in range(5)]
    stop, go, half = Signal(name="stop"), Signal(name="go"), Signal(name="half")
    m.d.sync += half.eq(~half)
    m.d.comb += ClockSignal("made").eq(chance.choice((half, ClockSignal("sync") & go)))
    m.submodules += ResetSynchronizer(stop, domain="late")
    registers = [Signal.like(random_signal(chance, ""), name=f"register{k}") for k in range(9)]
    leaves: list[Value] = [*inputs, *registers]
    states: list[Value] = []
    domains = ("sync", "fall", "late", "made")
    for low in range(0, len(registers), 3):
        domain, targets = chance.choice(domains), registers[low : low + 3]
        statements = RandomStatements(chance, m, domain, targets, leaves)
        statements.assign()
        if chance.random() < 0.5:
            states.append(statements.states())
    # If a clock lags by some delta cycles, signals that depend on its registers lag as well.
    leaves += states
    shown = [random_signal(chance, f"shown{k}") for k in range(6)]
    for low in range(0, len(shown), 2):
        targets = shown[low : low + 2]
        RandomStatements(chance, m, "comb", targets, leaves).assign()
        leaves += targets
    # In Amaranth's simulator, the output of a port at power-on in a domain in reset then depends on
    # the signals that have settled.
    rows = [x for other in ("fall", "sync") for x in _memory(chance, m, leaves, other)]
    # Prints are in domains without a late clock or an asynchronous reset: Amaranth's simulator
    # repeats prints at such a reset, and prints unsettled values at such a clock.
    RandomStatements(chance, m, chance.choice(("sync", "fall")), (), leaves).say()
    periods = {name: chance.choice((1e-6, 0.7e-6, 2e-6)) for name in ("sync", "fall", "late")}
    outputs = [*registers, *shown, *rows]
    return RandomDesign(m, [*inputs, stop, go, sync.rst], outputs, periods, (*domains,))


def random_circuit(seed: int) -> RandomDesign:
    """Return random statements, state machines and a memory in one domain with rising edges."""
    chance = random.Random(seed)
    m = Module()
    sync: Any = ClockDomain("sync")
    m.domains.sync = sync
    inputs = [random_signal(chance, f"input{k}") for k in range(5)]
    registers = [Signal.like(random_signal(chance, ""), name=f"register{k}") for k in range(9)]
    leaves: list[Value] = [*inputs, *registers]
    for low in range(0, len(registers), 3):
        targets = registers[low : low + 3]
        statements = RandomStatements(chance, m, "sync", targets, leaves)
        statements.assign()
        leaves.append(statements.states())
    shown = [random_signal(chance, f"shown{k}") for k in range(2)]
    RandomStatements(chance, m, "comb", shown, leaves).assign()
    rows = _memory(chance, m, leaves, "sync")
    outputs = [*registers, *shown, *rows]
    return RandomDesign(m, [*inputs, sync.rst], outputs, {"sync": 1e-6}, ("sync",))


def random_testbench(
    design: RandomDesign, seed: int, see: Callable[[list[int]], object], *, steps: int = 30
) -> Testbench:
    """Return a testbench that sets random inputs, and passes the outputs to ``see``.

    It does so ``steps`` times. If the design has clocks, a quarter of a microsecond passes between
    the two.
    """
    chance = random.Random(seed)

    async def work(context: Any) -> None:
        for _ in range(steps):
            for signal in design.inputs:
                if chance.random() < 0.6:
                    context.set(signal, random_number(chance, signal))
            if design.clocks:
                await context.delay(0.25e-6)
            see([context.get(x) for x in design.outputs])

    return work


def random_clocks(design: RandomDesign, seed: int) -> dict[str, tuple[float, float]]:
    """Return the periods of the design's clocks, and random phases, so that some edges coincide."""
    chance, clocks = random.Random(seed), {}
    for domain, period in design.clocks.items():
        # At the very moment of a reset's release, other domains' view of it is a race.
        phases = (0.3e-7,) if domain.endswith("late") else (1e-7, 2e-7, period / 2)
        clocks[domain] = period, chance.choice(phases)
    return clocks


def trace(
    designs: Mapping[int, RandomDesign], executor: str, *, steps: int
) -> dict[int, list[list[int]]]:
    """Return the outputs that `random_testbench` sees, by the designs' seeds.

    The designs share one module, in which they run side by side. Their prints are dropped.
    """
    (module,) = {design.module for design in designs.values()}
    bench, shown = Bench(EXECUTORS[executor]), {seed: list[list[int]]() for seed in designs}
    clocks, works = dict[str, tuple[float, float]](), []
    for seed, design in designs.items():
        clocks |= random_clocks(design, seed)
        works.append(random_testbench(design, seed, shown[seed].append, steps=steps))
    bench.run(module, *works, clocks=clocks)
    if bench.reason:
        raise AssertionError(f"left to Amaranth's simulator: {bench.reason}")
    return shown


def _memory(
    chance: random.Random, m: Module, leaves: Sequence[Value], other: str = "late"
) -> list[Signal]:
    """Add a memory with two writes, and reads of all kinds, one in the domain ``other``.

    Returns the outputs of the reads.
    """
    width, depth = chance.choice((4, 24, 64, 96)), chance.choice((1, 5, 16))
    init = [chance.getrandbits(width) for _ in range(depth)]
    memory: Any = Memory(shape=width, depth=depth, init=init)
    m.submodules += memory
    writes = [memory.write_port(granularity=width // 2), memory.write_port()]
    chosen = [x for x in writes if chance.random() < 0.5]
    reads = [
        memory.read_port(domain="comb"),
        memory.read_port(transparent_for=chosen),
        memory.read_port(domain=other),
    ]
    for port in (*writes, *reads):
        m.d.comb += port.addr.eq(random_expression(chance, leaves, 1))
    for write in writes:
        m.d.comb += [
            write.data.eq(random_expression(chance, leaves, 2)),
            write.en.eq(random_expression(chance, leaves, 1)),
        ]
    for read in reads[1:]:
        m.d.comb += read.en.eq(random_expression(chance, leaves, 1).bool())
    return [read.data for read in reads]
