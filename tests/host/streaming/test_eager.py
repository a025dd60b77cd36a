"""Tensors past the device's memory: both directions of the line busy, the host's memory bounded."""

import gc
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from bitlane import Device, reference
from bitlane.driver import Driver
from bitlane.errors import DeviceFault, LinkError
from bitlane_rtl.abi import Mode
from support.host.arrays import model, random, same
from support.host.interrupts import attempt
from support.host.line import LeanLink, line
from support.host.model_link import Bytes
from support.seeds import examples, stride

KIB = 1 << 10
LINES = [(8 * KIB, 0.0001, 256 * KIB), (64 * KIB, 0.0005, 1024 * KIB)]
"""The device's memory, seconds of a turnaround, and a tensor."""


INTERRUPTED = ("eager.py", "pipeline.py", "driver.py", "allocator.py", "weakref.py")
"""Sources that hold the memory of a call."""


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("size", [64, 3000], ids=["one tile", "tiles"])
def test_ctrl_c_anywhere_gives_the_memory_back(size: int) -> None:
    device, x = model(memory_bytes=1 << 10), random(size, "u1")
    for place in count(step=stride(3)):
        came = attempt(device.bit_not, INTERRUPTED, place, x)
        gc.collect()
        assert device.driver.allocator.pieces == 0, f"place {place}: memory was not given back"
        if not came:
            break
    assert place > 5, "Ctrl-C came too seldom"
    assert same(device.bit_not(x), ~x)


# --- time -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("memory", "turnaround", "size"), LINES)
def test_the_slower_direction_sets_the_time(memory: int, turnaround: float, size: int) -> None:
    device, link = line(memory_bytes=memory, turnaround=turnaround)
    a, b = random(size // 2, "u2", 1), random(size // 2, "u2", 2)
    for result, expected, sent in (
        (device.bit_not, np.invert(a), [a]),
        (device.bit_xor, np.bitwise_xor(a, b), [a, b]),
    ):
        link.reset_meter()
        assert same(result(*sent), expected)  # type: ignore[operator]
        assert link.seconds <= 1.1 * len(sent) * size / link.rate
        assert link.calls == link.exchanges


def test_counts_that_widen_take_the_time_of_what_comes_down() -> None:
    device, link = line(turnaround=0.0001)
    a = random(128 * KIB, "u1")
    assert same(device.bit_count(a, np.uint32), reference.bit_count(a, np.uint32))
    assert link.seconds <= 1.1 * 4 * a.size / link.rate


def test_rows_with_gaps_and_an_operand_that_repeats() -> None:
    device, link = line(turnaround=0.0001)
    a, b = random((1500, 200), "u2", 1)[:, ::-1][:, :150], random(150, "u2", 2)
    assert same(device.bit_or(a, b), np.bitwise_or(a, b))
    # Rows are sent with their gaps; b once.
    assert link.seconds <= 1.1 * 1500 * 400 / link.rate


@pytest.mark.parametrize(("shape", "tiles"), [((3, 200), 1), ((40, 700), 2), ((2, 40 * KIB), 2)])
def test_rows_are_added_up_in_tiles(shape: tuple[int, int], tiles: int) -> None:
    """The memory holds all, several rows, or a part of one."""
    device, link = line(memory_bytes=8 * KIB)
    a, b = random(shape, "u2", 1), random(shape, "u2", 2)
    assert same(device.cardinality(a), np.bitwise_count(a).sum(-1, dtype=np.uint32))
    assert same(device.hamming(a, b), np.bitwise_count(a ^ b).sum(-1, dtype=np.uint32))
    assert link.exchanges >= 2 * tiles


def test_a_tensor_that_fits_is_cut_for_the_sake_of_a_line_alone() -> None:
    a = random(32 * KIB, "u1")
    device, link = line(memory_bytes=1 << 20)
    assert same(device.bit_not(a), np.invert(a))
    assert link.seconds <= 1.2 * a.size / link.rate
    device, link = line(memory_bytes=1 << 20, remote=False)
    assert same(device.bit_not(a), np.invert(a))
    # What goes up, with the command; the state; and the result.
    assert [(kind, size) for kind, _, size in link.traffic[-6:]] == [
        ("write", a.nbytes),
        ("write", 24),
        ("write", 4),
        ("write", 4),
        ("read", 16),
        ("read", a.nbytes),
    ]


def test_small_arrays_take_two_round_trips() -> None:
    device, link = line()
    a, b = random(64, "u1", 1), random(64, "u1", 2)
    assert same(device.bit_xor(a, b), np.bitwise_xor(a, b))
    # What goes up, with the command, and the state; then the result.
    assert (link.exchanges, link.calls) == (1, 2)


# --- results ----------------------------------------------------------------------------------


LINKS = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 2**32 - 1),
        "eager": st.booleans(),
        "remote": st.booleans(),
        "slots": st.sampled_from([2, 4, 16]),
        "memory_bytes": st.sampled_from([192, 512, 1024]),
    },
    optional={"loops": st.just(1), "modes": st.just(frozenset({Mode.DENSE}))},
)


