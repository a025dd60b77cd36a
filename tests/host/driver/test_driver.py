"""The driver connects, drives the ring, keeps deadlines, and recovers from faults."""

from time import monotonic, sleep
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bitlane.driver import Command, Driver, encode
from bitlane.errors import DeviceFault, DeviceTimeout, LinkError
from bitlane.lowering import Streams, View, lower
from bitlane_rtl.abi import (
    ABI_VERSION,
    CONTROL_BASE,
    RECORD_BYTES,
    RING_OFFSET,
    Lane,
    Mode,
    Op,
    Port,
    Status,
    register,
)
from support.host.line import LineLink
from support.host.model_link import ModelLink

ROWS = 100


def invert_rows(driver: Driver, rows: int, a: int, y: int) -> None:
    """Invert ``rows`` separate bytes, with a command for each on a circuit of one dense loop."""
    views = Streams(View(a, (2,), 1), None, View(y, (2,), 1))
    driver.run(lower(Op.NOT, (rows,), views, driver.geometry.abilities, driver.geometry.memory))


def expect_inverted(driver: Driver, rows: int, a: int, y: int) -> None:
    """Assert that ``rows`` zeros become ones, each before a byte that stays zero."""
    memory = link_of(driver).memory
    memory[:] = 0
    invert_rows(driver, rows, a, y)
    assert memory[y : y + 2 * rows].tolist() == [255, 0] * rows


def link_of(driver: Driver) -> ModelLink:
    assert isinstance(driver.link, ModelLink)
    return driver.link


def inverting(driver: Driver, count: int, y: int) -> list[Command]:
    """Return the commands that invert ``count`` bytes from address 0 on."""
    views = Streams(View(0, (1,), 1), None, View(y, (1,), 1))
    return list(lower(Op.NOT, (count,), views, driver.geometry.abilities, driver.geometry.memory))


def one_loop(**changes: Any) -> ModelLink:
    return ModelLink(loops=1, modes=frozenset({Mode.DENSE}), **changes)


# --- connecting -------------------------------------------------------------------------------


def test_the_geometry_is_what_the_registers_say() -> None:
    numbers = {"data_bytes": 16, "loops": 3, "slots": 8, "length_bits": 20, "count_bits": 12}
    numbers |= {"memory_base": 0x4000, "memory_bytes": 0x8000, "read_ports": 1}
    sets: dict[str, Any] = {
        "ops": frozenset({Op.NOT, Op.COUNT}),
        "lanes": frozenset({Lane.BITS_32}),
        "modes": frozenset({Mode.DENSE, Mode.REPEAT}),
    }
    given: dict[str, Any] = numbers | sets
    geometry = Driver(ModelLink(**given)).geometry
    assert {name: getattr(geometry, name) for name in given} == given
    assert geometry.memory_last == 0xBFFF
    assert not geometry.counters


def without(name: str, field: str) -> dict[str, int]:
    """Return a register of a device as it would be without the bits of one of its fields."""
    entry = register(name)
    word = Driver(ModelLink()).read_register(name)
    return {name: word - entry[field].insert(entry[field].extract(word))}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"registers": {"IDENTITY": 0x12345678}}, "IDENTITY is 0x12345678; expected 0x4249544c"),
        ({"registers": {"VERSION": 99}}, f"VERSION is 0x63; expected {ABI_VERSION:#x}"),
        ({"registers": without("CAPABILITIES", "MODES")}, "describe no circuit"),
        ({"registers": without("GEOMETRY", "DATA_BYTES_LOG2")}, "describe no circuit"),
        ({"registers": {"MEMORY_LAST": CONTROL_BASE}}, "describe no circuit"),
    ],
)
def test_registers_that_no_circuit_has_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(LinkError, match=message):
        Driver(ModelLink(**changes))


def test_memory_may_reach_the_control_window_of_the_link() -> None:
    driver = Driver(ModelLink(memory_base=CONTROL_BASE - (1 << 20)))
    assert driver.geometry.memory_last == CONTROL_BASE - 1


def test_a_device_left_behind_with_work_and_faults_is_cleared() -> None:
    link = ModelLink(fail_writes=frozenset({0x200}))
    first = Driver(link)
    with pytest.raises(DeviceFault):
        invert_rows(first, 4, 0, 0x200)
    link.fail_writes = frozenset()
    link.pretend(5)
    expect_inverted(Driver(link), 4, 0, 0x200)


