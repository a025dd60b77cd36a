"""Netlists are the same if only bits differ that nothing reads, and differ if a result does."""

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from bitlane_boards import boards
from mutants.netlists import circuits, is_same, netlist


class Adder(wiring.Component):  # type: ignore[type-arg]
    """The low 8 bits of ``a + b + more``, from a sum of ``width`` bits."""

    a: In(8)
    b: In(8)
    total: Out(8)

    def __init__(self, width: int, more: int = 0) -> None:
        self._width = width
        self._more = more
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        total = Signal(self._width)
        m.d.comb += [total.eq(self.a + self.b + self._more), self.total.eq(total)]
        return m


BEFORE = netlist(lambda: Adder(8))


def test_a_bit_that_nothing_reads_makes_another_netlist_but_the_same_model() -> None:
    after = netlist(lambda: Adder(9))
    assert after["netlist"] != BEFORE["netlist"]
    assert after["simulated"] == BEFORE["simulated"]
    assert is_same(BEFORE, after)


@pytest.mark.parametrize(("width", "more"), [(7, 0), (8, 1)])
def test_another_result_makes_another_model(width: int, more: int) -> None:
    assert not is_same(BEFORE, netlist(lambda: Adder(width, more)))


def test_a_file_is_looked_for_in_the_circuits_that_have_it() -> None:
    cores, tops = {*circuits("addresses/loop_nest.py")}, {*circuits("serial/uart.py")}
    assert {"copy", "small", "full"} <= cores
    assert tops == {*boards()} == {*circuits("link/executor.py")}
    assert {*circuits("ethernet/packet_fifo.py")} == {
        name for name, board in boards().items() if board.ethernet
    }
    assert "ulx3s-search" in circuits("search/additions.py").keys() < tops
    assert {*circuits("ports/signatures.py")} == {*circuits()} == cores | tops
