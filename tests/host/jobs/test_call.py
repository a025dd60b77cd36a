"""A call that is made again takes the record of the last one only where its memory is the same."""

import numpy as np

from support.host.arrays import model, random, same


def test_the_same_call_computes_wherever_its_memory_lies() -> None:
    device, other = model(), model()
    a, b, c = (random(48, "u2", seed) for seed in (1, 2, 3))
    assert same(device.bit_xor(a, b), np.bitwise_xor(a, b))
    held = device.driver.allocate(64)
    for each in (device, other, device):
        assert same(each.bit_xor(b, c), np.bitwise_xor(b, c))
        assert same(each.bit_xor(a, c), np.bitwise_xor(a, c))
    device.driver.free(held)
    assert same(device.bit_xor(a, b), np.bitwise_xor(a, b))
