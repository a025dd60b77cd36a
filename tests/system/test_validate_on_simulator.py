"""`bitlane validate` on simulated circuits: complete, reduced and faulty ones."""

from typing import Any

import numpy as np
import pytest

import bitlane
from bitlane.driver import Driver
from bitlane.links import open_link
from bitlane.validate import Session, check_bandwidth, check_link, validate
from bitlane_rtl.abi import BIT_OPS
from bitlane_sim.system import Hang
from support.seeds import slow
from support.system.devices import NARROW, NUMPY, SIMULATED, simulator_of

LEAN = [
    "sim:compiled?memory=8KiB&width=32&ports=1&loops=1&slots=2&ops=not&modes=dense",
    slow("sim:compiled?memory=8KiB&width=32&loops=2&ops=count&lanes=64"),
]

CHECKS = 9 + len(BIT_OPS)
"""Number of checks for all operations and no search array: one is for each operation."""


def validated(url: str, prepare: Any = None, **options: Any) -> tuple[bool, list[str]]:
    lines: list[str] = []
    with open_link(url) as link, Driver(link, timeout=5.0) as driver:
        if prepare is not None:
            prepare(driver)
        session = Session(driver, **{"seed": 1, "memory_bytes": 1 << 20} | options)
        passed = validate(session, lines.append)
    return passed, lines


def failures(lines: list[str]) -> dict[str, str]:
    return {line[:16].strip(): line[22:] for line in lines if line[16:20] == "FAIL"}


@pytest.mark.parametrize("url", [*SIMULATED, slow(NUMPY)])
def test_the_circuit_passes(url: str) -> None:
    passed, lines = validated(url)
    assert passed, lines
    assert lines[-1].startswith(f"All {CHECKS} checks passed")


@pytest.mark.parametrize("url", LEAN)
def test_lean_circuits_pass(url: str) -> None:
    passed, lines = validated(url, quick=True)
    assert passed, lines


def test_counts_of_64_in_a_byte() -> None:
    # 32-bit beats count the halves of an element separately; random data never has all ones.
    with bitlane.open(NARROW) as device:
        a = np.array([2**64 - 1, 0, 2**64 - 1, 1], np.uint64)
        for dtype in (np.uint8, np.uint32):
            assert device.bit_count(a, dtype).tolist() == [64, 0, 64, 1]


@pytest.mark.parametrize("url", [*SIMULATED, *LEAN, slow("sim:pysim")])
def test_speeds_of_a_simulated_circuit_are_those_of_its_clock(url: str) -> None:
    """A rate of this computer's copies is not a device's, so it is not shown."""
    with open_link(url) as link, Driver(link) as driver:
        session = Session(driver, quick=True)
        register, moved = check_link(session), check_bandwidth(session)
        most = driver.geometry.data_bytes * (driver.geometry.read_ports + 1)
        if "stall" not in url:  # the stalls of a second measurement are others
            assert check_bandwidth(session) == moved, "not a matter of cycles"
    for text in (register, moved):
        assert "simulated cycles" in text
        assert " ms" not in text
        assert "bytes/s" not in text
    rate = float(moved.split(" bytes a cycle")[0].split()[-1])
    assert 0 < rate <= most


def test_a_bus_error_fails_what_meets_it_and_nothing_else() -> None:
    def prepare(driver: Driver) -> None:
        simulator_of(driver).inject_error(0, 1 << 17, write=True)

    passed, lines = validated(NARROW, prepare, quick=True)
    found = failures(lines)
    assert not passed
    assert "memory" not in found
    assert "bandwidth" not in found
    assert "WRITE_ERROR on port WRITE" in found["known answers"]
    assert lines[-1].startswith(f"FAILED: {len(found)} of {CHECKS} checks in ")


def test_a_memory_that_hangs_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bitlane.driver.queue.CLEAR_SECONDS", 0.2)

    def prepare(driver: Driver) -> None:
        driver.timeout = 0.3
        driver.write_register("TIMEOUT", 0)
        simulator_of(driver).inject_hang(read=Hang.NO_ANSWER)

    passed, lines = validated(NARROW, prepare, quick=True)
    assert not passed
    assert list(failures(lines)) == ["known answers"]
    assert lines[-1].startswith("Stopped: the device does not answer any more; 21 checks not run")
