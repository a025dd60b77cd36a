"""Models and batches agree with Amaranth's simulator: every port in every cycle, every program."""

import random
from collections.abc import Callable
from contextlib import closing
from functools import cache
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from amaranth.hdl import Cat, ClockDomain, ClockSignal, Elaboratable, Module, ResetSignal, Signal
from amaranth.lib.cdc import ResetSynchronizer
from amaranth.lib.wiring import In, Out

from cppsim import Batch, Model, Program, ReferenceModel
from cppsim.circuits import AnyModel
from cppsim.netlist import from_words
from cppsim.testing import random_circuit, random_expressions
from feeding import Crc32
from support.carriers import Part, RandomProgram
from support.seeds import seeds, slow
from support.zoo import Memories, Partly, Registers

# --- every port in every cycle --------------------------------------------------------------------


def show(evaluator: AnyModel) -> dict[str, int]:
    return {port: evaluator.get(port) for port in evaluator.widths}


def expressions(seed: int, count: int = 30) -> Module:
    return random_expressions(seed, count).module


def circuit(seed: int) -> Module:
    return random_circuit(seed + 6).module  # that of seed 6 is small


def decided(seed: int) -> Part:
    """Return registers that load, hold and are cleared under random nested conditions."""
    chance = random.Random(seed)
    names = ("first", "second", "third")

    def statement(m: Module, x: Any, depth: int) -> None:
        registers = [getattr(x, name) for name in names]
        kind = chance.choice(("if", "switch", "assign")) if depth else "assign"
        if kind == "if":
            with m.If(x.go[chance.randrange(4)]):
                statement(m, x, depth - 1)
            with m.Elif(x.go[chance.randrange(4)] ^ x.first[0]):
                statement(m, x, depth - 1)
            if chance.random() < 0.5:
                with m.Else():
                    statement(m, x, depth - 1)
        elif kind == "switch":
            with m.Switch(x.go):
                for pattern in chance.sample(range(16), 3):
                    with m.Case(pattern, f"{chance.choice('01')}-1-"):
                        statement(m, x, depth - 1)
                with m.Default():
                    statement(m, x, depth - 1)
        else:
            target, source = chance.choice(registers), chance.choice((x.value, *registers))
            m.d.sync += target[chance.choice((0, 0, 4)) :].eq(source + chance.randrange(2))

    def build(m: Module, x: Any) -> None:
        chance.seed(seed)
        for _ in range(3):
            statement(m, x, 3)
        if chance.random() < 0.5:
            with m.If(x.go.all()):
                m.d.sync += [x.first.eq(0x55), x.second.eq(0)]

    return Part({"go": In(4), "value": In(8), **dict.fromkeys(names, Out(8))}, build=build)


def synchronized() -> Part:
    """Return a counter in a domain whose reset, from a synchronizer, may come at any time."""

    def build(m: Module, x: Any) -> None:
        m.domains.inner = ClockDomain(local=True)
        m.submodules.synchronizer = ResetSynchronizer(x.stop.all(), domain="inner")
        m.d.comb += ClockSignal("inner").eq(ClockSignal())
        m.d.comb += x.stopped.eq(ResetSignal("inner"))
        m.d.inner += x.count.eq(x.count + 1)

    return Part({"stop": In(2), "stopped": Out(1), "count": Out(8)}, build=build)


def ready_chain(whole: bool) -> Part:
    """Return a chain through a vector: one operation, or bits that depend on one another."""

    def build(m: Module, x: Any) -> None:
        chain, value = Signal(8), x.value
        if whole:
            m.d.comb += chain.eq(value & Cat(chain[1:], 1))
        else:
            m.d.comb += chain[7].eq(value[7])
            m.d.comb += [chain[bit].eq(chain[bit + 1] & value[bit]) for bit in range(7)]
        m.d.comb += x.first.eq(~chain)
        m.d.sync += x.total.eq(x.total + chain)

    return Part({"value": In(8), "first": Out(8), "total": Out(8)}, build=build)


def number(chance: random.Random, port: Any) -> int:
    """Return a number for a port, often one at an end of its range."""
    least = -(1 << port.width - 1) if port.signed else 0
    most = least + (1 << port.width) - 1
    return chance.choice((0, least, most, *(chance.randint(least, most) for _ in range(3))))


