"""Runs testbenches on a circuit that is compiled once, because that takes seconds.

This module depends on no circuit of bitlane.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

from amaranth.hdl import Elaboratable

import cppsim
from cppsim.mode import Mode
from support.rtl.streams import CLOCK_PERIOD, DEADLINE, Runs, Testbench, clocked, function_of, late

__all__ = ["CompiledCircuit", "compiled"]

_Component = TypeVar("_Component", bound=Elaboratable)

_MOST = 8
"""Testbenches of each kind, foreground and background, at most."""


class CompiledCircuit:
    """A component with the clock domain ``sync``, compiled once for any number of runs."""

    def __init__(self, component: Elaboratable) -> None:
        self._simulator = cppsim.Simulator(clocked(component), mode=Mode.ALWAYS)
        self._simulator.add_clock(CLOCK_PERIOD)
        self._testbenches: dict[bool, Sequence[Testbench]] = {}
        for background in (False, True):
            for number in range(_MOST):
                self._simulator.add_testbench(
                    self._place(number, background=background), background=background
                )

    def simulate(
        self,
        *testbenches: Runs | Testbench,
        background: Sequence[Runs | Testbench] = (),
        deadline: int = DEADLINE,
    ) -> None:
        """Run testbenches as `streams.simulate` does, from power-on."""
        others = [*map(function_of, background), late(deadline)]
        assert max(len(testbenches), len(others)) <= _MOST
        self._testbenches = {False: list(map(function_of, testbenches)), True: others}
        self._simulator.reset()
        self._simulator.run()

    def _place(self, number: int, *, background: bool) -> Testbench:
        """Return a testbench that runs the current testbench of this number, if there is one."""

        async def run(ctx: Any) -> None:
            testbenches = self._testbenches[background]
            if number < len(testbenches):
                await testbenches[number](ctx)

        return run


_known: dict[tuple[Any, ...], tuple[Any, CompiledCircuit]] = {}


def compiled(
    make: Callable[..., _Component], *arguments: Hashable
) -> tuple[_Component, CompiledCircuit]:
    """Return ``make(*arguments)`` and its compiled circuit, cached by the arguments."""
    key = (make, *arguments)
    if key not in _known:
        component = make(*arguments)
        _known[key] = component, CompiledCircuit(component)
    return _known[key]
