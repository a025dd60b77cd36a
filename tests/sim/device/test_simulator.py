"""The simulated system: the same bytes and cycles in both evaluators, settings, faults, rules."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from time import monotonic
from typing import Any

import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring

import bitlane_sim.system.system
from bitlane.driver import Driver
from bitlane.errors import DeviceFault, LinkError
from bitlane.lowering import Streams, View, lower
from bitlane_rtl.abi import CONTROL_BASE, IDENTITY, Lane, Mode, Op, Status, register
from bitlane_rtl.configuration import Configuration
from bitlane_rtl.core import Core
from bitlane_rtl.engine import Engine
from bitlane_sim.device import Simulator, SimulatorLink
from bitlane_sim.system import Hang, Response, Violation
from cppsim.errors import SimulationError
from support.seeds import slow

pytestmark = pytest.mark.any_face

SMALL = Configuration(
    data_width=32,
    memory_base=0x4000,
    memory_bytes=1 << 16,
    ops=frozenset({Op.XOR}),
    lanes=frozenset({Lane.BITS_8}),
    modes=frozenset({Mode.DENSE}),
    loops=2,
    length_bits=16,
    count_bits=12,
    slots=4,
    fifo_beats=32,
    bursts=4,
)


COUNTING = replace(
    SMALL,
    ops=frozenset({Op.XOR, Op.NOT, Op.COUNT}),
    lanes=frozenset({Lane.BITS_8, Lane.BITS_32}),
    modes=frozenset(Mode),
)


@pytest.fixture(
    scope="module", params=["compiled", slow("pysim, counting"), slow("compiled, counting")]
)
def shared(request: pytest.FixtureRequest) -> Iterator[Simulator]:
    evaluator, _, counting = request.param.partition(", ")
    with closing(Simulator(COUNTING if counting else SMALL, evaluator)) as simulator:
        yield simulator


@pytest.fixture
def simulator(shared: Simulator) -> Simulator:
    shared.power_on()
    shared.memory[:] = 0
    return shared


@pytest.fixture
def link(simulator: Simulator) -> SimulatorLink:
    return SimulatorLink(simulator)


@pytest.fixture
def driver(link: SimulatorLink) -> Driver:
    return Driver(link)


def xor(driver: Driver, size: int, rows: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """XOR of ``rows`` rows of ``size`` random bytes at odd addresses; what is there, and should."""
    random = np.random.default_rng(size)
    pitch = size + 3
    buffers = [driver.allocate(rows * pitch + 8) for _ in range(3)]
    data = [random.integers(0, 256, buffer.size, np.uint8) for buffer in buffers]
    for buffer, values in zip(buffers, data, strict=True):
        driver.write(buffer.address, values)
    views = [
        View(buffer.address + offset, (pitch, 1), 1)
        for buffer, offset in zip(buffers, (1, 2, 3), strict=True)
    ]
    has = driver.geometry
    driver.run(lower(Op.XOR, (rows, size), Streams(*views), has.abilities, has.memory))
    a, b, expected = data
    for start in range(0, rows * pitch, pitch):
        expected[start + 3 :][:size] = a[start + 1 :][:size] ^ b[start + 2 :][:size]
    result = driver.read(buffers[2].address, buffers[2].size)
    for buffer in buffers:
        driver.free(buffer)
    return result, expected


def test_control_window_answers(link: SimulatorLink) -> None:
    words = link.read(CONTROL_BASE, 8).view("<u4")
    assert words[0] == IDENTITY
    timeout = CONTROL_BASE + register("TIMEOUT").offset
    link.write(timeout, np.array([12345], "<u4"))
    assert link.read(timeout, 4).view("<u4")[0] == 12345
    assert 0 < link.cycles < 60
    assert link.slow == (link.simulator.evaluator.name == "pysim")


def test_memory_is_read_and_written_without_a_cycle(
    simulator: Simulator, link: SimulatorLink
) -> None:
    data = np.arange(1000, dtype=np.uint16)
    link.write(0x4001, data)
    read = link.read(0x4001, 2000)
    assert (read.view(np.uint16) == data).all()
    link.write(0x4001, b"\xff")
    assert read[0] == 0, "read gives a copy"
    assert (simulator.memory[:2] == (0, 0xFF)).all()
    assert link.cycles == 0


OUTSIDE = [(0x3FFF, 4), (0x13FFD, 4), (0x14000, 1), (0, 1), (0xFFFE_FFFF, 2)]
PARTS = [(CONTROL_BASE + 2, 4), (CONTROL_BASE, 3), (CONTROL_BASE + 0x3FFC, 8)]


@pytest.mark.parametrize(("address", "size"), [*OUTSIDE, *PARTS])
def test_other_accesses_are_refused(link: SimulatorLink, address: int, size: int) -> None:
    outside, part = "outside the memory, 0x4000 to 0x13fff", "not whole words of the control window"
    with pytest.raises(LinkError, match=f"are {outside if (address, size) in OUTSIDE else part}"):
        link.read(address, size)
    with pytest.raises(LinkError, match=r"are outside the mem|are not whole words of the control"):
        link.write(address, bytes(size))


def test_job_gives_the_right_bytes_under_latency_and_stalls(
    simulator: Simulator, driver: Driver
) -> None:
    for latency, stall in ((0, 0.0), (30, 0.0), (5, 0.5)):
        simulator.set_latency(latency)
        simulator.set_stalls(stall, seed=3)
        result, expected = xor(driver, 45, rows=3)
        assert (result == expected).all(), f"latency {latency}, stall {stall}, seed 3"


def test_evaluators_agree_on_every_byte_and_every_cycle() -> None:
    histories = []
    for evaluator in ("pysim", "compiled"):
        simulator = Simulator(SMALL, evaluator)
        driver = Driver(SimulatorLink(simulator))
        history: list[Any] = [simulator.cycles]
        for stall in (0.0, 0.3):
            simulator.set_stalls(stall, seed=7)
            simulator.clear_monitor()
            result, expected = xor(driver, 50, rows=2)
            assert (result == expected).all()
            history += [simulator.cycles, simulator.monitor, result.tobytes()]
        histories.append(history)
        simulator.close()
    assert histories[0] == histories[1]


def test_stalls_and_latency_cost_cycles(simulator: Simulator, driver: Driver) -> None:

    def cost() -> int:
        before = simulator.cycles
        xor(driver, 128)
        return simulator.cycles - before

    plain = cost()
    simulator.set_latency(100)
    assert cost() > plain + 190
    simulator.set_latency(0)
    assert cost() == plain
    simulator.set_stalls(0.75)
    assert cost() > plain + 50
    simulator.set_stalls(0)
    assert cost() == plain


def test_monitor_counts_what_a_job_moves(simulator: Simulator, driver: Driver) -> None:
    a, b, y = (driver.allocate(256) for _ in range(3))
    simulator.clear_monitor()
    views = [View(buffer.address, (1,), 1) for buffer in (a, b, y)]
    has = driver.geometry
    driver.run(lower(Op.XOR, (256,), Streams(*views), has.abilities, has.memory))
    report = simulator.monitor
    for channel, count in {"w": 64, "r": 64, "r_b": 64, "aw": 4, "b": 4, "doorbell": 1}.items():
        assert report[channel].count == count, channel
    assert report["doorbell"].last < report["w"].first < report["w"].last < report["b"].last


def test_injected_error_stops_the_engine_at_its_address_and_can_be_cleared(
    simulator: Simulator, driver: Driver
) -> None:
    simulator.inject_error(0x4000, 0x13FFF, read=True, response=Response.DECERR)
    with pytest.raises(DeviceFault) as read:
        xor(driver, 64)
    assert read.value.code == Status.READ_ERROR
    simulator.inject_error(0x4000, 0x13FFF, write=True)
    with pytest.raises(DeviceFault) as write:
        xor(driver, 64)
    assert write.value.code == Status.WRITE_ERROR
    simulator.inject_error()
    result, expected = xor(driver, 64)
    assert (result == expected).all()


@pytest.mark.parametrize("hang", [Hang.NO_ANSWER, Hang.NO_ACCEPT])
def test_hang_keeps_the_interrupt_low_until_it_is_over(
    simulator: Simulator, driver: Driver, link: SimulatorLink, hang: Hang
) -> None:
    link.write(CONTROL_BASE + register("TIMEOUT").offset, np.array([300], "<u4"))
    simulator.inject_hang(read=hang)
    before = simulator.cycles
    simulator.evaluator.until("irq", 1)

    def release(original: Callable[[float], bool]) -> Callable[[float], bool]:
        # The engine gives up; its bus drains only once the memory answers again.
        def wait(timeout: float) -> bool:
            high = original(timeout)
            if high:
                simulator.inject_hang()
            return high

        return wait

    driver.link.wait = release(driver.link.wait)  # type: ignore[method-assign]
    with pytest.raises(DeviceFault) as fault:
        xor(driver, 64)
    assert fault.value.code == Status.TIMEOUT
    assert simulator.cycles - before > 300
    result, expected = xor(driver, 64)
    assert (result == expected).all()


def test_wait_of_nothing_only_looks_and_a_wait_ends_at_its_deadline(link: SimulatorLink) -> None:
    assert not link.wait(0)
    assert link.cycles == 0
    started = monotonic()
    assert not link.wait(0.1)
    assert 0.1 <= monotonic() - started < 60
    assert link.cycles > 0


def test_a_wait_lasts_as_long_as_bytes_move(
    simulator: Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each look at the clock takes a second, as if the evaluator were slow."""
    seconds = itertools.count()
    monkeypatch.setattr("bitlane_sim.device.simulator.monotonic", lambda: float(next(seconds)))
    assert not simulator.wait(100.0)  # by this clock no slice is short enough, down to a cycle
    link, ended = SimulatorLink(simulator), []

    def wait(timeout: float) -> bool:
        started = next(seconds)
        came = simulator.wait(100.0)
        ended.append((came, next(seconds) - started))
        return came

    monkeypatch.setattr(link, "wait", wait)
    result, expected = xor(Driver(link), 600)
    assert (result == expected).all()
    ((came, took),) = ended
    assert came
    assert took > 200


