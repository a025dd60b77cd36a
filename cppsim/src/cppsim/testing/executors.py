"""Tests that run on several simulators, and have to see the same on each."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout, suppress
from functools import partial, wraps
from io import StringIO
from typing import Any

import amaranth.sim
from amaranth.sim import BrokenTrigger, DomainReset

import cppsim

from ..amaranth_internals import coroutines_of, engine_of
from .waveforms import waveforms

Make = Callable[[Any], Any]
"""A function that makes a simulator of a design."""

Testbench = Callable[[Any], Any]

_amaranth: Any = amaranth.sim.Simulator  # whose stub lacks the argument ``engine``


def _engine(design: Any) -> Any:
    return _amaranth(design, engine=cppsim.Engine)


def _always(design: Any) -> Any:
    return cppsim.Simulator(design, mode="always")


def _check(design: Any) -> Any:
    return cppsim.Simulator(design, mode="check")


EXECUTORS: Mapping[str, Make] = {
    "pysim": _amaranth,
    "engine": _engine,
    "always": _always,
    "check": _check,
}
"""Simulators by name: Amaranth's, the same with `cppsim.Engine`, and `cppsim.Simulator` by mode."""

NO_COMPILER = "no C++ compiler found"
"""The words that begin the reason for which Amaranth's simulator runs all designs."""


class Bench:
    """A run of a test on one simulator. The test appends to ``seen`` what has to be the same."""

    def __init__(self, make: Make) -> None:
        self._make = make
        self._made: Any = None
        self.seen: list[Any] = []

    def simulator(
        self,
        design: Any,
        *testbenches: Testbench,
        processes: Sequence[Testbench] = (),
        background: Sequence[Testbench] = (),
        clocks: float | Mapping[Any, Any] | None = 1e-6,
    ) -> Any:
        """Return a simulator of ``design``.

        Parameters
        ----------
        testbenches, processes, background : async functions
            Added in this order: processes, testbenches, testbenches in the background.
        clocks : float or mapping, optional
            The period of ``sync``, or by domain a period or a period and a phase.
        """
        self._made = made = self._make(design)
        if clocks is not None:
            by_domain = clocks if isinstance(clocks, Mapping) else {"sync": clocks}
            for domain, times in by_domain.items():
                period, phase = times if isinstance(times, tuple) else (times, None)
                made.add_clock(period, phase=phase, domain=domain)
        for process in processes:
            made.add_process(process)
        for testbench in testbenches:
            made.add_testbench(testbench)
        for testbench in background:
            made.add_testbench(testbench, background=True)
        return made

    def run(
        self,
        design: Any,
        *testbenches: Testbench,
        traces: Sequence[Any] | None = None,
        **options: Any,
    ) -> Any:
        """Simulate ``design`` to the end, and return its simulator.

        Other arguments are those of `simulator`. Lines that the design prints are seen at the end.
        With ``traces``, so are the waveforms of the design and of these signals.
        """
        made, output, file = self.simulator(design, *testbenches, **options), StringIO(), StringIO()
        try:
            with redirect_stdout(output):
                if traces is None:
                    made.run()
                else:
                    with made.write_vcd(file, traces=traces):
                        made.run()
        finally:
            close(made)
            if output.getvalue():
                self.seen.append(output.getvalue())
            if traces is not None:
                self.seen.append(waveforms(file.getvalue()))
        return made

    def reads(self, count: int, *values: Any, domain: str = "sync") -> Testbench:
        """Return a testbench that sees ``values`` after each of ``count`` ticks."""

        async def work(context: Any) -> None:
            for _ in range(count):
                await context.tick(domain)
                self.seen.append([context.get(value) for value in values])

        return work

    def sets(self, signal: Any, numbers: Sequence[int], *values: Any) -> Testbench:
        """Return a testbench that sets ``signal`` each microsecond, and then sees ``values``."""

        async def work(context: Any) -> None:
            for number in numbers:
                context.set(signal, number)
                if values:
                    self.seen.append([context.get(value) for value in values])
                await context.delay(1e-6)

        return work

    def awaits(self, count: int, wait: Callable[[Any], Any], *values: Any) -> Testbench:
        """Return a testbench that ``count`` times awaits a trigger, and sees what it returns.

        ``wait`` makes the trigger of a context. Seen are the time, the result or the name of an
        exception, and then ``values``.
        """

        async def work(context: Any) -> None:
            for _ in range(count):
                try:
                    found = await wait(context)
                except (BrokenTrigger, DomainReset) as error:
                    found = type(error).__name__
                self.seen.append((self.now, found, *map(context.get, values)))

        return work

    def follows(self, wait: Callable[[Any], Any], *, name: str = "") -> Testbench:
        """Return a process that sees, with its ``name``, each time at which a trigger fires.

        ``wait`` makes the trigger of a context.
        """

        async def work(context: Any) -> None:
            with suppress(BrokenTrigger):
                async for values in wait(context):
                    self.seen.append((name, self.now, values))
                return
            self.seen.append((name, self.now, "broken"))

        return work

    @property
    def reason(self) -> str:
        """Why the design is left to Amaranth's simulator, if it is."""
        return getattr(engine_of(self._made), "reason", "")

    @property
    def compiled(self) -> bool:
        """Whether compiled code runs the design."""
        return getattr(engine_of(self._made), "compiled", False)

    @property
    def now(self) -> int:
        """The simulated time in femtoseconds."""
        now: int = engine_of(self._made).now
        return now


