"""The monitor: right times, silent on legal traffic, and every broken rule is found and named."""

import random
from collections.abc import Iterator
from contextlib import closing

import pytest

from bitlane_rtl.abi import register
from bitlane_sim.system import Monitor, Violation, Where
from cppsim import Model
from support.seeds import seeds

SIZE, INCR = 3, 1


@pytest.fixture(scope="module")
def compiled() -> Iterator[Model]:
    with closing(Model(Monitor(32, 64, two=True))) as evaluator:
        yield evaluator


@pytest.fixture
def monitor(compiled: Model) -> Model:
    compiled.reset()
    return compiled


def cycle(monitor: Model, **ports: int) -> None:
    """One cycle in which the given ports of ``axi`` have these values, all others 0."""
    for name in monitor.widths:
        if name.startswith("axi_"):
            monitor.set(name, 0)
    for name, value in ports.items():
        bus = "axi_b" if name.startswith("b_b_") else "axi"
        monitor.set(f"{bus}__{name.removeprefix('b_b_')}", value)
    monitor.step()


def aw(address: int = 0x100, beats: int = 1, ready: int = 1, **more: int) -> dict[str, int]:
    ports = {"awvalid": 1, "awready": ready, "awaddr": address, "awlen": beats - 1}
    return ports | {"awsize": SIZE, "awburst": INCR} | more


def ar(address: int = 0x100, beats: int = 1, ready: int = 1, **more: int) -> dict[str, int]:
    return {f"ar{name[2:]}": value for name, value in aw(address, beats, ready).items()} | more


def w(last: int, ready: int = 1, data: int = 5) -> dict[str, int]:
    return {"wvalid": 1, "wready": ready, "wdata": data, "wstrb": 0xFF, "wlast": last}


def r(last: int, ready: int = 1, data: int = 5) -> dict[str, int]:
    return {"rvalid": 1, "rready": ready, "rdata": data, "rlast": last}


B = {"bvalid": 1, "bready": 1}
ON_B = {f"b_b_{name}": value for name, value in (ar() | r(1)).items()}

ILLEGAL = {
    Violation.AW_CHANGED: [
        [aw(ready=0), {}],
        [aw(ready=0), aw(0x180)],
        [aw(ready=0), aw(awprot=1)],
    ],
    Violation.W_CHANGED: [[aw(beats=2), w(0, ready=0), w(1)], [aw() | w(1, ready=0), w(1, data=6)]],
    Violation.B_CHANGED: [
        [aw() | w(1), {"bvalid": 1}, {}],
        [aw() | w(1), {"bvalid": 1, "bresp": 2}, B],
    ],
    Violation.AR_CHANGED: [[ar(ready=0), {}], [ar(ready=0), ar(beats=2)]],
    Violation.R_CHANGED: [[ar(), r(1, ready=0), {}], [ar(), r(1, ready=0), r(1, data=6)]],
    Violation.BURST: [[aw(awsize=2)], [aw(awburst=2)], [ar(arburst=0)]],
    Violation.ALIGNMENT: [[aw(0x101)], [ar(0x104)]],
    Violation.BOUNDARY: [[aw(0x178, beats=2)], [ar(0x108, beats=16)], [ar(0x100, beats=17)]],
    Violation.WLAST: [
        [aw(beats=2), w(1), {}],
        [w(0), w(1), aw(beats=1), {}],
        [aw(beats=2), w(0), w(0), {}],
        [aw(beats=1) | w(1), aw(beats=2) | w(0), w(0), w(0)],
    ],
    Violation.EARLY_B: [
        [B],
        [aw() | w(1) | B],
        [aw(), B],
        [w(1), B],
        [aw(beats=2), w(0), w(1), B, B],
    ],
    Violation.RLAST: [[ar(beats=2), r(1)], [ar(), r(0)], [ar(), ar(beats=2), r(1), r(1)]],
    Violation.EARLY_R: [[r(1)], [ar() | r(1)], [ar(), r(1), r(1)]],
}


