"""DirectML's operators on the simulated circuit give the golden model's bytes, and touch no others.

The buffer lies between two guards; buffer, guards and what lies beyond are compared as a whole.
"""

import doctest
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bitlane
from bitlane import dml
from bitlane.dml import DataType, FeatureLevel
from bitlane.dml.operators import OPERATOR_DESCS
from support.seeds import examples, stride
from support.system.devices import DEVICES, memory_of, noise, opened
from support.system.jobs import Job, evaluate, execute, jobs

GUARD = 256
BUFFER = 160 * 1024
BEYOND = 64 * 1024


@dataclass
class Stand:
    """A buffer between guards, in the memory of a device."""

    url: str
    device: bitlane.Device
    start: int
    """Address of the guard before the buffer; the other one follows the buffer."""

    def check(self, seed: int, *chain: Job) -> None:
        """Run ``chain`` on a buffer of noise, and compare all memory around it."""
        memory = memory_of(self.device)
        size = GUARD + max(job.size for job in chain) + GUARD
        window = slice(self.start, self.start + size)
        with dml.Device(self.device.driver, max(job.level for job in chain)) as dml_device:
            buffer = dml_device.create_buffer(BUFFER)
            assert buffer.address == self.start + GUARD
            # Of memory that nobody holds, the device forgets what was written to it.
            memory[window] = before = noise(size, seed)
            execute(dml_device, buffer, *chain)
            after = memory[window].copy()
        want = before.copy()
        want[GUARD:-GUARD] = evaluate(before[GUARD:-GUARD], *chain)
        different = np.flatnonzero(after != want)
        replay = f"{self.url}, noise of seed {seed}, {chain}"
        assert different.size == 0, (
            f"{different.size} bytes differ, first {different[:8] - GUARD} of the buffer: {replay}"
        )
        memory[window] = 0
        assert not memory[: self.start + size + BEYOND].any(), f"bytes far away: {replay}"


@pytest.fixture(scope="module", params=DEVICES)
def stand(request: pytest.FixtureRequest) -> Iterator[Stand]:
    with opened(request.param, guarded=False) as device:
        start = device.driver.allocate(GUARD)
        yield Stand(request.param, device, start.address)
        device.driver.free(start)


@examples(6 / stride(2))
@given(job=jobs(), seed=st.integers(0, 2**32 - 1))
def test_any_operator_on_any_layout(stand: Stand, job: Job, seed: int) -> None:
    stand.check(seed, job)


@given(chain=st.lists(jobs(most=300, reach=600), min_size=2, max_size=5), seed=st.integers(0, 999))
def test_each_dispatch_sees_what_earlier_ones_wrote(
    stand: Stand, chain: list[Job], seed: int
) -> None:
    # All in one buffer from its start on: what one job writes is what later ones read.
    stand.check(seed, *chain)


def test_the_example_of_one_call() -> None:
    (test,) = doctest.DocTestFinder().find(dml.Device.run, globs=globals())
    assert test.examples
    assert doctest.DocTestRunner().run(test).failed == 0


@pytest.mark.parametrize("offset", [-1, 0, 12, 13, 31, 32, 40, 45, 64, BEYOND])
def test_a_byte_that_changes_anywhere_is_seen(
    stand: Stand, offset: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = packed(dml.ElementWiseBitNotOperatorDesc, DataType.UINT8, DataType.UINT8, 13)
    stand.check(0, job)

    right = execute

    def spoil(*arguments: Any) -> None:
        right(*arguments)
        memory_of(stand.device)[stand.start + GUARD + offset] ^= 0x10

    monkeypatch.setitem(globals(), "execute", spoil)
    with pytest.raises(AssertionError, match=r"^(1 bytes differ|bytes far away)"):
        stand.check(0, job)
    memory_of(stand.device)[stand.start + GUARD + offset] = 0


@pytest.mark.parametrize("kind", OPERATOR_DESCS.values(), ids=lambda kind: kind.op.name)
def test_every_operator_on_every_type_and_many_lengths(
    stand: Stand, kind: type[dml.OperatorDesc]
) -> None:
    count = kind is dml.ElementWiseBitCountOperatorDesc
    for data_type in kind.wide_types:
        for out_type in [DataType.UINT8, DataType.UINT32] if count else [data_type]:
            for length in [1, 2, 3, 7, 8, 9, 15, 16, 17, 63, 64, 65, 255, 256, 257]:
                job = packed(kind, data_type, out_type, length)
                stand.check(length, job)


def packed(
    kind: type[dml.OperatorDesc], data_type: DataType, out_type: DataType, length: int
) -> Job:
    """An operator on packed vectors that follow one another."""
    source = dml.BufferTensorDesc(data_type, [length])
    output = dml.BufferTensorDesc(out_type, [length])
    tensors = [source] * (2 if kind.op.reads_b else 1) + [output]
    offsets, end = [], 0
    for tensor in tensors:
        offsets.append(end)
        end += -(-tensor.total_tensor_size_in_bytes // 16) * 16
    desc: dml.OperatorDesc = kind(*tensors)
    return Job(desc, tuple(offsets), end, FeatureLevel.LEVEL_4_1)
