"""The simulated memory: exact times, right bytes under stalls and errors, and pages of the host."""

import mmap
import random
import re
from pathlib import Path

import numpy as np
import pytest

from bitlane_sim.pages import Pages
from bitlane_sim.system import AddressRange, Hang, Response
from cppsim import Model, ReferenceModel
from cppsim.circuits import AnyModel
from support.seeds import seeds
from support.sim.manager import Manager, manage
from support.system.devices import resident_bytes

PLACE = AddressRange(address_width=16, data_width=64, base=0x2000, size=0x1000)
ALL = 0xFF
CHANNELS = ("ar", "r", "aw", "w", "b")


def words(ram: np.ndarray) -> list[int]:
    return [int(word) for word in ram.view("<u8")]


def test_without_waits_the_first_beat_comes_a_cycle_after_its_address() -> None:
    manager, ram = manage(PLACE)
    manager.read(0x2000, 16)
    manager.read(0x2FF8, 1)
    manager.read(0x2100, 4)
    manager.run(30)
    assert manager.cycles_of("axi__ar") == [0, 1, 2]
    assert manager.cycles_of("axi__r") == list(range(1, 22))
    expected = words(ram)[:16] + words(ram)[-1:] + words(ram)[32:36]
    assert manager.values_of("axi__r") == expected
    assert set(manager.values_of("axi__r", 1)) == {Response.OKAY}
    assert np.flatnonzero(manager.values_of("axi__r", 2)).tolist() == [15, 16, 20]


def test_without_waits_the_answer_comes_a_cycle_after_the_last_beat() -> None:
    manager, ram = manage(PLACE)
    data = [random.Random(1).getrandbits(64) for _ in range(21)]
    manager.write(0x2080, [(word, ALL) for word in data[:16]])
    manager.write(0x2FF8, [(data[16], ALL)])
    manager.write(0x2100, [(word, ALL) for word in data[17:]])
    manager.run(30)
    assert manager.cycles_of("axi__aw") == [0, 1, 2]
    assert manager.cycles_of("axi__w") == list(range(21))
    assert manager.cycles_of("axi__b") == [16, 17, 21]
    assert manager.values_of("axi__b") == [Response.OKAY] * 3
    expected = words(manage(PLACE)[1])
    expected[16:32], expected[511], expected[32:36] = data[:16], data[16], data[17:]
    assert words(ram) == expected


def test_both_ports_read_and_one_writes_at_full_speed_at_once() -> None:
    manager, ram = manage(PLACE, two=True)
    before = words(ram)
    for block in range(4):
        manager.read(0x2000 + 128 * block, 16)
        manager.read(0x2800 + 128 * block, 16, "axi_b")
        manager.write(0x2C00 + 128 * block, [(block << 8 | number, ALL) for number in range(16)])
    manager.run(70)
    assert manager.cycles_of("axi__r") == manager.cycles_of("axi_b__r") == list(range(1, 65))
    assert manager.cycles_of("axi__w") == list(range(64))
    assert manager.values_of("axi__r") == before[:64]
    assert manager.values_of("axi_b__r") == before[256:320]


@pytest.mark.parametrize("latency", [1, 2, 30, 255])
def test_latency_delays_first_beat_and_answer_and_keeps_many_bursts_in_flight(latency: int) -> None:
    manager, _ = manage(PLACE)
    manager.control(latency=latency)
    for block in range(20):
        manager.read(0x2000 + 128 * block, 16)
        manager.write(0x2000 + 128 * block, [(number, ALL) for number in range(16)])
    manager.run(latency + 330)
    assert manager.cycles_of("axi__r") == list(range(latency + 1, latency + 321))
    assert manager.cycles_of("axi__b") == [latency + 16 * (block + 1) for block in range(20)]


def test_data_may_come_before_its_address() -> None:
    manager, ram = manage(PLACE)
    manager.control(stall_aw=255)
    manager.write(0x2000, [(number, ALL) for number in range(16)])
    manager.run(400)
    (address,) = manager.cycles_of("axi__aw")
    assert address > 16, "the seed gives no case of it"
    assert manager.cycles_of("axi__w") == list(range(16))
    assert manager.cycles_of("axi__b") == [address + 16]
    assert words(ram)[:16] == list(range(16))