@pytest.mark.parametrize(
    ("violation", "cycles"),
    [(violation, cycles) for violation, cases in ILLEGAL.items() for cycles in cases],
)
def test_broken_rule_is_named_and_stays(
    monitor: Model, violation: Violation, cycles: list[dict[str, int]]
) -> None:
    for ports in cycles:
        cycle(monitor, **ports)
    assert Violation(monitor.get("violation")) is violation
    assert monitor.get("violation_cycle") == len(cycles) - 1
    reading = any("araddr" in ports or "rvalid" in ports for ports in cycles)
    assert monitor.get("violation_where") == (Where.READ_A if reading else Where.WRITE)
    cycle(monitor)
    cycle(monitor, **r(1))
    assert Violation(monitor.get("violation")) is violation


def test_second_read_port_is_checked(monitor: Model) -> None:
    assert set(ILLEGAL) == set(Violation) - {Violation.NONE}, "every rule has a case"
    cycle(monitor, **ON_B)
    assert Violation(monitor.get("violation")) is Violation.EARLY_R
    assert monitor.get("violation_where") == Where.READ_B


@pytest.mark.parametrize("seed", seeds(1, 3))
def test_legal_traffic_is_not_complained_about(monitor: Model, seed: int) -> None:
    choose = random.Random(seed)
    for _ in range(60):
        beats = choose.randrange(1, 17)
        address = 0x80 * choose.randrange(64) + 8 * choose.randrange(17 - beats)
        wait = choose.randrange(3)
        for number in range(wait + 1):
            cycle(monitor, **aw(address, beats, ready=number == wait), **ar(address, beats))
        for number in range(beats):
            for ready in (0, 1) if choose.random() < 0.3 else (1,):
                last = int(number == beats - 1)
                # Each wait above asked for the same reads again.
                cycle(monitor, **w(last, ready), **(r(last) if ready else {}))
        for _ in range(wait):
            for number in range(beats):
                cycle(monitor, **r(int(number == beats - 1)))
        for ready in (0, 0, 1)[choose.randrange(3) :]:
            cycle(monitor, bvalid=1, bready=ready)
        assert Violation(monitor.get("violation")) is Violation.NONE, f"seed {seed}"


def test_data_before_its_address_is_legal(monitor: Model) -> None:
    for ports in (w(0), w(1), w(1), aw(beats=2), aw(beats=1), B, B, {}):
        cycle(monitor, **ports)
    assert Violation(monitor.get("violation")) is Violation.NONE


def test_reports_give_handshakes_stalls_and_exact_cycles(monitor: Model) -> None:
    def report(name: str) -> list[int]:
        return [monitor.get(f"{name}__{part}") for part in ("count", "stalls", "first", "last")]

    for ports in ({}, aw(beats=3, ready=0), aw(beats=3), w(0), w(0, ready=0), w(0), w(1), B, {}):
        cycle(monitor, **ports)
    assert report("aw") == [1, 1, 2, 2]
    assert report("w") == [3, 1, 3, 6]
    assert report("b") == [1, 0, 7, 7]
    assert report("r") == [0, 0, 0, 0]
    assert monitor.get("cycle") == 9
    monitor.set("clear", 1)
    cycle(monitor)
    monitor.set("clear", 0)
    assert report("w") == [0, 0, 0, 0]
    cycle(monitor, **ar())
    cycle(monitor, **r(1))
    cycle(monitor, **dict.fromkeys(ON_B, 0))
    assert report("r") == [1, 0, 11, 11]


@pytest.mark.parametrize(("offset", "count"), [(register("DOORBELL").offset, 1), (0x18, 0)])
def test_doorbell_is_the_write_of_its_register(monitor: Model, offset: int, count: int) -> None:
    for changes in (
        {"awaddr": offset, "awvalid": 1, "awready": 1},
        {"awaddr": 0, "awvalid": 0},
        {"wvalid": 1},
        {"wready": 1},
        {"wvalid": 0},
    ):
        for name, value in changes.items():
            monitor.set(f"axil__{name}", value)
        monitor.step()
    assert monitor.get("doorbell__count") == count
    assert monitor.get("doorbell__last") == 3 * count