@pytest.mark.parametrize(
    ("make", "sizes", "cycles"),
    [
        *((expressions, (seed,), 60) for seed in seeds(1, 24)),
        *((circuit, (seed,), 40) for seed in seeds(1, 24)),
        *((decided, (seed,), 150) for seed in seeds(1, 12)),
        *((Registers, (100,), 300), *(slow(Registers, (width,), 300) for width in (1, 8, 64))),
        *(
            (Memories, (130, 7), 300),
            *(slow(Memories, x, 300) for x in ((8, 8), (20, 5), (64, 16))),
        ),
        *((synchronized, (), 300), *((ready_chain, (whole,), 150) for whole in (True, False))),
    ],
)
def test_a_model_has_the_values_of_amaranths_simulator(
    make: Callable[..., Elaboratable], sizes: tuple[int, ...], cycles: int
) -> None:
    chance = random.Random(0)
    with closing(ReferenceModel(make(*sizes))) as slow, closing(Model(make(*sizes))) as fast:
        for cycle in range(cycles):
            values = {x.name: number(chance, x) for x in fast.ports.values() if x.input}
            for evaluator in (slow, fast):
                for port, value in values.items():
                    evaluator.set(port, value if port != "rst" else cycle % 37 == 20)
            # A look settles everything: an edge has to come right without one, too.
            if cycle % 3:
                assert show(fast) == show(slow), (cycle, values)
            slow.step()
            fast.step()
        assert show(fast) == show(slow)


# --- programs -------------------------------------------------------------------------------------

INSTANCES = 3
# Sizes of the cases above, where there are any: those are compiled already.
CIRCUITS: dict[str, Callable[[], Elaboratable]] = {
    "expressions": lambda: expressions(0, 6),
    "circuit": lambda: circuit(0),
    "registers": lambda: Registers(8),
    "wide registers": lambda: Registers(100),
    "memories": lambda: Memories(8, 5),
    "partly": lambda: Partly(6),
}


def alone(model: AnyModel, program: Program) -> tuple[dict[str, Any], int]:
    """Return the results of ``program`` from power-on, with whole numbers, and its cycles."""
    model.reset()
    results = {name: np.asarray(values).tolist() for name, values in model.run(program).items()}
    return results, model.cycles


@cache
def made(circuit: str) -> tuple[Any, AnyModel, AnyModel]:
    """Return a batch, a model and a reference of one of `CIRCUITS`."""
    make = CIRCUITS[circuit]
    return Batch(make(), INSTANCES, "threads"), Model(make()), ReferenceModel(make())


@pytest.mark.parametrize("seed", seeds(2, 20))
@pytest.mark.parametrize(
    "circuit", [slow(x) if x in ("expressions", "circuit", "registers") else x for x in CIRCUITS]
)
def test_a_program_has_the_same_results_on_all_three(circuit: str, seed: int) -> None:
    batch, model, reference_model = made(circuit)
    batch.reset()
    # A circuit without registers has no reset in a batch.
    ports = [port for name, port in model.ports.items() if name in batch.ports]
    program = RandomProgram(ports, seed, INSTANCES)
    together = batch.run(program.of(slice(None)))
    assert together, f"seed {seed}: no results"
    for number in range(INSTANCES):
        one = program.of(slice(number, number + 1))
        reference = alone(reference_model, one)
        assert alone(model, one) == reference, f"seed {seed}, instance {number}"
        for name, values in together.items():
            found, wanted = values[number].tolist(), reference[0][name]
            if isinstance(wanted, int) and isinstance(found, list):
                found, wanted = from_words(found), wanted % (1 << 64 * len(found))
            assert found == wanted, f"seed {seed}, instance {number}: {name}"


LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "bytes, rows of instances": lambda fed: fed,
    "bytes, rows of cycles": lambda fed: np.asfortranarray(fed),
    "numbers of 64 bits": lambda fed: fed.astype(np.int64),
    "every second element": lambda fed: np.repeat(fed, 2, axis=1)[:, ::2],
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_array_feeds_every_cycle_and_results_record_it(layout: str) -> None:
    cycles, instances = 5, 515  # two tiles, and the last one is not full
    fed = np.random.default_rng(1).integers(0, 256, (instances, cycles), np.uint8)
    expected = [[crc32(row[: k + 1].tobytes()) for k in range(cycles)] for row in fed]

    def program(of: slice) -> Program:
        program = Program()
        with program.repeat(cycles):
            program.set("data", LAYOUTS[layout](fed[of])).step().get("crc")
        return program

    together = Batch(Crc32(), instances, "threads").run(program(slice(None)))
    assert together["crc"].tolist() == expected
    for model in (Model(Crc32()), ReferenceModel(Crc32())):
        with closing(model):
            assert model.run(program(slice(7, 8)))["crc"].tolist() == expected[7]