# --- the ring ---------------------------------------------------------------------------------


@pytest.mark.parametrize("eager", [True, False], ids=["eager", "one at a time"])
@pytest.mark.parametrize("slots", [2, 4, 32])
@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5, 31, 32, 33, ROWS])
def test_jobs_of_any_number_of_commands(slots: int, rows: int, eager: bool) -> None:
    link = one_loop(slots=slots, eager=eager)
    driver = Driver(link)
    for _ in range(3):
        link.memory[:] = 0x55
        invert_rows(driver, rows, 0, 0x400)
        assert link.memory[0x400 : 0x400 + 2 * rows].tolist() == [0xAA, 0x55] * rows
    assert len(link.log) == 3 * rows


def test_a_full_ring_is_used_in_halves() -> None:
    # The model asserts that a slot is written only while it is free.
    link = one_loop(slots=8, eager=False)
    driver = Driver(link)
    link.traffic.clear()
    invert_rows(driver, 16, 0, 0x400)
    doorbell = CONTROL_BASE + register("DOORBELL").offset
    assert sum(address == doorbell for _, address, _ in link.traffic) == 4
    assert [bool(x.control["INTERRUPT"]) for x in link.log] == [False, False, False, True] * 4


def test_one_small_command_takes_five_calls() -> None:
    link = ModelLink()
    driver = Driver(link)
    link.traffic.clear()
    driver.run(inverting(driver, 64, 64))
    assert link.traffic == [
        ("write", CONTROL_BASE + RING_OFFSET, 24),
        ("write", CONTROL_BASE + register("DOORBELL").offset, 4),
        ("write", CONTROL_BASE + register("INTERRUPT").offset, 4),
        ("read", CONTROL_BASE + register("STATUS").offset, 16),
    ]


@pytest.mark.parametrize(("rows", "trips"), [(1, 1), (16, 1), (17, 2), (64, 4)])
def test_on_a_line_a_ring_of_commands_is_one_round_trip(rows: int, trips: int) -> None:
    link = LineLink(loops=1, modes=frozenset({Mode.DENSE}), seed=1)
    driver = Driver(link)
    link.reset_meter()
    expect_inverted(driver, rows, 0, 0x400)
    assert link.exchanges == link.calls == trips


@pytest.mark.parametrize("eager", [True, False])
def test_what_is_sent_and_what_is_read_go_with_the_first_commands(eager: bool) -> None:
    link = LineLink(loops=1, modes=frozenset({Mode.DENSE}), seed=2, eager=eager)
    driver = Driver(link)
    driver.write(0x800, b"result")
    link.reset_meter()
    transfers = {"before": [(0, b"abcd")], "meanwhile": [(0x200, b"next")], "reads": [(0x800, 6)]}
    (read,) = driver.run(inverting(driver, 4, 0x400), **transfers)  # type: ignore[arg-type]
    assert link.memory[0x400:0x404].tolist() == [255 - x for x in b"abcd"]
    assert bytes(read) == b"result"
    assert bytes(driver.read(0x200, 4)) == b"next"
    assert link.exchanges == 1


def test_records_are_submitted_as_they_are() -> None:
    link = ModelLink()
    driver = Driver(link)
    (command,) = inverting(driver, 5, 64)
    words = encode(command, interrupt=True)
    driver.run([words])
    assert link.memory[64:70].tolist() == [255] * 5 + [0]
    with pytest.raises(DeviceFault, match="BAD_SEAL"):
        driver.run([words ^ np.array([0, 1, 0, 0, 0, 0], "<u4")])


