"""A memory error is reported with its kind and address; no write follows, and later jobs work.

A core on Wishbone computes every byte, and reports the errors of its bus in the same way.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from time import monotonic

import numpy as np
import pytest
from numpy.typing import NDArray

import bitlane
from bitlane.driver import Driver
from bitlane.errors import DeviceError, DeviceFault, DeviceTimeout
from bitlane.lowering import Streams, View, lower
from bitlane_rtl.abi import BEATS_PER_BLOCK, Op, Port, Status
from bitlane_rtl.configurations import copy
from bitlane_sim.device import SimulatorLink
from bitlane_sim.system import Hang, Response
from support.seeds import slow, stride
from support.system.devices import (
    SIMULATED,
    WISHBONE,
    guard,
    heal,
    noise,
    opened,
    simulator_of,
    wishbone_simulator,
)

SIZE = 16 * 1024
COUNT = 205
"""Bytes of the short job: on 64 bits, 26 beats or more of each stream, two blocks and parts."""

CLEAR_SECONDS = 0.1
LATE = 60.0
"""Seconds by which a busy computer may exceed a deadline."""


@dataclass
class Stand:
    """A device with three vectors at odd addresses in a memory of noise: ``y = a ^ b``."""

    url: str
    device: bitlane.Device
    a: int
    b: int
    y: int

    @property
    def memory(self) -> NDArray[np.uint8]:
        return simulator_of(self.device).memory[:SIZE]

    @property
    def beat(self) -> int:
        return simulator_of(self.device).configuration.data_bytes

    def beats(self, start: int) -> list[int]:
        """Return the addresses of the beats of a vector; in the quick tier the first, and some."""
        return list(range(start - start % self.beat, start + COUNT, stride(5) * self.beat))

    def fill(self, seed: int) -> NDArray[np.uint8]:
        self.memory[:] = before = noise(SIZE, seed)
        return before

    def expected(self, before: NDArray[np.uint8]) -> NDArray[np.uint8]:
        want = before.copy()
        a, b = before[self.a : self.a + COUNT], before[self.b : self.b + COUNT]
        want[self.y : self.y + COUNT] = a ^ b
        return want

    def run(self) -> None:
        views = [View(address, (1,), 1) for address in (self.a, self.b, self.y)]
        driver = self.device.driver
        has = driver.geometry
        driver.run(lower(Op.XOR, (COUNT,), Streams(*views), has.abilities, has.memory))

    def expect_to_work(self, seed: int) -> None:
        heal(self.device)
        before = self.fill(seed)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("bitlane.driver.queue.CLEAR_SECONDS", LATE)
            self.run()
        assert np.array_equal(self.memory, self.expected(before)), f"{self.url}: the job after"

    def written(self, before: NDArray[np.uint8], replay: str) -> list[int]:
        """Return the offsets in Y that hold results; all other bytes must be unchanged."""
        want = self.expected(before)
        changed = np.flatnonzero(self.memory != before)
        assert np.array_equal(self.memory[changed], want[changed]), f"bytes of no result: {replay}"
        # A result equal to the byte before does not show as a change.
        return [int(address) - self.y for address in changed]

    def expect_silence(self, replay: str) -> None:
        """Expect no further write: the engine has really stopped, not only reported a stop."""
        simulator = simulator_of(self.device)
        before = simulator.monitor["aw"].count, simulator.monitor["w"].count
        simulator.step(300)
        assert (simulator.monitor["aw"].count, simulator.monitor["w"].count) == before, replay


@pytest.fixture(scope="module", params=[*SIMULATED, slow(WISHBONE)])
def stand(request: pytest.FixtureRequest) -> Iterator[Stand]:
    with opened(request.param, guarded=False) as device:
        buffer = device.driver.allocate(SIZE)
        assert buffer.address == 0
        device.driver.timeout = 5.0
        yield Stand(request.param, device, 1024 + 3, 4096 + 6, 8192 + 125)
        device.driver.free(buffer)


@pytest.fixture(autouse=True)
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bitlane.driver.queue.CLEAR_SECONDS", CLEAR_SECONDS)


@pytest.mark.parametrize(
    ("port", "response"),
    [
        (Port.READ_A, Response.SLVERR),
        (Port.READ_B, Response.DECERR),
        (Port.WRITE, Response.SLVERR),
        (Port.WRITE, Response.DECERR),
        slow(Port.READ_A, Response.DECERR),
        slow(Port.READ_B, Response.SLVERR),
    ],
)
def test_an_error_at_any_beat(stand: Stand, port: Port, response: Response) -> None:
    start = {Port.READ_A: stand.a, Port.READ_B: stand.b, Port.WRITE: stand.y}[port]
    block, writes = BEATS_PER_BLOCK * stand.beat, port is Port.WRITE
    status = Status.WRITE_ERROR if writes else Status.READ_ERROR
    for seed, address in enumerate(stand.beats(start)):
        replay = f"{stand.url}: {response.name} at {address:#x}, noise of seed {seed}"
        before = stand.fill(seed)
        simulator_of(stand.device).inject_error(
            address, read=not writes, write=writes, response=response
        )
        with pytest.raises(DeviceFault) as caught:
            stand.run()
        fault = caught.value
        assert (fault.code, fault.port, fault.index) == (status, port, 0), replay
        for part in (status.name, port.name, f"{fault.address:#x}", "FAULT_ADDRESS="):
            assert part in str(fault), replay
        written = set(stand.written(before, replay))
        if writes:
            # AXI responds to a burst as a whole, and bursts do not cross blocks.
            assert fault.address // block == address // block, f"{fault.address:#x}: {replay}"
            assert fault.address <= address, f"{fault.address:#x}: {replay}"
            assert not written & set(range(address - start, address - start + stand.beat)), replay
        else:
            burst = max(address - address % block, start - start % stand.beat)
            assert fault.address == burst, replay
            # No result of the bad beat, or of a later one, was written.
            assert max(written, default=-1) < max(address - start, 0), replay
        stand.expect_silence(replay)
        stand.expect_to_work(seed + 1)


def test_commands_after_the_one_that_failed_do_nothing(stand: Stand) -> None:
    # The tensors have gaps in every dimension, and one dimension more than the circuit has loops,
    # so that each index of the outermost dimension takes a command.
    shape = (3, 4, 4, 4, 4)
    strides = (630, 156, 38, 9, 2)
    a, y = (View(base, strides, 1) for base in (0, 8192))
    driver = stand.device.driver
    for seed, row in enumerate((0, 1, 2)):
        before = stand.fill(seed)
        simulator_of(stand.device).inject_error(row * strides[0], read=True)
        has = driver.geometry
        with pytest.raises(DeviceFault) as caught:
            driver.run(lower(Op.NOT, shape, Streams(a, None, y), has.abilities, has.memory))
        index = caught.value.index
        heal(stand.device)
        changed = np.flatnonzero(stand.memory != before)
        replay = f"{stand.url}: error in row {row}, command {index}, noise of seed {seed}"
        assert index == row, replay
        assert np.array_equal(stand.memory[changed], ~before[changed - 8192]), replay
        done = {int(address - 8192) // strides[0] for address in changed}
        assert done == set(range(row)), replay
        stand.expect_to_work(seed)


HANGS = [
    pytest.param(channels, hang, id=f"{'-'.join(channels)} {hang.name}")
    for channels in (["read"], ["write"], ["read", "write"])
    for hang in (Hang.NO_ANSWER, Hang.NO_ACCEPT)
]


@pytest.mark.parametrize("bound", [500, 0], ids=["TIMEOUT", "no bound"])
@pytest.mark.parametrize(("channels", "hang"), HANGS)
def test_a_memory_that_hangs_is_reported_in_time(
    stand: Stand, channels: list[str], hang: Hang, bound: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a bound in the circuit, the driver gives up, and gives up the next job as well."""
    driver = stand.device.driver
    driver.write_register("TIMEOUT", bound)
    driver.timeout = 5.0 if bound else 0.05
    # No memory that hangs is ever cleared, however long the driver waits.
    monkeypatch.setattr("bitlane.driver.queue.CLEAR_SECONDS", 0.03)
    least = 0.0 if bound else driver.timeout
    before = stand.fill(1)
    simulator_of(stand.device).inject_hang(**dict.fromkeys(channels, hang))
    started = monotonic()
    with pytest.raises(DeviceFault if bound else DeviceTimeout) as caught:
        stand.run()
    assert least <= monotonic() - started < least + CLEAR_SECONDS + LATE
    told = ["STATUS=", "RETIRED="]
    if isinstance(caught.value, DeviceFault):
        assert caught.value.code == Status.TIMEOUT
        ports = [Port.READ_A, Port.READ_B] if "read" in channels else [Port.WRITE]
        # On Wishbone reads wait for writes that are due, and writes for reads.
        assert caught.value.port in ports or stand.url == WISHBONE
        told += ["TIMEOUT", "FAULT_ADDRESS="]
    else:
        told += ["within 0.05 s", "BUSY=1", "DOORBELL=", "CLEAR has had no effect"]
    for part in told:
        assert part in str(caught.value)
    stand.written(before, f"{stand.url}: {channels} {hang.name}")
    if not bound:
        started = monotonic()
        with pytest.raises(DeviceError):
            stand.run()
        assert monotonic() - started < least + 2 * CLEAR_SECONDS + LATE
        driver.timeout = 5.0
    stand.expect_to_work(2)
    driver.write_register("TIMEOUT", 1 << 20)


# --- a core on Wishbone ---------------------------------------------------------------------------

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
