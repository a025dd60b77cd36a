"""Coverage counts what a second model counts, from the values of Amaranth's simulator."""

import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from amaranth.hdl import ClockDomain, Fragment
from amaranth.sim import Simulator as AmaranthSimulator

import cppsim
from cppsim.coverage import Coverage
from support.random_designs import RandomDesign, random_circuit, random_machine
from support.random_values import random_number
from support.seeds import seeds

_STEPS = 40


class _Model:
    """Counts in Amaranth's simulator, from samples before each edge of a clock."""

    def __init__(self, simulator: Any) -> None:
        design = simulator._design
        self._simulator = simulator
        self.signals: list[tuple[str, str, Any]] = []
        self.statements: list[tuple[str, Sequence[Any]]] = []
        clocks = set[int]()
        domains: dict[int, tuple[str, ClockDomain]] = {}
        for fragment in design.fragments:
            for name, domain in fragment.domains.items():
                domains[id(domain)] = (name, domain)
                clocks |= {id(domain.clk), id(domain.rst)}
        met = set(clocks)
        for fragment, about in self._ordered(design.fragment, design):
            for signal, name in about.signal_names.items():
                if id(signal) not in met:
                    met.add(id(signal))
                    self.signals.append((".".join(about.name), name, signal))
            if type(fragment) is Fragment:
                self.statements += fragment.statements.items()
        self._tests: dict[int, Any] = {}
        for _, statements in self.statements:
            self._find_tests(statements)
        self._samples: dict[Any, tuple[set[str], Sequence[int]]] = {}
        for name, domain in domains.values():
            simulator.add_process(self._sampling(name, domain))

    def _ordered(self, fragment: Any, design: Any) -> Iterator[tuple[Any, Any]]:
        yield fragment, design.fragments[fragment]
        for inner, *_ in fragment.subfragments:
            yield from self._ordered(inner, design)

    def _find_tests(self, statements: Any) -> None:
        for statement in statements:
            for _, inner, _ in getattr(statement, "cases", ()):
                self._tests[id(statement)] = statement.test
                self._find_tests(inner)

    def _sampling(self, name: str, domain: ClockDomain) -> Callable[[Any], Any]:
        values = [*(x for _, _, x in self.signals), *self._tests.values()]

        async def process(ctx: Any) -> None:
            async for hit, _, *found in ctx.tick(domain).sample(*values):
                if hit:
                    now = self._simulator._engine.now
                    names, before = self._samples.setdefault(now, (set(), found))
                    assert before == found
                    names.add(name)

        return process

    @property
    def tests(self) -> Sequence[Any]:
        """The tests of all switches."""
        return list(self._tests.values())

    def toggles(self) -> dict[tuple[str, str, int], tuple[int, int]]:
        """Return the changes to 1 and to 0 by path, name and bit."""
        found = {}
        samples = [values for _, values in self._samples.values()]
        for number, (path, name, signal) in enumerate(self.signals):
            if "/contextlib.py" in signal.src_loc[0]:  # as the signal of a state machine is
                continue
            for bit in range(len(signal)):
                levels = [int(values[number]) >> bit & 1 for values in samples]
                pairs = list(itertools.pairwise(levels))
                found[path, name, bit] = pairs.count((0, 1)), pairs.count((1, 0))
        return found

    def conditions(self) -> list[tuple[str, int, int]]:
        """Return the kind, the line and the count of each statement and branch, in order."""
        found: list[tuple[str, int, int]] = []
        for domain, statements in self.statements:
            states = [
                dict(zip(self._tests, values[len(self.signals) :], strict=True))
                for names, values in self._samples.values()
                if domain == "comb" or domain in names
            ]
            self._count(statements, states, found)
        return found

    def _count(self, statements: Any, states: Sequence[Any], found: list[Any]) -> None:
        for statement in statements:
            if not hasattr(statement, "cases"):
                file, line = statement.src_loc
                if "/amaranth/hdl/" not in file:  # as `m.next` is
                    found.append(("statement", line, len(states)))
                continue
            left, taken = states, []
            for patterns, _, _ in statement.cases:
                here = [x for x in left if self._matches(statement, patterns, x)]
                left = [x for x in left if x not in here]
                taken.append(here)
            for (_, _, src_loc), here in zip(statement.cases, taken, strict=True):
                found.append(("branch", src_loc[1], len(here)))
            if _is_if(statement) and statement.cases[-1][0] is not None:
                found.append(("branch", statement.src_loc[1], len(left)))
            for (_, inner, _), here in zip(statement.cases, taken, strict=True):
                self._count(inner, here, found)

    def _matches(self, statement: Any, patterns: Any, state: Any) -> bool:
        if patterns is None:
            return True
        width = len(statement.test)
        text = format(state[id(statement)] & ((1 << width) - 1), f"0{width}b") if width else ""
        return any(all(x in ("-", y) for x, y in zip(p, text, strict=True)) for p in patterns)


def _is_if(statement: Any) -> bool:
    return type(statement.test).__name__ == "Concat" and all(
        patterns is None or [x for x in patterns[0] if x != "-"] == ["1"]
        for patterns, _, _ in statement.cases
    )


def _run(simulator: Any, design: RandomDesign, seed: int) -> None:
    chance = random.Random(seed)
    for number, (domain, period) in enumerate(design.clocks.items()):
        simulator.add_clock(period, phase=1e-7 * (number + 1), domain=domain)

    async def testbench(ctx: Any) -> None:
        for _ in range(_STEPS):
            for signal in design.inputs:
                if chance.random() < 0.6:
                    ctx.set(signal, random_number(chance, signal))
            await ctx.delay(0.25e-6)

    simulator.add_testbench(testbench)
    simulator.run()


def _can_be_sampled(design: RandomDesign) -> bool:
    """Return whether Amaranth's simulator samples all tests: not an array with an index of 0 bits.

    It raises ``ValueError`` for these.
    """
    simulator = AmaranthSimulator(design.module)
    model = _Model(simulator)

    async def testbench(ctx: Any) -> None:
        for test in model.tests:
            ctx.get(test)

    simulator.add_testbench(testbench)
    try:
        simulator.run()
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("make", [random_circuit, random_machine])
@pytest.mark.parametrize("seed", seeds(2, 25))
def test_random_designs(make: Callable[[int], RandomDesign], seed: int) -> None:
    seed = next(x for x in itertools.count(seed, 1000) if _can_be_sampled(make(x)))
    design = make(seed)
    with Coverage(toggles=True) as coverage:
        simulator = cppsim.Simulator(design.module)
    assert simulator._engine.compiled
    _run(simulator, design, seed)
    counts = coverage.counts()

    design = make(seed)
    reference = AmaranthSimulator(design.module)
    model = _Model(reference)
    _run(reference, design, seed)

    found = [(x.kind, x.line, count) for x, count in counts.items() if x.kind != "toggle"]
    assert found == model.conditions()
    toggles = iter([(x, count) for x, count in counts.items() if x.kind == "toggle"])
    for (path, name, bit), pair in model.toggles().items():
        for change, count in zip(("0->1", "1->0"), pair, strict=True):
            point, mine = next(toggles)
            assert point.path == path
            assert point.name in (f"{name} {change}", f"{name}[{bit}] {change}")
            assert mine == count, point
    assert not list(toggles)
