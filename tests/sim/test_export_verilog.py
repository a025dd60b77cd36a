"""Verilog written from netlists shows in every cycle what Amaranth's simulator shows."""

from contextlib import closing

import pytest
from amaranth.lib import wiring

from bitlane_sim.bench.verilated import build_verilated
from bitlane_sim.compiled.model import CompiledEvaluator
from bitlane_sim.pysim import PysimEvaluator
from support.sim.zoo import Memories, Partly, Registers, stimuli

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("make", "sizes"),
    [(Partly, (8,)), (Registers, (8,)), (Memories, (20, 5))],
    ids=["partly read", "registers", "memories"],
)
def test_verilog_shows_what_the_circuit_does(
    make: type[wiring.Component], sizes: tuple[int, ...]
) -> None:
    component = make(*sizes)
    slow = PysimEvaluator(make(*sizes))
    fast = CompiledEvaluator(component, build_with=build_verilated)
    with closing(slow), closing(fast):
        for cycle, values in enumerate(stimuli(component, 300)):
            shown = []
            for evaluator in (slow, fast):
                for port, value in values.items():
                    evaluator.set(port, value)
                shown.append({port: evaluator.get(port) for port in evaluator.widths})
                evaluator.step()
            assert shown[0] == shown[1], (cycle, values)
