"""Random processes beside registers for comparisons of simulators.

A process samples signals at a tick or at changes of signals, and answers by setting its own signal:
it stands for registers or for logic.
"""

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from amaranth.hdl import Cat, ClockDomain, Module, Mux, Shape, Signal, Value
from amaranth.sim import BrokenTrigger

from ..amaranth_internals import engine_of
from .designs import RandomDesign
from .executors import Bench, close
from .testbenches import RandomTestbench
from .values import random_number

_Log = list[tuple[Any, ...]]

_ANSWERS = 2
"""Most answers of a process at one time: a process may watch logic of its own signal."""


def random_clocked(seed: int) -> RandomDesign:
    """Return registers, and others behind clocks that logic makes of registers and inputs.

    There are as many assignments before each clock, and none before the data of other registers:
    cppsim evaluates all logic at once, but Amaranth's simulator each assignment a delta cycle after
    its sources.
    """
    chance = random.Random(seed)
    m = Module()
    m.domains.sync = ClockDomain("sync", reset_less=True)
    inputs = [Signal(name=f"input{k}") for k in range(4)]
    registers = [Signal(name=f"register{k}", init=chance.randrange(2)) for k in range(4)]
    leaves = [*inputs, *registers]
    for register in registers:
        a, b, c = chance.sample(leaves, 3)
        m.d.sync += register.eq(chance.choice((a ^ b ^ c, ~register, a & b | c)))
    outputs, direct = [*registers], chance.random() < 0.5
    for number in range(3):
        edge = chance.choice(("pos", "neg"))
        made: Any = ClockDomain(f"made{number}", clk_edge=edge, reset_less=True)
        m.domains += made
        # An input alone would be the clock itself, and its edges a delta cycle earlier.
        a, b = chance.sample(leaves, 2)
        alone = chance.choice(registers)
        clock = made.clk if direct else Signal(name=f"clock{number}")
        m.d.comb += clock.eq(chance.choice((alone, ~a, a ^ b, a & b, a | ~b)))
        if clock is not made.clk:
            m.d.comb += made.clk.eq(clock)
        count, data = Signal(8, name=f"count{number}"), Signal(8, name=f"data{number}")
        m.d[made.name] += [count.eq(count + 1), data.eq(Cat(*leaves))]
        outputs += [made.clk, count, data]
    return RandomDesign(m, inputs, outputs, {"sync": 1e-6}, ("sync",))


