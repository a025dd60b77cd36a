"""Random graphs on the real driver equal the golden model's results, node by node.

They are fused or not, in any layout, on circuits with and without the count of a logic operation.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bitlane import dml
from bitlane_rtl.abi import Mode, Op
from support.host.graphs import Sketch, evaluate, execute, sketches
from support.host.model_driver import ModelDriver

_EIGHT = frozenset({Op.NOT, Op.AND, Op.OR, Op.XOR, Op.SHIFT_LEFT, Op.SHIFT_RIGHT, Op.COUNT})


def agrees(driver: ModelDriver, sketch: Sketch, seed: int) -> None:
    """Expect every byte of an element in the outputs of ``sketch`` to be the golden model's."""
    random = np.random.default_rng(seed)
    inputs = [random.integers(0, 256, size, np.uint8) for size in sketch.sizes]
    with dml.Device(driver) as device:
        results = execute(device, sketch, inputs)
    for got, (wanted, defined) in zip(results, evaluate(sketch, inputs), strict=True):
        different = np.flatnonzero((got[: wanted.size] != wanted) & defined)
        assert different.size == 0, f"noise of seed {seed}, {sketch}: bytes {different[:8]}"


@given(sketch=sketches(sums=True), seed=st.integers(0, 2**32 - 1))
def test_agree_with_the_golden_model(sketch: Sketch, seed: int) -> None:
    agrees(ModelDriver(), sketch, seed)


@pytest.mark.parametrize("data_bytes", [4, 16])
@given(sketch=sketches(sums=False), seed=st.integers(0, 2**32 - 1))
def test_agree_on_circuits_that_do_one_thing_at_a_time(
    data_bytes: int, sketch: Sketch, seed: int
) -> None:
    modes = frozenset(Mode) - {Mode.SUM}
    agrees(ModelDriver(ops=_EIGHT, modes=modes, data_bytes=data_bytes), sketch, seed)