def test_a_read_after_the_answer_sees_what_was_written() -> None:
    manager, _ = manage(PLACE)
    manager.write(0x2000, [(number, ALL) for number in range(16)])
    while not manager.cycles_of("axi__b"):
        if manager.evaluator.get("axi__bvalid"):
            manager.read(0x2078, 1)
        manager.cycle()
    manager.run(4)
    assert manager.cycles_of("axi__ar") == manager.cycles_of("axi__b")
    assert manager.values_of("axi__r") == [15]


def random_traffic(manager: Manager, ram: np.ndarray, seed: int, bursts: int) -> np.ndarray:
    """Queue reads of the lower and random writes of the upper half; returns the bytes to expect."""
    choose = random.Random(seed)
    expected = ram.copy()
    for _ in range(bursts):
        for port in ("axi", "axi_b"):
            beats = choose.randrange(1, 17)
            manager.read(0x2000 + 8 * choose.randrange(256 - beats), beats, port)
        beats = choose.choice((1, 2, 16))
        start = 0x800 + 8 * choose.randrange(256 - beats)
        burst = [(choose.getrandbits(64), choose.getrandbits(8)) for _ in range(beats)]
        manager.write(0x2000 + start, burst)
        for number, (word, strobe) in enumerate(burst):
            for byte in range(8):
                if strobe >> byte & 1:
                    expected[start + 8 * number + byte] = word >> 8 * byte & 0xFF
    return expected


def check_reads(manager: Manager, ram: np.ndarray) -> None:
    for port in ("axi", "axi_b"):
        beats: list[tuple[int, int]] = []
        for _, address, length in manager.log[f"{port}__ar"]:
            first = (address - PLACE.base) // 8
            data = words(ram)[first : first + length + 1]
            beats += [(word, int(number == length)) for number, word in enumerate(data)]
        received = (manager.values_of(f"{port}__r", part) for part in (0, 2))
        assert list(zip(*received, strict=True)) == beats


@pytest.mark.parametrize("seed", seeds(1, 6))
def test_every_byte_is_right_under_stalls_on_every_channel(seed: int) -> None:
    choose = random.Random(seed)
    manager, ram = manage(PLACE, two=True, seed=seed, patience=0.6, eagerness=0.6)
    for channel in CHANNELS:
        manager.control(**{f"stall_{channel}": choose.choice((0, 128, 200))})
    manager.control(latency=choose.choice((0, 7)))
    before = ram.copy()
    expected = random_traffic(manager, ram, seed, 25)
    manager.run(2500)
    assert not manager.writes
    assert not manager.beats
    assert not any(manager.reads.values())
    assert len(manager.cycles_of("axi__b")) == 25
    assert (ram == expected).all(), f"seed {seed}"
    check_reads(manager, before)


@pytest.mark.parametrize("channel", CHANNELS)
def test_stalls_slow_their_own_channel_down_by_their_chance(channel: str) -> None:
    manager, _ = manage(PLACE, two=True)
    manager.control(**{f"stall_{channel}": 128})
    for block in range(400):
        address = 0x2000 + 8 * block
        manager.read(address, 1)
        manager.read(address, 1, "axi_b")
        manager.write(address, [(block, ALL)])
    manager.run(401)
    # Half of them, give or take five standard deviations.
    slow = {"ar": ("ar", "r"), "r": ("r",), "aw": ("aw", "b"), "w": ("w", "b"), "b": ("b",)}
    names = [f"axi__{name}" for name in CHANNELS] + ["axi_b__ar", "axi_b__r"]
    for name in names:
        count = len(manager.cycles_of(name))
        if name.split("__")[1] in slow[channel]:
            assert 150 < count < 250, name
        else:
            assert count == 400, name