@examples(0.6)
@given(LINKS, st.sampled_from([(700,), (10, 70), (5, 3, 7, 8), (1, 300), (300, 1)]))
def test_an_exchange_in_any_order(options: dict[str, Any], shape: tuple[int, ...]) -> None:
    device, _ = line(**options)
    a, b = random(shape, "u2", 1), random(shape[-1:], "u2", 2)
    assert same(device.bit_xor(a, b), np.bitwise_xor(a, b))
    assert same(device.bit_not(a.T[::-1]), np.invert(a.T[::-1]))
    counts = reference.bit_count(a, np.uint32)
    assert same(device.bit_count(a[..., ::-1], np.uint32), counts[..., ::-1])
    assert device.driver.allocator.pieces == 0


@pytest.mark.parametrize("remote", [True, False])
@pytest.mark.parametrize("shift", [-700, -1, 0, 1, 700])
def test_an_operand_in_the_output_is_never_read_too_late(shift: int, remote: bool) -> None:
    device, link = line(memory_bytes=1024, seed=1, remote=remote, keeps=True)
    base = random(5000, "u2")
    a, out = base[1000:4000], base[1000 + shift : 4000 + shift]
    expected = base.copy()
    expected[1000 + shift : 4000 + shift] = np.invert(base[1000:4000])
    device.bit_not(a, out=out)
    assert same(base, expected)
    # As it lies: no copy was made.
    sent = [x for x in link.arrays if np.may_share_memory(x, base)]
    assert sum(x.size for x in sent) == a.nbytes


@pytest.mark.parametrize("flips", [(1, 1), (-1, 1), (1, -1), (-1, -1)])
def test_an_overlapping_operand_in_two_dimensions(flips: tuple[int, int]) -> None:
    device, _ = line(memory_bytes=1024, seed=2)
    base = random((60, 50), "u4")
    view = base[:: flips[0], :: flips[1]]
    expected = np.bitwise_xor(view[1:, 3:], view[:-1, :-3])
    # One operand is the output, the other lies above or below it.
    out = view[:-1, :-3]
    device.bit_xor(view[1:, 3:], out, out=out)
    assert same(out, expected)


@pytest.mark.parametrize("memory", [1024, 1 << 16])
def test_fields_side_by_side_share_nothing(memory: int) -> None:
    device, _ = line(memory_bytes=memory)
    records = random(4000, "u1").view(np.dtype([("x", "<u2"), ("y", "<u2")]))
    expected = np.invert(records["x"])
    x = records["x"].copy()
    device.bit_not(records["x"], out=records["y"])
    assert same(records["y"].copy(), expected)
    assert same(records["x"].copy(), x)


def test_a_call_that_is_made_again_computes_wherever_its_memory_lies() -> None:
    device, other = model(), model()
    a, b, c = (random(48, "u2", seed) for seed in (1, 2, 3))
    assert same(device.bit_xor(a, b), np.bitwise_xor(a, b))
    held = device.driver.allocate(64)
    for each in (device, other, device):
        assert same(each.bit_xor(b, c), np.bitwise_xor(b, c))
        assert same(each.bit_xor(a, c), np.bitwise_xor(a, c))
    device.driver.free(held)
    assert same(device.bit_xor(a, b), np.bitwise_xor(a, b))


# --- the host's memory ------------------------------------------------------------------------


def memmaps(folder: Path, count: int, size: int) -> list[NDArray[Any]]:
    arrays = [np.memmap(folder / f"{k}", np.uint8, "w+", shape=(size,)) for k in range(count)]
    for number, array in enumerate(arrays):
        array[...] = random(size, "u1", number)
    return list(arrays)


def _compute_in_place(device: Device, a: NDArray[Any], b: NDArray[Any], out: NDArray[Any]) -> None:
    """Compute in place, from files of gaps, and over an operand that lies ahead."""
    assert device.bit_xor(a, b, out=a) is a
    device.bit_xor(b[1:-1:2], a[1:-1:2], out=b[1:-1:2])
    device.bit_not(out[4096:], out=out[:-4096])


