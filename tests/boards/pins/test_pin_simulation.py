"""A circuit at its pins: every byte in both directions, at exact cycles, as a UART would see it."""

import random

import pytest
from amaranth.hdl import Assert, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from bitlane_boards.pins import PinSimulation
from cppsim.errors import SimulationError
from support.sim.answerer import Answerer, answers

DIVIDER = 8


class Loose(wiring.Component):
    """A wire from ``rx`` to ``tx``; an assertion fails once ``rx`` is low for 20 cycles."""

    rx: In(1, init=1)
    tx: Out(1, init=1)
    wide: Out(4)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        low = Signal(8)
        m.d.comb += [self.tx.eq(self.rx), Assert(low < 20), self.wide.eq(low)]
        m.d.sync += low.eq(low + 1)
        with m.If(self.rx):
            m.d.sync += low.eq(0)
        return m


def some(count: int, seed: int = 1) -> bytes:
    return random.Random(seed).randbytes(count)


def test_bytes_come_back_right_and_at_exact_cycles() -> None:
    simulation = PinSimulation(Answerer(DIVIDER), DIVIDER)
    data = some(300)
    simulation.send(data)
    assert simulation.wait(len(data), 10 * DIVIDER * (len(data) + 2))
    got, cycles = simulation.receive_timed()
    assert got.tobytes() == bytes(answers(data))
    # 7.5 bits in, 2 cycles of synchroniser and 4 of the circuit, 9.5 bits out; then without a gap.
    first = round(17 * DIVIDER) + 14
    assert cycles.tolist() == [first + 10 * DIVIDER * index for index in range(len(data))]
    assert simulation.cycle == cycles[-1] + 1
    assert simulation.framing_errors == simulation.unsent == simulation.arrived == 0


def test_run_clocks_exactly_so_often() -> None:
    simulation = PinSimulation(Answerer(DIVIDER), DIVIDER)
    simulation.run(123)
    simulation.run(0)
    simulation.run(1)
    assert simulation.cycle == 124
    assert simulation.receive() == b""


def test_wait_gives_up_at_its_limit_and_takes_up_again() -> None:
    simulation = PinSimulation(Answerer(DIVIDER), DIVIDER)
    simulation.send(b"ab")
    assert not simulation.wait(1, 100)
    assert simulation.cycle == 100
    assert simulation.wait(2, 200)
    assert not simulation.wait(3, 500)
    assert simulation.cycle == 231 + 500
    assert simulation.receive(1) + simulation.receive() == bytes(answers(b"ab"))


def test_settle_waits_for_the_line_and_for_busy() -> None:
    simulation = PinSimulation(Answerer(DIVIDER), DIVIDER)
    simulation.send(b"z")
    assert simulation.settle(quiet=40, limit=10_000)
    assert simulation.arrived == 1
    # The stop bit ends half a bit after the byte has come.
    (cycle,) = simulation.receive_timed()[1].tolist()
    assert cycle + 40 <= simulation.cycle <= cycle + 40 + DIVIDER
    before = simulation.cycle
    assert simulation.settle(quiet=40, limit=10_000)
    assert simulation.cycle == before
    simulation.send(b"z")
    assert not simulation.settle(quiet=40, limit=100)


@pytest.mark.parametrize("bit", [7.7, 7.9, 8.1, 8.3])
def test_a_clock_that_is_off_by_a_few_percent_does_no_harm(bit: float) -> None:
    simulation = PinSimulation(Answerer(DIVIDER), bit)
    data = some(50, seed=round(10 * bit))
    got = b""
    for byte in data:
        # One by one: answers to a line that is faster than the circuit's would pile up.
        simulation.send(bytes([byte]))
        assert simulation.wait(1, 1000)
        simulation.run(DIVIDER)
        got += simulation.receive()
    assert got == bytes(answers(data))
    assert simulation.framing_errors == 0


@pytest.mark.parametrize("bit", [6.5, 10.0])
def test_another_bit_rate_is_garbage_on_the_line(bit: float) -> None:
    simulation = PinSimulation(Answerer(DIVIDER), bit)
    data = some(50)
    simulation.send(data)
    simulation.run(50 * 10 * 10)
    assert simulation.receive() != bytes(answers(data))


def test_a_broken_rule_of_the_circuit_is_told_with_its_cycle() -> None:
    simulation = PinSimulation(Loose(), DIVIDER)
    simulation.send(b"\xff")
    simulation.run(90)
    simulation.send(b"\x00")
    with pytest.raises(SimulationError, match=r"cycle \d+: "):
        simulation.run(200)


def test_pins_that_are_missing_or_wide_are_refused() -> None:
    with pytest.raises(SimulationError, match="no pin 'rxd', only rst, rx, tx, busy"):
        PinSimulation(Answerer(DIVIDER), DIVIDER, rx="rxd")
    with pytest.raises(SimulationError, match="no pin 'wide', 4 bits"):
        PinSimulation(Loose(), DIVIDER, tx="wide")
    with pytest.raises(SimulationError, match=r"divider 1\.5: expected 2 or more"):
        PinSimulation(Loose(), 1.5)


def test_other_ports_can_be_read_and_driven() -> None:
    simulation = PinSimulation(Answerer(DIVIDER), DIVIDER)
    simulation.send(b"a")
    assert simulation.get("busy") == 0
    simulation.run(100)
    assert simulation.get("busy") == 1
    simulation.set("rst", 1)
    simulation.run(1)
    assert simulation.get("busy") == 0


def test_a_closed_simulation_says_so() -> None:
    simulation = PinSimulation(Answerer(DIVIDER), DIVIDER)
    simulation.close()
    simulation.close()
    with pytest.raises(SimulationError, match="closed"):
        simulation.run(1)
    with pytest.raises(SimulationError, match="closed"):
        assert simulation.cycle