def random_counters(seed: int) -> RandomDesign:
    """Return registers that change often, and logic of one to three assignments behind them.

    All paths to a signal have as many assignments, and nothing that is not 0 follows from zeros: so
    it has no glitches in Amaranth's simulator, also at power-on.
    """
    chance = random.Random(seed)
    m = Module()
    m.domains += ClockDomain("sync", reset_less=True), ClockDomain("other", async_reset=True)
    m.domains += ClockDomain("fall", clk_edge="neg", reset_less=True)
    inputs = [Signal(chance.choice((1, 3, 8)), name=f"input{k}") for k in range(4)]
    registers = [
        Signal(Shape(chance.choice((1, 1, 2, 8, 70)), chance.random() < 0.3), name=f"register{k}")
        for k in range(6)
    ]
    leaves = [*inputs, *registers]
    for register in registers:
        domain, leaf = chance.choice(("sync", "fall", "other")), chance.choice(leaves)
        m.d[domain] += register.eq(chance.choice((register + 1, ~register, register - leaf - 1)))
    logic: list[Signal] = []
    for number in range(12):
        if number >= 6 and number % 3 == 0:
            leaves = logic[-3:]
        a, b = chance.choices(leaves, k=2)
        choices = [a, a[0], a[len(a) // 2 :], a ^ b, a + b, a < b, Mux(a[0], b, a & b)]
        # Signals that no other logic reads may change at power-on in any way.
        alone = number < 3
        value = chance.choice([*choices, ~a, a - b - 1] if alone else choices)
        init = chance.choice((0, -1)) if alone else 0
        logic.append(Signal.like(value, name=f"logic{number}", init=init))
        m.d.comb += logic[-1].eq(value)
    clocks = {"sync": 1e-6, "fall": chance.choice((1e-6, 0.7e-6)), "other": 1.6e-6}
    return RandomDesign(m, inputs, [*registers, *logic], clocks, tuple(clocks))


def follow_processes(
    bench: Bench, design: RandomDesign, *, seed: int, testbenches: bool = False
) -> None:
    """Let ``bench`` see what random testbenches see, and processes that watch outputs.

    Each process has one of the inputs, and a log: Amaranth runs processes in any order. With
    ``testbenches`` they are testbenches in the background.
    """
    chance = random.Random(seed)
    simulator = bench.simulator(design.module, clocks=design.clocks)
    owned = chance.sample(design.inputs[:4], chance.randint(1, 3))
    left = [x for x in design.inputs if not any(x is y for y in owned)]
    logs: list[_Log] = []
    for own in owned:
        process = _Process(design, own, bench, chance.random())
        if testbenches:
            simulator.add_testbench(process.work, background=True)
        else:
            simulator.add_process(process.work)
        logs.append(process.log)
    others = replace(design, inputs=left)
    for number in range(chance.randint(1, 2)):
        simulator.add_testbench(
            RandomTestbench(f"bench{number}", others, bench, seed + number).work
        )
    for deadline in (17.7e-6, 50e-6):
        simulator.run_until(deadline)
        bench.seen.append(("until", *map(engine_of(simulator).get_value, design.outputs)))
    close(simulator)
    bench.seen.append(logs)


_PATIENCE = 2.3117e-6
"""Seconds after which a process acts without a change, at no edge of a clock."""


class _Process:
    """A process of random waits that logs the result of each."""

    def __init__(self, design: RandomDesign, own: Signal, bench: Bench, seed: float) -> None:
        self.log: _Log = []
        self._design, self._own, self._bench = design, own, bench
        self._watched = design.outputs
        self._chance = random.Random(seed)
        self._answered: tuple[int, int] = (-1, 0)

    async def work(self, ctx: Any) -> None:
        while True:
            trigger, count = self._trigger(ctx), self._chance.randint(1, 6)
            once = self._chance.random() < 0.5
            try:
                if once:
                    self._answer(ctx, await trigger)
                    continue
                async for values in trigger:
                    self._answer(ctx, values)
                    count -= 1
                    if not count:
                        break
            except BrokenTrigger:
                self.log.append((self._bench.now, "broken"))

    def _trigger(self, ctx: Any) -> Any:
        chance = self._chance
        first, second, third = chance.choices(self._watched, k=3)
        bit = first[chance.randrange(len(first))]
        trigger = chance.choice(
            (
                lambda: ctx.tick(chance.choice(list(self._design.clocks))),
                lambda: ctx.changed(first),
                lambda: ctx.changed(first, second),
                lambda: ctx.posedge(bit),
                lambda: ctx.negedge(bit),
                lambda: ctx.changed(second).posedge(bit),
                lambda: ctx.changed(chance.choice(self._design.inputs)),
            )
        )()
        if hasattr(trigger, "delay"):
            trigger = trigger.delay(_PATIENCE)
        return trigger.sample(second, Value.cast(third) + first, *self._design.inputs[:3])

    def _answer(self, ctx: Any, values: Sequence[Any] | None) -> None:
        now = self._bench.now
        # Amaranth's trigger returns None to a testbench that wakes up by another one.
        self.log.append((now, values))
        time, count = self._answered
        self._answered = (now, count + 1 if time == now else 1)
        if self._answered[1] <= _ANSWERS and self._chance.random() < 0.8:
            ctx.set(self._own, random_number(self._chance, self._own))
