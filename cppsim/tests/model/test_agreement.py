"""Models and batches agree with Amaranth's simulator: every port in every cycle, every program."""

import random
from collections.abc import Callable
from contextlib import closing
from functools import cache
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from amaranth.hdl import C, Cat, ClockDomain, ClockSignal, Module, ResetSignal, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.cdc import ResetSynchronizer
from amaranth.lib.wiring import In, Out

from cppsim import Batch, Model, Program, ReferenceModel
from cppsim.circuits import AnyModel
from feeding import Crc32
from support.carriers import Part, RandomProgram
from support.seeds import seeds, slow
from support.zoo import Calculator, Memories, Partly, Registers, stimuli

# --- every port in every cycle --------------------------------------------------------------------


def show(evaluator: AnyModel) -> dict[str, int]:
    return {port: evaluator.get(port) for port in evaluator.widths}


def constants() -> Part:
    """Return shifts and comparisons of constants whose width matters."""

    def logic(x: Any) -> list[Any]:
        number = x.value[:5].as_signed()
        return [
            x.left.eq(C(5, 64) << x.value),
            x.right.eq(C(5, 64) >> x.value),
            x.right_signed.eq(C(-5, signed(40)) >> x.value),
            x.below.eq(number < C(3, signed(5))),
            x.not_above.eq(number <= C(-3, signed(5))),
        ]

    outputs = {"left": 64, "right": 64, "right_signed": 40, "below": 1, "not_above": 1}
    members = {"value": In(6)} | {name: Out(width) for name, width in outputs.items()}
    return Part(members, comb=logic)


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


@pytest.mark.parametrize(
    ("make", "sizes", "cycles"),
    [
        *(slow(Calculator, (width,), 60) for width in (1, 32, 64, 65)),
        *((Calculator, (7,), 60), (Calculator, (130,), 60), (Registers, (100,), 300)),
        *(slow(Registers, (width,), 300) for width in (1, 8, 64)),
        *(slow(Memories, sizes, 300) for sizes in ((8, 8), (20, 5), (64, 16), (100, 3))),
        *((Memories, (130, 7), 300), (synchronized, (), 300), (constants, (), 300)),
        *((ready_chain, (whole,), 150) for whole in (True, False)),
        *((decided, (seed,), 150) for seed in seeds(1, 12)),
    ],
)
def test_a_model_has_the_values_of_amaranths_simulator(
    make: Callable[..., wiring.Component], sizes: tuple[int, ...], cycles: int
) -> None:
    with closing(ReferenceModel(make(*sizes))) as slow, closing(Model(make(*sizes))) as fast:
        for cycle, values in enumerate(stimuli(make(*sizes), cycles)):
            for evaluator in (slow, fast):
                for port, value in values.items():
                    evaluator.set(port, value)
                evaluator.set("rst", cycle % 37 == 20)
            # A look settles everything: an edge has to come right without one, too.
            if cycle % 3:
                assert show(fast) == show(slow), (cycle, values)
            slow.step()
            fast.step()
        assert show(fast) == show(slow)


# --- programs -------------------------------------------------------------------------------------

INSTANCES = 3
# Sizes of the cases above, where there are any: those are compiled already.
CIRCUITS: dict[str, Callable[[], wiring.Component]] = {
    "calculator": lambda: Calculator(7),
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
    "circuit", [slow(name) if name == "registers" else name for name in CIRCUITS]
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
            found = values[number].tolist()
            if isinstance(reference[0][name], int) and isinstance(found, list):
                found = sum(word << 64 * k for k, word in enumerate(found))
            assert found == reference[0][name], f"seed {seed}, instance {number}: {name}"


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
