"""Verilated circuits behind the interface of `cppsim.Model` agree with Amaranth's simulator."""

from contextlib import closing

import pytest
from amaranth.lib import wiring

from cppsim import Model, ReferenceModel
from cppsim.circuits import AnyModel
from simulators.verilated import build_verilated
from support.zoo import Memories, Partly, Registers, stimuli


def show(evaluator: AnyModel) -> dict[str, int]:
    return {port: evaluator.get(port) for port in evaluator.widths}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "sizes"),
    # Not 5 rows: above the last row Yosys' transparent port reads 0, Amaranth's what is written.
    [(Partly, (8,)), (Registers, (8,)), (Memories, (20, 8))],
    ids=["partly read", "registers", "memories"],
)
def test_verilog_shows_what_the_circuit_does(
    make: type[wiring.Component], sizes: tuple[int, ...]
) -> None:
    """Verilator shows the same values, from the Verilog that Amaranth's backend writes."""
    slow, fast = ReferenceModel(make(*sizes)), Model(make(*sizes), build_with=build_verilated)
    with closing(slow), closing(fast):
        for cycle, values in enumerate(stimuli(make(*sizes), 300)):
            for evaluator in (slow, fast):
                for port, value in values.items():
                    evaluator.set(port, value)
            shown, expected = show(fast), show(slow)
            if cycle == 0 and make is Memories:
                # Yosys registers a transparent port's address: row 0, not 0, before the first edge.
                assert (shown.pop("through"), expected.pop("through")) == (3, 0)
            assert shown == expected, (cycle, values)
            slow.step()
            fast.step()