def test_seed_repeats_the_stalls_and_another_seed_does_not() -> None:
    manager, _ = manage(PLACE)
    sim = manager.evaluator
    manager.control(stall_ar=128)

    def pattern(seed: int) -> list[int]:
        manager.control(seed=seed, seed_load=1)
        sim.step()
        manager.control(seed_load=0)
        ready = []
        for _ in range(400):
            ready.append(sim.get("axi__arready"))
            sim.step()
        return ready

    first = pattern(5)
    assert pattern(5) == first
    assert pattern(6) != first
    assert 160 < sum(first) < 240, "about half of all cycles"


def test_channels_stall_independently() -> None:
    manager, _ = manage(PLACE, two=True)
    sim = manager.evaluator
    for channel in ("ar", "aw", "w"):
        manager.control(**{f"stall_{channel}": 128})
    names = ("axi__arready", "axi_b__arready", "axi__awready", "axi__wready")
    history: list[list[int]] = [[] for _ in names]
    for _ in range(300):
        for values, name in zip(history, names, strict=True):
            values.append(sim.get(name))
        sim.step()
    for number, one in enumerate(history):
        for other in history[number + 1 :]:
            assert 100 < sum(a == b for a, b in zip(one, other, strict=True)) < 200


@pytest.mark.parametrize("response", [Response.SLVERR, Response.DECERR])
def test_errors_hit_the_beats_of_their_range_alone(response: Response) -> None:
    manager, ram = manage(PLACE)
    before = words(ram)
    manager.control(error_first=0x2043, error_last=0x2048, error_response=response, error_read=1)
    manager.read(0x2000, 16)
    manager.write(0x2000, [(1, ALL)] * 16)
    manager.run(20)
    responses = [Response.OKAY] * 16
    responses[8] = responses[9] = response
    assert manager.values_of("axi__r", 1) == responses
    assert manager.values_of("axi__b") == [Response.OKAY]

    manager.control(error_read=0, error_write=1)
    manager.write(0x2000, [(2, ALL)] * 16)
    manager.write(0x2050, [(3, ALL)] * 6)
    manager.read(0x2000, 16)
    manager.run(40)
    assert manager.values_of("axi__b") == [Response.OKAY, response, Response.OKAY]
    assert manager.values_of("axi__r", 1)[16:] == [Response.OKAY] * 16
    assert words(ram) == [2] * 8 + [1, 1] + [3] * 6 + before[16:]


@pytest.mark.parametrize(
    ("address", "good"), [(0x1F80, 0), (0x3000, 0), (0x0000, 0), (0xFF80, 0), (0x2FF0, 2)]
)
def test_beats_outside_of_the_memory_are_answered_decerr(address: int, good: int) -> None:
    """The last burst leaves the memory, and fails from there on."""
    manager, ram = manage(PLACE)
    before = words(ram)
    manager.read(address, 16)
    manager.write(address, [(7, ALL)] * 16)
    manager.run(25)
    expected = [Response.OKAY] * good + [Response.DECERR] * (16 - good)
    assert manager.values_of("axi__r", 1) == expected
    assert manager.values_of("axi__b") == [Response.DECERR]
    assert words(ram) == before[: len(before) - good] + [7] * good


def test_hang_without_answers_accepts_all_and_answers_when_it_is_over() -> None:
    manager, _ = manage(PLACE)
    manager.control(hang_read=Hang.NO_ANSWER, hang_write=Hang.NO_ANSWER)
    manager.read(0x2000, 4)
    manager.write(0x2000, [(9, ALL)] * 4)
    manager.run(1000)
    assert manager.cycles_of("axi__ar") == [0]
    assert manager.cycles_of("axi__w") == [0, 1, 2, 3]
    assert not manager.cycles_of("axi__r")
    assert not manager.cycles_of("axi__b")
    manager.control(hang_read=Hang.NONE, hang_write=Hang.NONE)
    manager.run(10)
    assert manager.cycles_of("axi__r") == [1001, 1002, 1003, 1004]
    assert manager.cycles_of("axi__b") == [1000]


