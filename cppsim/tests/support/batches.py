"""Batches of random designs beside the single simulator.

Random testbenches are recorded, replayed on many instances, and compared with an unrecorded run.

    python -m support.batches FOLDER

exports some of them for a machine with a GPU, with the first instances' results alone.
"""

import random
import sys
from collections.abc import Callable, Coroutine, Sequence
from contextlib import redirect_stdout, suppress
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
from amaranth.hdl import Cat, Fragment, Signal
from amaranth.sim import DomainReset

import cppsim
from cppsim.batch import Runner
from cppsim.model.circuit import named_signals
from cppsim.testing import (
    EXECUTORS,
    Bench,
    RandomDesign,
    random_circuit,
    random_expressions,
    random_machine,
    random_number,
    random_system,
)

_PERIOD = 1e-6
_INSTANCES = 3

_Values = list[list[int]]
"""The values of all signals in each round."""


def export_batch(
    design: RandomDesign,
    folder: Path,
    *,
    seed: int,
    instances: int = 200,
    rounds: int = 12,
    alone: int = 4,
) -> None:
    """Write a design into a folder, with the results of the first ``alone`` instances alone.

    Every instance has different inputs. A result is named after its round and its output.
    """
    inputs, outputs = ([x for x in each if len(x)] for each in (design.inputs, design.outputs))
    given = [
        _random_inputs(random.Random(f"{seed} {instance}"), inputs, rounds)
        for instance in range(instances)
    ]
    names, batch = names_of(design), batch_of(design, instances, "threads")
    program = cppsim.Program()
    for number in range(rounds):
        for index, signal in enumerate(inputs):
            name = names.get(id(signal), signal.name)
            if name in batch.ports:  # others nothing reads
                program.set(name, _words([x[number][index] for x in given], len(signal)))
        program.step()
        for signal in outputs:
            program.get(names[id(signal)], f"{number} {names[id(signal)]}")
    batch.export(folder, program)
    shown = _alone(design, inputs, outputs, given[:alone])
    expected = {
        f"{number} {names[id(x)]}": _words([each[number][index] for each in shown], len(x))
        for number in range(rounds)
        for index, x in enumerate(outputs)
    }
    np.savez_compressed(folder / "expected.npz", **expected)


def batch_of(design: RandomDesign, instances: int, backend: str) -> cppsim.Batch:
    """Return instances of a design; all inputs and outputs that it reads or drives are ports."""
    names = names_of(design)
    looked = [names[id(x)] for x in (*design.outputs, *design.inputs) if id(x) in names and len(x)]
    clocks = None if design.clocks else ()
    return cppsim.Batch(design.module, instances, backend, clocks=clocks, expose=looked)


def on_backend(batch: cppsim.Batch, backend: str) -> Runner:
    """Return the same instances at power-on on ``backend``, without writing the design again."""
    return Runner(batch.written, batch.instances, backend)


def names_of(design: RandomDesign) -> dict[int, str]:
    """Return the names of the signals that a design uses, by the signals' identities."""
    prepared: Any = Fragment.get(design.module, None).prepare()
    return {id(signal): name for name, signal in named_signals(prepared)}


def _random_inputs(chance: random.Random, inputs: list[Signal], rounds: int) -> _Values:
    values = [signal.init for signal in inputs]
    given = []
    for _ in range(rounds):
        values = [
            random_number(chance, signal) if chance.random() < 0.6 else value
            for signal, value in zip(inputs, values, strict=True)
        ]
        given.append(values)
    return given


