"""A memory error is reported with its kind and address; no write follows, and later jobs work."""

from collections.abc import Iterator
from dataclasses import dataclass
from time import monotonic

import numpy as np
import pytest
from numpy.typing import NDArray

import bitlane
from bitlane.errors import DeviceError, DeviceFault, DeviceTimeout
from bitlane.lowering.lower import lower
from bitlane.lowering.strided import Streams, View
from bitlane_rtl.abi import BEATS_PER_BLOCK, Op, Port, Status, register
from bitlane_sim.system.ports import Hang, Response
from support.seeds import slow, stride
from support.system.devices import SIMULATED, WISHBONE, heal, noise, opened, simulator_of

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
            patch.setattr("bitlane.driver.queue._CLEAR_SECONDS", LATE)
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
    monkeypatch.setattr("bitlane.driver.queue._CLEAR_SECONDS", CLEAR_SECONDS)


@pytest.mark.parametrize(
    ("port", "response"),
    [
        (Port.READ_A, Response.SLVERR),
        (Port.READ_B, Response.DECERR),
        slow(Port.READ_A, Response.DECERR),
        slow(Port.READ_B, Response.SLVERR),
    ],
)
def test_an_error_at_any_beat_that_is_read(stand: Stand, port: Port, response: Response) -> None:
    start = stand.a if port is Port.READ_A else stand.b
    for seed, address in enumerate(stand.beats(start)):
        replay = f"{stand.url}: {response.name} of the read at {address:#x}, noise of seed {seed}"
        before = stand.fill(seed)
        simulator_of(stand.device).inject_error(address, read=True, response=response)
        with pytest.raises(DeviceFault) as caught:
            stand.run()
        fault = caught.value
        block = BEATS_PER_BLOCK * stand.beat
        burst = max(address - address % block, start - start % stand.beat)
        where = (Status.READ_ERROR, port, burst, 0)
        assert (fault.code, fault.port, fault.address, fault.index) == where, replay
        for part in ("READ_ERROR", port.name, f"{burst:#x}", "FAULT_ADDRESS="):
            assert part in str(fault), replay
        # No result of the bad beat, or of a later one, was written.
        written = stand.written(before, replay)
        assert max(written, default=-1) < max(address - start, 0), replay
        stand.expect_silence(replay)
        stand.expect_to_work(seed + 1)


@pytest.mark.parametrize("response", [Response.SLVERR, Response.DECERR])
def test_an_error_at_any_beat_that_is_written(stand: Stand, response: Response) -> None:
    block = 16 * stand.beat
    for seed, address in enumerate(stand.beats(stand.y)):
        replay = f"{stand.url}: {response.name} of the write at {address:#x}, noise of seed {seed}"
        before = stand.fill(seed)
        simulator_of(stand.device).inject_error(address, write=True, response=response)
        with pytest.raises(DeviceFault) as caught:
            stand.run()
        fault = caught.value
        assert (fault.code, fault.port, fault.index) == (Status.WRITE_ERROR, Port.WRITE, 0), replay
        # AXI responds to a burst as a whole, and bursts do not cross blocks.
        assert fault.address // block == address // block, f"{fault.address:#x}: {replay}"
        assert fault.address <= address, f"{fault.address:#x}: {replay}"
        for part in ("WRITE_ERROR", "WRITE", f"{fault.address:#x}"):
            assert part in str(fault), replay
        offset = address - stand.y
        lost = range(offset, offset + stand.beat)
        assert not set(stand.written(before, replay)) & set(lost), replay
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


@pytest.mark.parametrize("ahead", ["one too far", 0x8000, 0xFFFF])
def test_a_doorbell_too_far_ahead_is_refused(stand: Stand, ahead: str | int) -> None:
    driver = stand.device.driver
    before = stand.fill(1)
    stand.run()  # so that the ring holds a record
    stand.memory[:] = before
    driver.clear()
    driver.write_register(
        "DOORBELL", ahead if isinstance(ahead, int) else driver.geometry.slots + 1
    )
    simulator_of(stand.device).step(200)
    fault = register("FAULT")
    word = driver.read_register("FAULT")
    assert fault["CODE"].extract(word) == Status.BAD_DOORBELL
    assert (fault["PORT"].extract(word), fault["INDEX"].extract(word)) == (Port.NONE, 0)
    assert driver.read_register("RETIRED") == 0
    assert np.array_equal(stand.memory, before)
    driver.clear()
    stand.expect_to_work(2)


HANGS = [
    pytest.param(channels, hang, id=f"{'-'.join(channels)} {hang.name}")
    for channels in (["read"], ["write"], ["read", "write"])
    for hang in (Hang.NO_ANSWER, Hang.NO_ACCEPT)
]


@pytest.mark.parametrize(("channels", "hang"), HANGS)
def test_a_memory_that_hangs_is_a_fault_of_the_circuit(
    stand: Stand, channels: list[str], hang: Hang
) -> None:
    driver = stand.device.driver
    driver.write_register("TIMEOUT", 500)
    before = stand.fill(1)
    simulator_of(stand.device).inject_hang(**dict.fromkeys(channels, hang))
    started = monotonic()
    with pytest.raises(DeviceFault) as caught:
        stand.run()
    assert monotonic() - started < CLEAR_SECONDS + LATE
    assert caught.value.code == Status.TIMEOUT
    ports = [Port.READ_A, Port.READ_B] if "read" in channels else [Port.WRITE]
    # On Wishbone reads wait for writes that are due, and writes for reads.
    assert caught.value.port in ports or stand.url == WISHBONE
    for part in ("TIMEOUT", "STATUS=", "RETIRED=", "FAULT_ADDRESS="):
        assert part in str(caught.value)
    stand.written(before, f"{stand.url}: {channels} {hang.name}")
    stand.expect_to_work(2)
    driver.write_register("TIMEOUT", 1 << 20)


@pytest.mark.parametrize(("channels", "hang"), HANGS)
def test_without_a_bound_in_the_circuit_the_driver_gives_up(
    stand: Stand, channels: list[str], hang: Hang
) -> None:
    driver = stand.device.driver
    driver.write_register("TIMEOUT", 0)
    driver.timeout = 0.2
    before = stand.fill(1)
    simulator_of(stand.device).inject_hang(**dict.fromkeys(channels, hang))
    started = monotonic()
    with pytest.raises(DeviceTimeout, match=r"within 0\.2 s") as caught:
        stand.run()
    assert 0.2 <= monotonic() - started < 0.2 + CLEAR_SECONDS + LATE
    for part in ("STATUS=", "BUSY=1", "DOORBELL=", "RETIRED=", "CLEAR has had no effect"):
        assert part in str(caught.value)
    stand.written(before, f"{stand.url}: {channels} {hang.name}")

    # While the memory hangs, the next job fails as well, in time.
    started = monotonic()
    with pytest.raises(DeviceError):
        stand.run()
    assert monotonic() - started < 0.2 + 2 * CLEAR_SECONDS + LATE
    driver.timeout = 5.0
    stand.expect_to_work(2)
    driver.write_register("TIMEOUT", 1 << 20)
