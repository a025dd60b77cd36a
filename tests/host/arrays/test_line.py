"""Arrays on the device save bytes and exchanges on a board's line."""

from collections.abc import Callable

import numpy as np
import pytest

from support.host.arrays import random, same
from support.host.line import line

SIZE = 16 << 10


def test_a_chain_of_ten_operations(record_property: Callable[[str, object], None]) -> None:
    device, link = line(memory_bytes=1 << 18)
    a = random(SIZE, "u1", 1)
    others = [random(SIZE, "u1", seed) for seed in (2, 3)]
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
        f"ten operations on {SIZE} bytes over a line: {called[0]:,} bytes in {called[1]} calls of"
        f" the link; as arrays on the device {stayed[0]:,} bytes in {stayed[1]}",
    )
    # Three operands go up and one result comes down, with a record for each pass.
    assert stayed[0] < 4 * SIZE + 10 * 128
    assert stayed[0] < called[0] / 7
    assert stayed[1] <= 10


@pytest.mark.parametrize("steps", [1, 3])
def test_an_operator_in_place_sends_a_command_alone(steps: int) -> None:
    device, link = line(memory_bytes=1 << 18)
    x, y = device.asarray(random(SIZE, "u1", 1)), device.asarray(random(SIZE, "u1", 2))
    link.reset_meter()
    for _ in range(steps):
        x ^= y
    assert link.up + link.down < steps * 256
    assert np.array_equal(x ^ x, np.zeros(SIZE, "u1"))