def ticks(count: int, domain: str = "sync") -> Testbench:
    """Return a testbench that waits for ``count`` ticks at once."""

    async def work(context: Any) -> None:
        await context.tick(domain).repeat(count)

    return work


def delay(seconds: float) -> Testbench:
    """Return a testbench that waits for ``seconds``."""

    async def work(context: Any) -> None:
        await context.delay(seconds)

    return work


def close(simulator: Any) -> None:
    """End all testbenches at their current wait, because Amaranth does not end them."""
    for coroutine in filter(None, coroutines_of(simulator)):
        with suppress(RuntimeError):
            coroutine.close()


def same_on(*executors: str | Make) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator of tests that take a `Bench`, and that have to see the same on each.

    The test runs in Amaranth's simulator and on each of the ``executors``: names of `EXECUTORS`, or
    functions that make another simulator of a design. Without any, it runs on all of `EXECUTORS`.
    Raises ``AssertionError`` if a run sees something else, or if it is left to Amaranth's simulator
    though there is a compiler.
    """
    names = executors or tuple(name for name in EXECUTORS if name != "pysim")

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @wraps(test)
        def compare(**parameters: Any) -> None:
            expected = _seen(partial(test, **parameters), "pysim")
            _expect(bool(expected), "the test has to see something")
            for name in names:
                found = _seen(partial(test, **parameters), name)
                if found != expected:
                    raise AssertionError(f"{name}: {_difference(found, expected)}")

        signature = inspect.signature(test)
        _, *others = signature.parameters.values()
        compare.__signature__ = signature.replace(parameters=others)  # type: ignore[attr-defined]
        return compare

    return decorate


def _seen(test: Callable[[Bench], None], executor: str | Make) -> list[Any]:
    bench = Bench(EXECUTORS[executor] if isinstance(executor, str) else executor)
    test(bench)
    left = bench.reason and not bench.reason.startswith(NO_COMPILER)
    _expect(not left, f"left to Amaranth's simulator: {bench.reason}")
    return bench.seen


def _expect(condition: bool, message: str) -> None:
    if not condition:  # also where Python leaves out assertions
        raise AssertionError(message)


def _difference(found: list[Any], expected: list[Any]) -> str:
    """Return the first entry that differs, and of mappings the first key."""
    for number, (a, b) in enumerate(zip(found, expected, strict=False)):
        if a != b and isinstance(a, dict) and isinstance(b, dict):
            key = next(key for key in {**b, **a} if a.get(key) != b.get(key))
            return f"entry {number} has at {key!r} {a.get(key)}, expected {b.get(key)}"
        if a != b:
            return f"entry {number} is {a}, expected {b}"
    return f"{len(found)} entries, expected {len(expected)}: {found[-3:]}, {expected[-3:]}"
