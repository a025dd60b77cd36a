"""One program has the same results on a compiled model, on a batch and in Amaranth's simulator."""

import random
from collections.abc import Callable
from contextlib import closing
from itertools import count
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from amaranth.lib import wiring

from cppsim import Batch, Model, Program, ReferenceModel
from cppsim.model.interface import AnyModel
from cppsim.model.ports import PortLayout
from feeding import Crc32
from support.seeds import seeds
from support.zoo import Calculator, Memories, Partly, Registers

INSTANCES = 3
CIRCUITS: dict[str, Callable[[], wiring.Component]] = {
    "calculator": lambda: Calculator(9),
    "registers": lambda: Registers(8),
    "wide registers": lambda: Registers(70),
    "memories": lambda: Memories(8, 5),
    "partly": lambda: Partly(6),
}


class RandomProgram:
    """A program drawn from a seed, with other values for each instance of a circuit."""

    def __init__(self, ports: list[PortLayout], seed: int) -> None:
        self._ports, self._seed = ports, seed

    def of(self, instances: slice) -> Program:
        """Return the program with the values of some instances."""
        self._chance, self._names, self._instances = random.Random(self._seed), count(), instances
        self._program = Program()
        self._add(30, ())
        return self._program

    def _add(self, steps: int, loops: tuple[int, ...]) -> None:
        kinds = ("set", "set", "set", "step", "until", "get", "get", "repeat")
        for _ in range(steps):
            port = self._chance.choice(self._ports)
            name = f"{port.name} {next(self._names)}"
            match self._chance.choice(kinds):
                case "set" if port.input:
                    self._program.set(port.name, self._values(port, loops))
                case "step":
                    self._program.step(self._chance.choice((0, 1, 2, 5)))
                case "until":
                    self._program.until(port.name, self._chance.choice((1, 2, 7)), name)
                case "repeat" if len(loops) < 2:
                    times = self._chance.randint(1, 3)
                    with self._program.repeat(times):
                        self._add(3, (*loops, times))
                case _:
                    self._program.get(port.name, name)

    def _values(self, port: PortLayout, loops: tuple[int, ...]) -> Any:
        """Return one number for all instances, or one for each instance and turn."""
        if port.words > 1 or self._chance.random() < 0.2:
            return self._chance.getrandbits(port.width)
        shape = (INSTANCES, *loops)
        numbers = [self._chance.getrandbits(port.width) for _ in range(int(np.prod(shape)))]
        return np.array(numbers, np.uint64).reshape(shape)[self._instances]


def alone(model: AnyModel, program: Program) -> tuple[dict[str, Any], int]:
    """Return the results of ``program`` on ``model``, with whole numbers, and its cycles."""
    with closing(model):
        results = {
            name: values if isinstance(values, int) else values.tolist()
            for name, values in model.run(program).items()
        }
        return results, model.cycles


@pytest.mark.parametrize("seed", seeds(2, 20))
@pytest.mark.parametrize("circuit", CIRCUITS)
def test_a_program_has_the_same_results_on_all_three(circuit: str, seed: int) -> None:
    make = CIRCUITS[circuit]
    batch = Batch(make(), INSTANCES, "threads")
    with closing(Model(make())) as model:
        # A circuit without registers has no reset in a batch.
        ports = [port for name, port in model.ports.items() if name in batch.ports]
    program = RandomProgram(ports, seed)
    together = batch.run(program.of(slice(None)))
    assert together, f"seed {seed}: no results"
    for number in range(INSTANCES):
        one = program.of(slice(number, number + 1))
        reference = alone(ReferenceModel(make()), one)
        assert alone(Model(make()), one) == reference, f"seed {seed}, instance {number}"
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


def test_replacing_the_values_of_one_port_leaves_the_others() -> None:
    program = Program().set("a", 1).step().set("b", 2)
    assert repr(program.replaced("a", 5)) == repr(Program().set("a", 5).step().set("b", 2))
