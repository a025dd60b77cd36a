"""Random operators, layouts and aliases through the real driver, against the golden model.

The device is a model of the circuit's contract, so that lowering and records are exercised.
"""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bitlane import dml
from support.host.model_driver import ModelDriver
from support.system.jobs import Job, evaluate, execute, jobs

MOST, REACH = 200, 1000
CHAIN = 4


@given(
    chain=st.lists(jobs(MOST, REACH), min_size=1, max_size=CHAIN), seed=st.integers(0, 2**32 - 1)
)
def test_agrees_with_the_golden_model_on_every_byte(chain: list[Job], seed: int) -> None:
    with dml.Device(ModelDriver(), max(job.level for job in chain)) as device:
        buffer = device.create_buffer(max(job.size for job in chain))
        before = np.random.default_rng(seed).integers(0, 256, buffer.size_in_bytes, np.uint8)
        buffer.write(before)
        execute(device, buffer, *chain)
        different = np.flatnonzero(buffer.read() != evaluate(before, *chain))
    assert different.size == 0, f"noise of seed {seed}, {chain}: bytes {different[:8]}"
