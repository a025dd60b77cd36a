"""Wrappers of private Amaranth code have one form for all versions of Amaranth."""

import ast as python
import random
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from operator import methodcaller
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from amaranth import hdl
from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.sim import Simulator

import cppsim
from cppsim import amaranth_internals
from cppsim.amaranth_internals import (
    PySimEngine,
    emitted_netlist,
    empty_design,
    femtoseconds_of,
    nir,
    time_of,
)
from cppsim.mode import Mode
from cppsim.testing import EXECUTORS, Bench
from support.seeds import seeds
from support.small import counter


def test_times_are_in_seconds() -> None:
    assert femtoseconds_of(1.5e-6) == 1_500_000_000
    assert time_of(1_500_000_000) == 1.5e-6


def test_times_are_periods_in_the_next_version(monkeypatch: pytest.MonkeyPatch) -> None:
    assert femtoseconds_of(SimpleNamespace(femtoseconds=7)) == 7
    monkeypatch.setattr(hdl, "Period", SimpleNamespace, raising=False)
    assert femtoseconds_of(1.5e-6) is None, "left to Amaranth, which warns of it"
    assert time_of(7) == SimpleNamespace(fs=7)


@pytest.mark.parametrize("run", [("run",), ("run_until", 3e-6)], ids=lambda x: x[0])
def test_runs_close_generators_as_the_next_version_does(
    run: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = list[str]()

    @contextmanager
    def replace_hooks(_: Any) -> Iterator[None]:
        seen.append("replaced")
        yield
        seen.append("restored")

    async def work(ctx: Any) -> None:
        await ctx.tick()
        seen.append("ran")

    monkeypatch.setattr(Simulator, "_replace_asyncgen_hooks", replace_hooks, raising=False)
    methodcaller(*run)(Bench(EXECUTORS["always"]).simulator(counter()[0], work))
    assert seen == ["replaced", "ran", "restored"]


def test_a_compiled_engine_has_all_that_amaranths_constructor_sets() -> None:
    class Newer(PySimEngine):  # type: ignore[misc]
        """Amaranth's engine in a version with one attribute more."""

        def __init__(self, design: Any) -> None:
            super().__init__(design)
            self.added = 1

    class NewerEngine(cppsim.Engine, Newer):
        """cppsim's engine on top of it."""

        mode = Mode.ALWAYS

    engine: Any = NewerEngine(hdl.Fragment.get(counter()[0], None).prepare())
    assert engine.compiled
    assert vars(PySimEngine(empty_design())).keys() < vars(engine).keys()
    assert engine.added == 1
    assert not engine._processes


def test_the_page_for_amaranth_lists_all_private_parts() -> None:
    tree, used = python.parse(Path(amaranth_internals.__file__).read_text(encoding="utf-8")), set()
    for node in python.walk(tree):
        match node:
            case python.Attribute(value=python.Name("self")):
                pass
            case python.Attribute(attr=name) | python.Constant(value=str(name)):
                if name.startswith("_") and name.isidentifier() and not name.startswith("__"):
                    used.add(name)
    for node in tree.body:
        match node:
            case python.AnnAssign(value=python.Attribute(attr=name)):
                used.add(name)
    page = (Path(__file__).parents[1] / "docs" / "upstream.md").read_text(encoding="utf-8")
    listed = page.partition("## The private parts")[2]
    assert len(used) > 40
    assert used - set(re.findall(r"`(\w+)`", listed)) == set()


def random_expression(rng: random.Random, signals: list[Any], depth: int = 0) -> Any:
    if depth > 2 or rng.random() < 0.3:
        signal = rng.choice(signals)
        return signal[rng.randrange(len(signal)) :] if rng.random() < 0.6 else signal
    x, y, z = (random_expression(rng, signals, depth + 1) for _ in range(3))
    near = [x & y, ~x, Mux(x, y, z), Cat(x, y)]
    far = [x + y, x << y[:2], x.bit_select(y, 2), x == y, x.any()]
    return rng.choice([*near, *far])


@pytest.mark.parametrize("seed", seeds(100, 3000))
def test_cycles_are_those_that_amaranth_finds(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each signal depends on bits of earlier ones, and perhaps a bit of the first on any."""
    rng, m = random.Random(seed), Module()
    signals = [Signal(rng.randint(1, 4), name=f"s{number}") for number in range(6)]
    for number, signal in enumerate(signals[1:], 1):
        with m.Switch(random_expression(rng, signals[:number])[:1]):
            for case in range(rng.randint(1, 2)):
                with m.Case(case):
                    m.d.comb += signal.eq(random_expression(rng, signals[:number]))
    if rng.random() < 0.7:
        bit = rng.randrange(len(signals[0]))
        m.d.comb += signals[0][bit].eq(random_expression(rng, signals))
    found: list[str] = []

    def compare(netlist: Any) -> None:
        for check in (ours, nir.Netlist.check_comb_cycles):
            try:
                check(netlist)
                found.append("")
            except nir.CombinationalCycle as cycle:
                found.append(str(cycle).splitlines()[0])
        if any(found):
            raise nir.CombinationalCycle

    ours = amaranth_internals.expect_no_cycle
    monkeypatch.setattr(amaranth_internals, "expect_no_cycle", compare)
    with suppress(nir.CombinationalCycle):
        emitted_netlist(hdl.Fragment.get(m, None).prepare(), idle=True)
    assert found[0] == found[1] in ("", "Combinational cycle detected, path:")