def test_power_on_forgets_all_but_the_memory(simulator: Simulator, link: SimulatorLink) -> None:
    timeout = CONTROL_BASE + register("TIMEOUT").offset
    link.write(0x4000, b"stay")
    link.write(timeout, np.array([5], "<u4"))
    simulator.set_latency(9)
    simulator.power_on()
    assert simulator.cycles == 0
    assert link.read(timeout, 4).view("<u4")[0] != 5
    assert link.read(0x4000, 4).tobytes() == b"stay"
    assert simulator.evaluator.get("memory__latency") == 0


def test_closed_link_says_so() -> None:
    link = SimulatorLink(Simulator(SMALL, "compiled"))
    link.close()
    link.close()
    with pytest.raises(LinkError, match="simulator compiled, 32 bits: the link is closed"):
        link.read(0x4000, 1)


class EarlyLast(wiring.Component):
    """An engine with a planted bug: WLAST is always high."""

    def __init__(self, configuration: Configuration, engine: Engine | None) -> None:
        self._core = Core(configuration, engine)
        super().__init__(dict(self._core.signature.members))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.core = self._core
        for path, member, inner in self._core.signature.flatten(self._core):
            outer: Any = self
            for name in path:
                outer = getattr(outer, name)
            if path[-1] == "wlast":
                m.d.comb += outer.eq(1)
            else:
                m.d.comb += outer.eq(inner) if member.flow == wiring.Out else inner.eq(outer)
        return m


def test_broken_bus_rule_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bitlane_sim.system.system, "Core", EarlyLast)
    simulator = Simulator(SMALL, "pysim")
    driver = Driver(SimulatorLink(simulator))
    with pytest.raises(LinkError, match=f"bus rule {Violation.WLAST.name} was broken on WRITE"):
        xor(driver, 64)
    with pytest.raises(SimulationError, match="WLAST"):
        simulator.step()
