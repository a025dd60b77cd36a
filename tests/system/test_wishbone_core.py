"""A small core on Wishbone computes, and reports errors of its memory, through the driver.

The rows ``wishbone`` of the other modules do this with all operations, and slower memories.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

import bitlane
from bitlane.driver.driver import Driver
from bitlane.errors import DeviceFault
from bitlane_rtl.abi import Port, Status
from bitlane_rtl.configurations import copy
from bitlane_sim.device.link import SimulatorLink
from support.sim.wishbone_system import wishbone_simulator
from support.system.devices import heal, noise, simulator_of
from support.system.guards import guard

CONFIGURATION = replace(copy(), memory_base=0x4000_0000, memory_bytes=1 << 16)
BEAT = CONFIGURATION.data_bytes


@pytest.fixture(scope="module")
def device() -> Iterator[bitlane.Device]:
    with bitlane.Device(Driver(SimulatorLink(wishbone_simulator(CONFIGURATION)))) as device:
        damaged = guard(device).damaged
        yield device
        assert not damaged, damaged[0]


@pytest.mark.parametrize(("latency", "stalls"), [(0, 0.0), (9, 0.0), (3, 0.5)])
def test_every_byte_is_right(device: bitlane.Device, latency: int, stalls: float) -> None:
    simulator_of(device).set_latency(latency)
    simulator_of(device).set_stalls(stalls, seed=latency)
    for size in (1, BEAT, 63, 64, 65, 1000):
        for shift in range(3):
            block = noise(size + shift, size)
            assert np.array_equal(device.bit_not(block[shift:]), ~block[shift:]), (size, shift)


@pytest.mark.parametrize("write", [False, True])
def test_an_error_is_a_fault_and_the_next_command_works(
    device: bitlane.Device, write: bool
) -> None:
    x = noise(300, 1)
    last = CONFIGURATION.memory_last
    simulator_of(device).inject_error(CONFIGURATION.memory_base, last, read=not write, write=write)
    with pytest.raises(DeviceFault) as caught:
        device.bit_not(x)
    heal(device)
    expected = (Status.WRITE_ERROR, Port.WRITE) if write else (Status.READ_ERROR, Port.READ_A)
    assert (caught.value.code, caught.value.port) == expected
    assert np.array_equal(device.bit_not(x), ~x)
