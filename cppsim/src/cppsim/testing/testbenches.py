"""Random testbenches for comparisons of simulators, the same for the same seed."""

import random
from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Cat, Value
from amaranth.sim import BrokenTrigger, DomainReset

from .designs import RandomDesign
from .executors import Bench, close
from .values import random_number


def follow(bench: Bench, design: RandomDesign, *, seed: int) -> None:
    """Let ``bench`` see what random testbenches and a process see of ``design``, wait by wait.

    Then the same from power-on, in single steps.
    """
    chance = random.Random(seed)
    clocks = {
        domain: (period, chance.choice((None, 0, 1e-7 * number, 3.5e-7)))
        for number, (domain, period) in enumerate(design.clocks.items())
    }
    simulator, log = bench.simulator(design.module, clocks=clocks), bench.seen
    for number in range(chance.randint(1, 3)):
        work = RandomTestbench(f"bench{number}", design, bench, seed + number).work
        simulator.add_testbench(work, background=chance.random() < 0.2)
    if chance.random() < 0.3:
        domain = chance.choice(list(design.clocks))
        outputs = design.outputs[:3]
        simulator.add_process(
            bench.follows(lambda ctx: ctx.tick(domain).sample(*outputs), name="process")
        )
    for deadline in (9.7e-6, 20.35e-6, 40e-6):
        simulator.run_until(deadline)
        log.append(("until", bench.now))
    close(simulator)
    simulator.reset()
    for _ in range(100):
        log.append(("advance", bench.now, simulator.advance()))
    close(simulator)


class RandomTestbench:
    """A testbench of random steps that lets ``bench`` see the result of each."""

    def __init__(self, name: str, design: RandomDesign, bench: Bench, seed: int) -> None:
        self._name, self._design, self._bench, self._seed = name, design, bench, seed

    async def work(self, ctx: Any) -> None:
        self._chance = random.Random(self._seed)
        for _ in range(14):
            for signal in self._design.inputs:
                if self._chance.random() < 0.15:
                    ctx.set(signal, random_number(self._chance, signal))
            step = self._chance.choice(
                (self._tick, self._sample, self._each, self._repeat, self._until, self._other)
            )
            domain = self._chance.choice(list(self._design.clocks))
            try:
                self._note(step.__name__, await step(ctx, domain))
            except (DomainReset, BrokenTrigger) as error:
                self._note(step.__name__, type(error).__name__)
            self._note("get", ctx.get(self._chance.choice(self._design.outputs)))

    def _note(self, *what: Any) -> None:
        self._bench.seen.append((self._name, self._bench.now, *what))

    def _some(self) -> Sequence[Value]:
        outputs = self._chance.sample(list(self._design.outputs), 2)
        return [outputs[0], *self._design.inputs[:1], outputs[1] + 1]

    async def _tick(self, ctx: Any, domain: str) -> Any:
        return await ctx.tick(domain)

    async def _sample(self, ctx: Any, domain: str) -> Any:
        return await ctx.tick(domain).sample(*self._some())

    async def _each(self, ctx: Any, domain: str) -> Any:
        count, late, found = self._chance.randint(1, 5), self._chance.random() < 0.2, []
        async for values in ctx.tick(domain).sample(*self._some()):
            found.append(values)
            if len(found) == count:
                break
            if late:
                await ctx.tick(domain)
        return found

    async def _repeat(self, ctx: Any, domain: str) -> Any:
        return await ctx.tick(domain).sample(*self._some()).repeat(self._chance.randint(1, 12))

    async def _until(self, ctx: Any, domain: str) -> Any:
        signal = self._chance.choice(self._design.outputs)
        bit = signal if self._chance.random() < 0.5 else Cat(signal[0], signal[-1])
        return await ctx.tick(domain).sample(*self._some()).until(bit)

    async def _other(self, ctx: Any, domain: str) -> Any:
        delay = self._chance.choice((0, 1.3e-7, 1e-6, 2.5e-6))
        with ctx.critical():
            if self._chance.random() < 0.6:
                return await ctx.delay(delay)
            register = self._chance.choice(self._design.outputs[:8])
            return await ctx.changed(register).delay(5e-6).sample(*self._some())