def test_hang_without_acceptance_takes_nothing_and_answers_what_it_took() -> None:
    manager, _ = manage(PLACE)
    manager.control(latency=20)
    manager.read(0x2000, 4)
    manager.write(0x2000, [(9, ALL)] * 4)
    manager.run(4)
    manager.control(hang_read=Hang.NO_ACCEPT, hang_write=Hang.NO_ACCEPT)
    manager.read(0x2000, 4)
    manager.write(0x2000, [(9, ALL)] * 4)
    manager.run(500)
    assert manager.cycles_of("axi__ar") == manager.cycles_of("axi__aw") == [0]
    assert len(manager.cycles_of("axi__w")) == len(manager.cycles_of("axi__r")) == 4
    assert len(manager.cycles_of("axi__b")) == 1
    manager.control(hang_read=Hang.NONE, hang_write=Hang.NONE)
    manager.run(40)
    assert len(manager.cycles_of("axi__r")) == 8
    assert len(manager.cycles_of("axi__b")) == 2


def test_longest_burst_of_axi4_works() -> None:
    manager, ram = manage(PLACE)
    manager.read(0x2000, 256)
    manager.run(260)
    assert manager.values_of("axi__r") == words(ram)[:256]
    assert manager.values_of("axi__r", 2) == [0] * 255 + [1]


def test_evaluators_agree_on_the_memory() -> None:
    logs = []
    evaluator: type[AnyModel]
    for evaluator in (ReferenceModel, Model):
        manager, ram = manage(PLACE, two=True, evaluator=evaluator, patience=0.7, eagerness=0.7)
        for channel in CHANNELS:
            manager.control(**{f"stall_{channel}": 100})
        manager.control(latency=3)
        expected = random_traffic(manager, ram, 0, 3)
        manager.run(150)
        assert (ram == expected).all()
        logs.append(manager.log)
    assert logs[0] == logs[1]


# --- pages of the host ----------------------------------------------------------------------------


PAGE = mmap.PAGESIZE


def full(pages: int) -> Pages:
    """Pages that are all written."""
    made = Pages(pages * PAGE)
    made.bytes[:] = 1
    return made


def test_a_large_memory_takes_nothing_until_it_is_written() -> None:
    memory = Pages(1 << 30).bytes
    assert memory.size == 1 << 30
    assert resident_bytes(memory) == 0
    memory[1 << 20] = 5
    assert resident_bytes(memory) < 1 << 24
    assert memory[(1 << 20) - 1 : (1 << 20) + 2].tolist() == [0, 5, 0]


@pytest.mark.skipif(
    not Path("/sys/kernel/mm/transparent_hugepage").is_dir(), reason="no such pages"
)
def test_large_memory_may_have_huge_pages() -> None:
    memory = Pages(1 << 30).bytes
    flags = re.findall(
        r"^(\w+)-(\w+) .*?^VmFlags:(.*?)$", Path("/proc/self/smaps").read_text(), re.M | re.S
    )
    address = memory.ctypes.data
    (own,) = [x for first, end, x in flags if int(first, 16) <= address < int(end, 16)]
    assert "hg" in own.split()


def test_what_is_forgotten_takes_no_memory_and_can_be_written_anew() -> None:
    pages = full(64)
    pages.forget(0, 64 * PAGE)
    assert resident_bytes(pages.bytes) == 0
    pages.bytes[7] = 7
    assert pages.bytes[:8].tolist() == [0] * 7 + [7]


@pytest.mark.parametrize(
    ("start", "size", "forgotten"),
    [
        (0, PAGE, [0]),
        (1, 2 * PAGE, [1]),
        (PAGE - 1, 2 * PAGE, [1]),
        (PAGE - 1, 2 * PAGE + 1, [1, 2]),
        (0, PAGE - 1, []),
        (1, 2 * PAGE - 2, []),
        (PAGE, 0, []),
        (3 * PAGE, PAGE, [3]),
    ],
)
def test_only_pages_without_other_bytes_are_forgotten(
    start: int, size: int, forgotten: list[int]
) -> None:
    pages = full(4)
    pages.forget(start, size)
    # Before they are looked at, which brings pages of zeros back.
    assert resident_bytes(pages.bytes) == (4 - len(forgotten)) * PAGE
    expected = np.ones((4, PAGE), np.uint8)
    expected[forgotten] = 0
    assert np.array_equal(pages.bytes.reshape(4, PAGE), expected)