def _words(values: list[int], width: int) -> Any:
    """Return ``values`` in the form in which a batch returns them."""
    if width <= 64:
        return np.array(values, dtype=np.int64 if min(values) < 0 else np.uint64)
    words = range(-(-width // 64))
    ones = (1 << 64) - 1
    return np.array([[x >> 64 * k & ones for k in words] for x in values], dtype=np.uint64)


def _alone(
    design: RandomDesign, inputs: list[Signal], outputs: list[Signal], given: Sequence[_Values]
) -> list[_Values]:
    """Return the outputs of the design for each sequence of inputs, each time from power-on."""
    shown, bench = list[_Values](), Bench(EXECUTORS["always"])

    async def work(context: Any) -> None:
        instance: _Values = []
        for values in given[len(shown)]:
            for signal, value in zip(inputs, values, strict=True):
                context.set(signal, value)
            await context.delay(_PERIOD)
            instance.append([context.get(x) for x in outputs])
        shown.append(instance)

    clocks = dict.fromkeys(design.clocks, (_PERIOD, _PERIOD / 4))
    simulator = bench.simulator(design.module, work, clocks=clocks)
    assert bench.compiled
    with redirect_stdout(StringIO()):
        for number in range(len(given)):
            if number:
                simulator.reset()
            simulator.run()
    return shown


_ROUNDS = 16


def compare_recording(design: RandomDesign, backends: Sequence[str], *, seed: int) -> int:
    """Record a random testbench and replay it; return the number of values per instance.

    It is replayed on each of the ``backends``. For a design with one clock, the values that the
    testbench gets are compared with those of an unrecorded run. Raises ``AssertionError`` that
    names the backend, the seed and the result.
    """
    values, wanted = list[Any](), {id(x) for x in (*design.inputs, *design.outputs) if len(x)}
    expose = [name for signal, name in names_of(design).items() if signal in wanted]
    batch = cppsim.Batch(design.module, _INSTANCES, backends[0], expose=expose)
    with redirect_stdout(StringIO()):
        recording = batch.record(_testbench(design, seed, values))
    for backend in backends:
        results = on_backend(batch, backend).run(recording.program)
        for name, value in recording.results.items():
            same = all((x == value).all() for x in results[name])
            assert same, f"{backend}, seed {seed}, {name!r}: {results[name]}, recorded: {value}"
    if len(design.clocks) == 1:
        alone = list[Any]()
        Bench(EXECUTORS["always"]).run(design.module, _testbench(design, seed, alone))
        assert values == alone, f"seed {seed}: the recorded testbench gets other values"
    return len(recording.results)


def _testbench(
    design: RandomDesign, seed: int, values: list[Any]
) -> Callable[[Any], Coroutine[Any, Any, None]]:
    """Return a testbench that sets, gets and waits at random, and appends to ``values``."""
    there = names_of(design)
    inputs = [x for x in design.inputs if len(x) and id(x) in there]
    outputs = [x for x in design.outputs if len(x) and id(x) in there]
    rst = [x for x in inputs if x.name.endswith("rst") or x.name == "stop"]

    async def work(ctx: Any) -> None:
        chance = random.Random(seed)
        for _ in range(_ROUNDS):
            for signal in inputs:
                if chance.random() < (0.1 if any(signal is x for x in rst) else 0.5):
                    ctx.set(signal, random_number(chance, signal))
            ctx.set(inputs[0][:1], 1)
            looked = chance.sample(outputs, 2)
            match chance.randrange(5):
                case 0:
                    await ctx.tick()
                case 1:
                    with suppress(DomainReset):
                        await ctx.tick().repeat(chance.randrange(1, 9))
                case 2:
                    values.append(await ctx.tick().sample(*looked))
                case 3:
                    with suppress(DomainReset):
                        values.append(await ctx.tick().sample(*looked).repeat(3))
                case _:
                    for signal in rst:
                        ctx.set(signal, 0)
                    await ctx.tick()
                    for signal in outputs:
                        if ctx.get(signal):
                            await ctx.tick().until(signal)
                            break
            values.append([ctx.get(x) for x in (*looked, Cat(*looked))])

    return work


def _export_all(folder: Path) -> None:
    makers = {random_circuit: 6, random_expressions: 3, random_machine: 4, random_system: 4}
    for make, count in makers.items():
        for seed in range(count):
            export_batch(make(seed), folder / f"{make.__name__}{seed}", seed=seed)


if __name__ == "__main__":
    _export_all(Path(sys.argv[1]))
