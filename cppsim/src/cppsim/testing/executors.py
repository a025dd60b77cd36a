"""Tests that run on several simulators, and have to see the same on each."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

import amaranth.sim

import cppsim
from cppsim.mode import Mode

Simulator: Any = amaranth.sim.Simulator
"""Amaranth's own, as ``Any``, because its stub lacks the argument ``engine``."""


class Bench:
    """A run of a test on the simulators of ``make``; the test appends to ``seen``."""

    def __init__(self, make: Callable[[Any], Any]) -> None:
        self._make = make
        self.seen: list[Any] = []

    def simulator(
        self, module: Any, *testbenches: Any, processes: Any = (), clock: float | None = 1e-6
    ) -> Any:
        """Return a simulator of ``module``, whose clock is that of ``sync``."""
        self._made = self._make(module)
        if clock is not None:
            self._made.add_clock(clock)
        for process in processes:
            self._made.add_process(process)
        for testbench in testbenches:
            self._made.add_testbench(testbench)
        return self._made

    def run(self, module: Any, *testbenches: Any, **options: Any) -> Any:
        """Simulate ``module`` to the end; arguments are those of `simulator`."""
        made = self.simulator(module, *testbenches, **options)
        made.run()
        return made

    @property
    def reason(self) -> str:
        """Why the design is left to Amaranth's simulator, if it is."""
        return getattr(self._made._engine, "reason", "")

    @property
    def compiled(self) -> bool:
        """Whether compiled code runs the design."""
        return getattr(self._made._engine, "compiled", False)

    @property
    def now(self) -> int:
        """The simulated time in femtoseconds."""
        now: int = self._made._engine.now
        return now


def on_engine(module: Any) -> Any:
    return Simulator(module, engine=cppsim.Engine)


def fast_forwarding(module: Any) -> Any:
    return cppsim.Simulator(module, mode=Mode.ALWAYS)


def same_on(*makes: Callable[[Any], Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator of tests that take a `Bench`.

    The test runs in Amaranth's simulator and on those of ``makes``.
    """

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @wraps(test)
        def compare(**parameters: Any) -> None:
            def seen(make: Callable[[Any], Any]) -> list[Any]:
                bench = Bench(make)
                test(bench, **parameters)
                # Without a compiler, Amaranth's simulator runs all designs.
                assert not bench.reason or bench.reason.startswith("no C++ compiler found")
                return bench.seen

            expected = seen(Simulator)
            assert expected
            for make in makes:
                found = seen(make)
                assert found == expected, f"{make}: {found}, expected {expected}"

        signature = inspect.signature(test)
        _, *others = signature.parameters.values()
        compare.__signature__ = signature.replace(parameters=others)  # type: ignore[attr-defined]
        return compare

    return decorate