@pytest.mark.parametrize("remote", [True, False], ids=["remote", "near"])
def test_the_hosts_memory_does_not_grow(remote: bool, tmp_path: Path) -> None:
    memory, size = 64 * KIB, 4096 * KIB
    device = Device(Driver(LeanLink(memory_bytes=memory, remote=remote)))
    a, b, out = memmaps(tmp_path, 3, size)
    # The first calls of a process load modules.
    small = [random(3 * memory, "u1", seed) for seed in range(2)]
    _compute_in_place(device, *small, small[0].copy())
    peaks = []
    tracemalloc.start()
    try:
        assert device.bit_not(a, out=out) is out
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.reset_peak()
        _compute_in_place(device, a, b, out)
        peaks.append(tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()
    assert max(peaks) < 4 * memory, f"peaks of {peaks} bytes"
    first, second = random(size, "u1", 0), random(size, "u1", 1)
    result = first ^ second
    assert np.array_equal(a, result)
    second[1:-1:2] ^= result[1:-1:2]
    assert np.array_equal(b, second)
    assert np.array_equal(out[:-4096], first[4096:])


def test_a_large_result_is_the_very_memory_that_came_down() -> None:
    device, link = line(memory_bytes=1 << 16, remote=False, keeps=True)
    a, b = random(4096, "u4", 1), random(4096, "u4", 2)
    result = device.bit_xor(a, b)
    sent = [x for x in link.arrays if np.may_share_memory(x, a) or np.may_share_memory(x, b)]
    assert [x.size for x in sent] == [a.nbytes, b.nbytes]
    assert np.may_share_memory(result, link.arrays[-1])
    assert result.flags.writeable
    assert same(result, np.bitwise_xor(a, b))


# --- when the device or the line fails --------------------------------------------------------


def test_a_fault_halfway_is_reported_and_the_next_call_works() -> None:
    device, link = line(memory_bytes=1024, slots=4)
    a = random(4000, "u1")
    link.fail_writes = frozenset({700})
    with pytest.raises(DeviceFault, match="command 0 of the job stopped with WRITE_ERROR"):
        device.bit_not(a)
    link.fail_writes = frozenset()
    assert device.driver.allocator.pieces == 0
    assert same(device.bit_not(a), np.invert(a))


@pytest.mark.parametrize("error", [LinkError("unplugged"), KeyboardInterrupt()])
@pytest.mark.parametrize("when", range(6))
def test_an_exchange_that_fails_leaves_no_command_behind(when: int, error: BaseException) -> None:
    device, link = line(memory_bytes=1024, eager=False)
    a = random(4000, "u1")
    exchange, count = link.exchange, 0

    def failing(writes: Any, reads: Any) -> list[Bytes]:
        nonlocal count
        count += 1
        if count == when + 1:
            # As if the answer to all of it were lost.
            exchange(writes, reads)
            raise error
        return exchange(writes, reads)

    link.exchange = failing  # type: ignore[method-assign]
    with pytest.raises(type(error)):
        device.bit_not(a)
    assert (link.doorbell, link.retired) == (0, 0)
    assert device.driver.allocator.pieces == 0
    assert same(device.bit_not(a), np.invert(a))


def test_threads_wait_for_each_other() -> None:
    device, _ = line(memory_bytes=2048, turnaround=0.0, seed=3)
    arrays = [random(3000, "u2", seed) for seed in range(4)]
    with ThreadPoolExecutor(4) as pool:
        for a, result in zip(arrays, pool.map(device.bit_not, arrays), strict=True):
            assert same(result, np.invert(a))


# --- arrays that stay on the device -----------------------------------------------------------


KEPT = 16 << 10


def test_a_chain_of_ten_operations(record_property: Callable[[str, object], None]) -> None:
    device, link = line(memory_bytes=1 << 18)
    a = random(KEPT, "u1", 1)
    others = [random(KEPT, "u1", seed) for seed in (2, 3)]
    expected = a
    for step in range(10):
        expected = (expected ^ others[0]) if step % 2 else (expected & others[1])
    link.reset_meter()
    result = a
    for step in range(10):
        one = device.bit_xor if step % 2 else device.bit_and
        result = one(result, others[1 - step % 2])
    assert same(result, expected)
    called = (link.up + link.down, link.calls)
    link.reset_meter()
    x, mask, key = (device.asarray(each) for each in (a, others[1], others[0]))
    for step in range(10):
        x = x ^ key if step % 2 else x & mask
    assert same(x.get(), expected)
    stayed = (link.up + link.down, link.calls)
    record_property(
        "report",
        f"ten operations on {KEPT} bytes over a line: {called[0]:,} bytes in {called[1]} calls of"
        f" the link; as arrays on the device {stayed[0]:,} bytes in {stayed[1]}",
    )
    # Three operands go up and one result comes down, with a record for each pass.
    assert stayed[0] < 4 * KEPT + 10 * 128
    assert stayed[0] < called[0] / 7
    assert stayed[1] <= 10


@pytest.mark.parametrize("steps", [1, 3])
def test_an_operator_in_place_sends_a_command_alone(steps: int) -> None:
    device, link = line(memory_bytes=1 << 18)
    x, y = device.asarray(random(KEPT, "u1", 1)), device.asarray(random(KEPT, "u1", 2))
    link.reset_meter()
    for _ in range(steps):
        x ^= y
    assert link.up + link.down < steps * 256
    assert np.array_equal(x ^ x, np.zeros(KEPT, "u1"))
