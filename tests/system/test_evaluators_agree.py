"""Both evaluators of the simulated circuit agree on every byte of memory and on every cycle.

The same random jobs go through the same driver to ``sim:pysim`` and ``sim:compiled``. Whoever
trusts one of them may then trust the other.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bitlane
from bitlane import dml
from bitlane.dml import BufferTensorDesc, DataType
from bitlane.errors import DeviceFault
from bitlane_sim.device import Report
from support.seeds import examples, slow
from support.system.devices import link_of, noise, opened, simulator_of
from support.system.jobs import Job, evaluate, execute, jobs

BUFFER = 8 * 1024

SETTINGS = [
    "",
    slow("width=32&ports=1&memory=256KiB&latency=30"),
    slow("width=128&latency=7&stall=0.5&seed=5"),
]


@dataclass
class Pair:
    """A device on each evaluator, with the same settings."""

    url: str
    pysim: bitlane.Device
    compiled: bitlane.Device

    @property
    def both(self) -> tuple[bitlane.Device, bitlane.Device]:
        return self.pysim, self.compiled

    def cycles(self) -> list[int]:
        return [link_of(device).cycles for device in self.both]

    def expect_agreement(self, replay: object) -> None:
        """The same clock, the same memory, and the same measurements on every channel."""
        shown = f"{self.url}: {replay}"
        first, second = self.cycles()
        assert first == second, f"{first} cycles on pysim, {second} on compiled: {shown}"
        memories = [simulator_of(device).memory[: 4 * BUFFER] for device in self.both]
        different = np.flatnonzero(memories[0] != memories[1])
        assert different.size == 0, f"bytes {different[:8]}: {shown}"
        reports: list[dict[str, Report]] = [simulator_of(device).monitor for device in self.both]
        assert reports[0] == reports[1], shown
        registers = [device.driver.registers() for device in self.both]
        assert registers[0] == registers[1], shown

    def run(self, seed: int, *chain: Job) -> None:
        size = max(job.size for job in chain)
        before = noise(size, seed)
        for device in self.both:
            with dml.Device(device.driver) as dml_device:
                buffer = dml_device.create_buffer(BUFFER)
                buffer.write(before)
                execute(dml_device, buffer, *chain)
                after = buffer.read(size)
            assert np.array_equal(after, evaluate(before, *chain)), device.description
        self.expect_agreement(f"noise of seed {seed}, {chain}")


@pytest.fixture(scope="module", params=SETTINGS)
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    with ExitStack() as stack:
        devices = [
            stack.enter_context(opened(f"sim:{evaluator}?{request.param}"))
            for evaluator in ("pysim", "compiled")
        ]
        yield Pair(request.param, *devices)


@examples(0.1)
@given(chain=st.lists(jobs(most=60, reach=120), min_size=1, max_size=2), seed=st.integers(0, 999))
def test_on_random_jobs(pair: Pair, chain: list[Job], seed: int) -> None:
    pair.run(seed, *chain)


def not_of(length: int) -> Job:
    vector = BufferTensorDesc(DataType.UINT8, [length])
    return Job(dml.ElementWiseBitNotOperatorDesc(vector, vector), (0, 1024), 2048)


def test_on_bursts(pair: Pair) -> None:
    pair.run(1, not_of(1000))


def test_when_the_memory_answers_with_errors(pair: Pair) -> None:
    seen: list[Any] = []
    for device in pair.both:
        simulator_of(device).inject_error(8 * 64, read=True)
        a = np.arange(1000, dtype=np.uint8)
        with pytest.raises(DeviceFault) as caught:
            device.bit_not(a)
        seen.append((caught.value.code, caught.value.port, caught.value.address))
        simulator_of(device).inject_error()
    assert seen[0] == seen[1]
    pair.expect_agreement("after an error")
    pair.run(2, not_of(100))


def test_a_cycle_more_is_seen(pair: Pair) -> None:
    for late, device in enumerate(pair.both):
        simulator_of(device).step(3 + late)
    with pytest.raises(AssertionError, match=r"cycles on pysim, \d+ on compiled"):
        pair.expect_agreement("one step more")
    simulator_of(pair.pysim).step()
    # Now the clocks agree again, and so does all the rest.
    pair.run(3, not_of(10))


def test_a_byte_that_differs_is_seen(pair: Pair) -> None:
    memory = simulator_of(pair.compiled).memory
    memory[100] ^= 1
    with pytest.raises(AssertionError, match="bytes \\[100\\]"):
        pair.expect_agreement("one bit less")
    memory[100] ^= 1
