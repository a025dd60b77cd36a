"""Random designs for comparisons of simulators, the same for the same seed. No tests here."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from amaranth.hdl import Array, C, Cat, ClockDomain, Const, Module, Mux, Shape, Signal, Value
from amaranth.lib.memory import Memory
from amaranth.sim import Simulator

__all__ = [
    "RandomDesign",
    "random_expression",
    "random_expressions",
    "random_machine",
    "random_number",
    "trace",
]

_WIDTHS = (1, 1, 2, 3, 7, 8, 16, 31, 32, 33, 48, 63, 64, 65, 100, 128, 130)
_WIDEST = 200


@dataclass(frozen=True)
class RandomDesign:
    """A design, what drives it, what it shows, and the periods of its clocks."""

    module: Module
    inputs: Sequence[Signal]
    outputs: Sequence[Signal]
    clocks: dict[str, float]


def random_expressions(seed: int, count: int = 12) -> RandomDesign:
    """``count`` combinational signals, each a random expression of inputs and earlier ones."""
    chance = random.Random(seed)
    inputs = [_signal(chance, f"input{k}") for k in range(6)]
    leaves, outputs, m = list(inputs), [], Module()
    for number in range(count):
        value = _cut(chance, random_expression(chance, leaves, chance.randint(1, 4)))
        width = max(1, len(value) + chance.choice((-2, 0, 3)))
        output = Signal(Shape(width, chance.random() < 0.5), name=f"output{number}")
        m.d.comb += output.eq(value)
        outputs.append(output)
        if chance.random() < 0.3:
            leaves.append(output)
    return RandomDesign(m, inputs, outputs, {})


def random_machine(seed: int) -> RandomDesign:
    """Registers of three domains and a memory, under random conditions.

    One domain has falling edges, one an asynchronous reset.
    """
    chance = random.Random(seed)
    m = Module()
    m.domains.sync = sync = ClockDomain()
    m.domains.fall = ClockDomain(clk_edge="neg", reset_less=True)
    m.domains.late = late = ClockDomain(async_reset=True)
    inputs = [_signal(chance, f"input{k}") for k in range(5)] + [late.rst, sync.rst]
    registers = [
        Signal.like(_signal(chance, ""), name=f"register{k}", reset_less=k == 3) for k in range(8)
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
    return RandomDesign(m, inputs, [*registers, *shown, *rows], periods)


def trace(design: RandomDesign, engine: object, *, steps: int, seed: int) -> list[list[int]]:
    """What the outputs show after each of ``steps``, with random inputs before it."""
    chance = random.Random(seed)
    simulator = Simulator(design.module, engine=engine)  # type: ignore[call-arg]  # stubs lag
    assert not getattr(simulator._engine, "reason", ""), "left to Amaranth's simulator"
    shown: list[list[int]] = []
    for number, (domain, period) in enumerate(design.clocks.items()):
        simulator.add_clock(period, phase=1e-7 * (number + 1), domain=domain)

    async def work(context: object) -> None:
        for _ in range(steps):
            for signal in design.inputs:
                if chance.random() < 0.6:
                    context.set(signal, random_number(chance, signal))  # type: ignore[attr-defined]
            if design.clocks:
                await context.delay(0.25e-6)  # type: ignore[attr-defined]
            values = [context.get(x) for x in design.outputs]  # type: ignore[attr-defined]
            shown.append(values)

    simulator.add_testbench(work)
    simulator.run()
    return shown


def _memory(chance: random.Random, m: Module, leaves: list[Signal]) -> list[Signal]:
    """A memory with two writes, and reads of all kinds; what the reads show."""
    width, depth = chance.choice((4, 24, 64, 96)), chance.choice((1, 5, 16))
    init = [chance.getrandbits(width) for _ in range(depth)]
    m.submodules.memory = memory = Memory(shape=width, depth=depth, init=init)
    writes = [memory.write_port(granularity=width // 2), memory.write_port()]
    chosen = [x for x in writes if chance.random() < 0.5]
    reads = [
        memory.read_port(domain="comb"),
        memory.read_port(transparent_for=chosen),
        memory.read_port(domain="late"),
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


def _signal(chance: random.Random, name: str) -> Signal:
    return Signal(Shape(chance.choice(_WIDTHS), chance.random() < 0.5), name=name)


def random_number(chance: random.Random, signal: Signal) -> int:
    """A value of ``signal``, often one at an end of its range."""
    ends = (0, 1, -1, 1 << chance.randrange(130))
    value = chance.choice((*ends, chance.getrandbits(8), chance.getrandbits(140)))
    return Const(value & (1 << len(signal)) - 1, signal.shape()).value


def _cut(chance: random.Random, value: Value, most: int = _WIDEST) -> Value:
    return value[: chance.randint(1, most)] if len(value) > most else value


def _few(chance: random.Random, value: Value, most: int) -> Value:
    """An unsigned value of ``most`` bits or fewer."""
    return value.as_unsigned()[: chance.randint(0, most)]


def _constant(chance: random.Random) -> Value:
    width, is_signed = chance.choice(_WIDTHS), chance.random() < 0.5
    value = chance.getrandbits(width)
    return C(value - (value >> (width - 1) << width if is_signed else 0), Shape(width, is_signed))


def random_expression(chance: random.Random, leaves: Sequence[Signal], depth: int) -> Value:
    if depth == 0 or chance.random() < 0.15:
        return _constant(chance) if chance.random() < 0.25 else chance.choice(leaves)
    a, b, c = (_cut(chance, random_expression(chance, leaves, depth - 1)) for _ in range(3))
    kind = chance.randrange(4)
    if kind == 0:
        return _arithmetic(chance, a, b)
    if kind == 1:
        return _logic(chance, a, b)
    if kind == 2:
        return _parts(chance, leaves, a, b)
    choices = [Mux(a, b, c), Array([a, b, c])[_few(chance, c, 3)], Cat(a, b), Cat()]
    return chance.choice(choices)


def _arithmetic(chance: random.Random, a: Value, b: Value) -> Value:
    return chance.choice(
        (
            lambda: a + b,
            lambda: a - b,
            lambda: a * b,
            lambda: a // b,
            lambda: a % b,
            lambda: -a,
            lambda: a << _few(chance, b, 7),
            lambda: a >> _few(chance, b, 70),
            lambda: a < b,
            lambda: a <= b,
            lambda: a > b,
            lambda: a >= b,
        )
    )()


def _logic(chance: random.Random, a: Value, b: Value) -> Value:
    width = min(len(a), 6)
    patterns = ["".join(chance.choice("01-") for _ in range(width)) for _ in range(3)]
    return chance.choice(
        (
            lambda: ~a,
            lambda: a & b,
            lambda: a | b,
            lambda: a ^ b,
            lambda: a == b,
            lambda: a != b,
            lambda: a.bool(),
            lambda: a.any(),
            lambda: a.all(),
            lambda: a.xor(),
            lambda: a[:width].matches(*patterns),
        )
    )()


def _parts(chance: random.Random, leaves: Sequence[Signal], a: Value, b: Value) -> Value:
    # Amaranth's simulator shows other bits than hardware where a part is taken out of the range of
    # an inverted or reinterpreted value; signals and concatenations are as they are.
    value = chance.choice(leaves) if chance.random() < 0.5 else Cat(a)
    low = chance.randint(0, len(a))
    return chance.choice(
        (
            lambda: a[low : chance.randint(low, len(a))],
            lambda: value.bit_select(_few(chance, b, 8), chance.randint(0, len(value))),
            lambda: value.word_select(_few(chance, b, 6), chance.randint(1, max(1, len(value)))),
            lambda: a.as_unsigned(),
            lambda: a.as_signed() if len(a) else a,
        )
    )()
