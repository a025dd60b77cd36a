"""Random testbenches on random designs, recorded and replayed on many instances."""

import random
from collections.abc import Callable, Coroutine, Sequence
from contextlib import redirect_stdout, suppress
from io import StringIO
from typing import Any

from amaranth.hdl import Cat
from amaranth.sim import DomainReset

import cppsim
from cppsim.testing import RandomDesign, random_number

from .batches import names_of, on_backend

_ROUNDS = 16


def compare_recording(
    design: RandomDesign, backends: Sequence[str], *, seed: int, instances: int = 3
) -> int:
    """Record a random testbench and replay it; return the number of values per instance.

    It is replayed on each of the ``backends``. For a design with one clock, the values that the
    testbench gets are compared with those of an unrecorded run. Raises ``AssertionError`` that
    names the backend, the seed and the result.
    """
    batch, values = _batch(design, backends[0], instances), list[Any]()
    with redirect_stdout(StringIO()):
        recording = batch.record(_testbench(design, seed, values))
    for backend in backends:
        results = on_backend(batch, backend).run(recording.program)
        for name, value in recording.results.items():
            same = all((x == value).all() for x in results[name])
            assert same, f"{backend}, seed {seed}, {name!r}: {results[name]}, recorded: {value}"
    if len(design.clocks) == 1:
        assert values == _alone(design, seed), (
            f"seed {seed}: the recorded testbench gets other values"
        )
    return len(recording.results)


def _batch(design: RandomDesign, backend: str, instances: int) -> cppsim.Batch:
    wanted = {id(x) for x in (*design.inputs, *design.outputs) if len(x)}
    expose = [name for signal, name in names_of(design).items() if signal in wanted]
    return cppsim.Batch(design.module, instances, backend, expose=expose)


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


def _alone(design: RandomDesign, seed: int) -> list[Any]:
    """Return the values that an unrecorded testbench gets."""
    simulator, values = cppsim.Simulator(design.module, mode="always"), list[Any]()
    simulator.add_clock(1e-6)
    simulator.add_testbench(_testbench(design, seed, values))
    with redirect_stdout(StringIO()):
        simulator.run()
    return values
