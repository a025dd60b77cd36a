"""Random designs as batches, and each instance alone in the single simulator, side by side."""

import random
from contextlib import redirect_stdout
from io import StringIO
from typing import Any

import numpy as np
from amaranth.hdl import Fragment, Signal

import cppsim
from cppsim.netlist.one_clock import named_signals

from .random_designs import RandomDesign
from .random_values import random_number

__all__ = ["compare_batch"]

_PERIOD = 1e-6

_Values = list[list[int]]
"""Of each round the values of all signals."""


def compare_batch(
    design: RandomDesign, backend: str, *, seed: int, instances: int = 3, rounds: int = 12
) -> int:
    """Let each instance see inputs of its own; how many values of outputs have been compared.

    Raises ``AssertionError`` that names the seed, the instance, the round and the signal.
    """
    chances = [random.Random(f"{seed} {instance}") for instance in range(instances)]
    inputs = [x for x in design.inputs if len(x)]
    outputs = [x for x in design.outputs if len(x)]
    given = [_random_inputs(chance, inputs, rounds) for chance in chances]
    shown = _batched(design, backend, inputs, outputs, given)
    for instance in range(instances):
        alone = _alone(design, inputs, outputs, given[instance])
        for number in range(rounds):
            for signal, got, expected in zip(outputs, shown[number], alone[number], strict=True):
                assert got[instance] == expected, (
                    f"seed {seed}, instance {instance}, round {number}: "
                    f"{signal.name} is {got[instance]}, and {expected} alone"
                )
    return instances * rounds * len(outputs)


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


def _batched(
    design: RandomDesign,
    backend: str,
    inputs: list[Signal],
    outputs: list[Signal],
    given: list[_Values],
) -> list[list[list[int]]]:
    """What outputs show, by round, output and instance."""
    prepared: Any = Fragment.get(design.module, None).prepare()
    names = {id(signal): name for name, signal in named_signals(prepared)}
    clocks = None if design.clocks else ()
    looked = [names[id(x)] for x in (*outputs, *inputs) if id(x) in names]
    batch = cppsim.Batch(design.module, len(given), backend, clocks=clocks, watch=looked)
    watch = [names[id(x)] for x in outputs]
    program = cppsim.Program()
    for number in range(len(given[0])):
        for place, signal in enumerate(inputs):
            name = names.get(id(signal), signal.name)
            if name in batch.ports:  # others nothing reads
                values = [instance[number][place] for instance in given]
                program.set(name, _words(values, len(signal)))
        program.step()
        for name in dict.fromkeys(watch):
            program.get(name, f"{number} {name}")
    results = batch.run(program)
    return [
        [_numbers(results[f"{number} {name}"], x) for name, x in zip(watch, outputs, strict=True)]
        for number in range(len(given[0]))
    ]


def _words(values: list[int], width: int) -> Any:
    if width <= 64:
        return np.array(values, dtype=np.int64 if min(values) < 0 else np.uint64)
    words = range(-(-width // 64))
    ones = (1 << 64) - 1
    return np.array([[x >> 64 * k & ones for k in words] for x in values], dtype=np.uint64)


def _numbers(values: Any, signal: Signal) -> list[int]:
    if values.ndim == 1:
        return [int(x) for x in values]
    numbers = [sum(int(x) << 64 * k for k, x in enumerate(row)) for row in values]
    sign = 1 << len(signal)
    signed = signal.shape().signed
    return [x - sign if signed and x >> (len(signal) - 1) else x for x in numbers]


def _alone(
    design: RandomDesign, inputs: list[Signal], outputs: list[Signal], given: _Values
) -> _Values:
    simulator: Any = cppsim.Simulator(design.module, mode="always")
    assert not simulator._engine.reason
    for domain in design.clocks:
        simulator.add_clock(_PERIOD, phase=_PERIOD / 4, domain=domain)
    shown: _Values = []

    async def work(context: Any) -> None:
        for values in given:
            for signal, value in zip(inputs, values, strict=True):
                context.set(signal, value)
            await context.delay(_PERIOD)
            shown.append([context.get(x) for x in outputs])

    simulator.add_testbench(work)
    with redirect_stdout(StringIO()):
        simulator.run()
    return shown