def test_slots_follow_each_other_and_wrap() -> None:
    link = one_loop(slots=4)
    driver = Driver(link)
    link.traffic.clear()
    for _ in range(6):
        invert_rows(driver, 1, 0, 1)
    start = CONTROL_BASE + RING_OFFSET
    slots = [(x - start) // RECORD_BYTES for kind, x, _ in link.traffic if x >= start]
    assert slots == [0, 1, 2, 3, 0, 1]


def test_the_doorbell_counts_past_two_to_the_sixteen() -> None:
    link = one_loop(slots=2, memory_bytes=1 << 8)
    driver = Driver(link)
    # Start as if 65534 commands had been executed, without spending their time.
    link.pretend((1 << 16) - 2)
    driver._queue._submitted = driver._queue._retired = (1 << 16) - 2
    for _ in range(3):
        expect_inverted(driver, 5, 0, 32)
    assert link.doorbell == link.retired == 13


def test_nothing_to_do_touches_nothing() -> None:
    link = ModelLink()
    driver = Driver(link)
    link.traffic.clear()
    invert_rows(driver, 0, 0, 0)
    assert link.traffic == []


# --- faults -----------------------------------------------------------------------------------


def test_a_bus_error_is_reported_and_the_next_job_works() -> None:
    link = one_loop(fail_reads=frozenset({0x21}), slots=4)
    driver = Driver(link)
    invert_rows(driver, 3, 0x100, 0x200)
    with pytest.raises(DeviceFault) as caught:
        invert_rows(driver, ROWS, 1, 0x400)
    fault = caught.value
    assert (fault.code, fault.index) == (Status.READ_ERROR, 16)
    assert (fault.port, fault.address) == (Port.READ_A, 0x20)
    for part in (
        "command 16 of the job stopped with READ_ERROR on port READ_A at 0x20",
        "CODE=READ_ERROR",
        "PORT=READ_A",
        "BUSY=1",
    ):
        assert part in str(fault)
    assert "\n" not in str(fault)

    link.fail_reads = frozenset()
    expect_inverted(driver, ROWS, 1, 0x400)


def test_a_write_error_names_its_port() -> None:
    driver = Driver(ModelLink(fail_writes=frozenset({0x205})))
    with pytest.raises(DeviceFault) as caught:
        invert_rows(driver, 4, 0, 0x201)
    assert (caught.value.code, caught.value.port) == (Status.WRITE_ERROR, Port.WRITE)


def test_a_command_that_the_circuit_refuses() -> None:
    # The circuit is another one than its registers say.
    longest = Driver(ModelLink()).read_register("GEOMETRY")
    driver = Driver(ModelLink(length_bits=12, registers={"GEOMETRY": longest}))
    commands = inverting(driver, 5000, 8192)
    with pytest.raises(DeviceFault, match="BAD_SIZE") as caught:
        driver.run(commands)
    assert (caught.value.port, caught.value.address) == (Port.NONE, 0)


def test_a_doorbell_that_is_refused_is_no_commands_fault() -> None:
    link = ModelLink()
    driver = Driver(link)
    # As if another program had submitted commands.
    link.pretend(5)
    with pytest.raises(DeviceFault) as caught:
        invert_rows(driver, 4, 0, 0x200)
    assert (caught.value.code, caught.value.port) == (Status.BAD_DOORBELL, Port.NONE)
    text = str(caught.value)
    assert text.startswith(
        "device: a DOORBELL was refused with BAD_DOORBELL: it was more than 16 above RETIRED, or"
        " behind the one before; let no other program use the device; "
    )
    assert not link.log
    assert not link.memory[0x200:].any()
    expect_inverted(driver, 4, 0, 0x200)


def test_a_changed_device_is_noticed_after_a_fault() -> None:
    link = ModelLink(fail_reads=frozenset({0}))
    driver = Driver(link)
    link.registers["IDENTITY"] = 0
    with pytest.raises(LinkError, match="IDENTITY"):
        invert_rows(driver, 1, 0, 8)


# --- deadlines --------------------------------------------------------------------------------


def test_a_command_that_never_ends_runs_into_the_deadline() -> None:
    link = one_loop(hang_at=10, slots=4)
    driver = Driver(link, timeout=0.2)
    start = monotonic()
    with pytest.raises(DeviceTimeout, match=r"command 10 of the job .* within 0\.2 s") as caught:
        invert_rows(driver, ROWS, 0, 0x400)
    assert 0.2 <= monotonic() - start < 60
    assert "BUSY=1" in str(caught.value)
    assert "DOORBELL=0xe RETIRED=0xa FAULT=0x0 " in str(caught.value)
    assert isinstance(caught.value, TimeoutError)

    expect_inverted(driver, ROWS, 0, 0x400)


def test_the_deadline_is_for_progress_not_for_the_job() -> None:
    waits = 0

    class Slow(ModelLink):
        def wait(self, timeout: float) -> bool:
            nonlocal waits
            waits += 1
            # Each batch takes most of the deadline; all of them take much longer.
            return super().wait(timeout) if waits % 2 else bool(super().wait(min(timeout, 0.05)))

    link = Slow(loops=1, modes=frozenset({Mode.DENSE}), slots=2, eager=False)
    driver = Driver(link, timeout=0.1)
    invert_rows(driver, 20, 0, 0x400)
    assert len(link.log) == 20


def test_a_device_that_clear_does_not_help_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bitlane.driver.queue.CLEAR_SECONDS", 0.1)
    link = ModelLink()
    driver = Driver(link, timeout=0.05)
    link.hang_at, link.deaf = 0, True
    with pytest.raises(DeviceTimeout, match=r"has not retired.*CLEAR has had no effect"):
        invert_rows(driver, 1, 0, 8)


def test_the_next_job_works_once_clear_helps_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bitlane.driver.queue.CLEAR_SECONDS", 0.1)
    link = ModelLink()
    driver = Driver(link, timeout=0.05)
    invert_rows(driver, 2, 0, 8)
    link.hang_at, link.deaf = link.executed, True
    with pytest.raises(DeviceTimeout, match="has not retired"):
        invert_rows(driver, 2, 0, 8)
    with pytest.raises(DeviceTimeout, match=r"^device: CLEAR has had no effect"):
        invert_rows(driver, 2, 0, 8)
    # The memory answers again, and the CLEAR of before takes effect: the device counts afresh.
    link.deaf = False
    link.write(CONTROL_BASE + register("CLEAR").offset, np.array([1], "<u4"))
    before = len(link.log)
    expect_inverted(driver, 3, 0, 0x200)
    assert len(link.log) == before + 1


def test_a_lost_interrupt_does_not_lose_the_result() -> None:
    class Mute(ModelLink):
        def wait(self, timeout: float) -> bool:
            super().wait(0)
            sleep(timeout)
            return False

    link = Mute()
    driver = Driver(link, timeout=0.05)
    expect_inverted(driver, 2, 0, 8)


def test_an_interrupted_wait_leaves_no_command_behind() -> None:
    class Impatient(ModelLink):
        def wait(self, timeout: float) -> bool:
            if self.impatient:
                self.impatient = False
                raise KeyboardInterrupt
            return super().wait(timeout)

        impatient = False

    link = Impatient(loops=1, modes=frozenset({Mode.DENSE}), eager=False, slots=4)
    driver = Driver(link)
    link.impatient = True
    with pytest.raises(KeyboardInterrupt):
        invert_rows(driver, ROWS, 0, 0x400)
    assert (link.doorbell, link.retired) == (0, 0)
    expect_inverted(driver, ROWS, 0, 0x400)


@pytest.mark.parametrize("step", [2, 7, 40_000, 65_535])
def test_a_device_that_retires_what_nobody_submitted_is_an_error(step: int) -> None:
    class Boastful(ModelLink):
        def read(self, address: int, size: int) -> NDArray[np.uint8]:
            words = super().read(address, size).view("<u4")
            if address == CONTROL_BASE + register("STATUS").offset and self.doorbell:
                self.reads += 1
                words[2] = self.reads * step % 65_536
            return words.view(np.uint8)

        reads = 0

    link = Boastful(eager=False)
    driver = Driver(link)
    with pytest.raises(
        LinkError, match=r"RETIRED is [0-9]+; expected 0 to 1, because no other com"
    ):
        invert_rows(driver, 1, 0, 8)
    assert link.reads < 10
    assert (link.doorbell, link.retired) == (0, 0)


# --- registers --------------------------------------------------------------------------------


def test_registers_by_name() -> None:
    driver = Driver(ModelLink())
    driver.write_register("TIMEOUT", 1234)
    assert driver.read_register("TIMEOUT") == 1234
    assert driver.registers()["TIMEOUT"] == 1234
    assert "CLEAR" not in driver.registers()
    assert set(driver.counters()) >= {"BUSY_CYCLES", "A_BEATS", "Y_STALLS"}
    driver.clear_counters()
    for call in (
        lambda: driver.read_register("CLEAR"),
        lambda: driver.write_register("STATUS", 0),
        lambda: driver.read_register("NONSENSE"),
    ):
        with pytest.raises(KeyError):
            call()
    for value in (0, (1 << 32) - 1):
        driver.write_register("TIMEOUT", value)
        assert driver.read_register("TIMEOUT") == value
    for value in (-1, 1 << 32):
        with pytest.raises(ValueError, match="32 bits"):
            driver.write_register("TIMEOUT", value)
