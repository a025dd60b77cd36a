"""Arrays through the simulated stream unit give what NumPy gives, with and without pauses."""

from typing import Any

import numpy as np
import pytest

from bitlane_rtl.abi import BIT_OPS, Lane, Op
from bitlane_rtl.stream_unit import PacketReduction, StreamConfiguration
from bitlane_sim.stream import Pauses, StreamOperation, run_stream
from cppsim.errors import SimulationError

pytestmark = pytest.mark.any_face

RANDOM = np.random.default_rng(48)


def rows(dtype: str, *shape: int) -> np.ndarray[Any, Any]:
    return RANDOM.integers(0, np.iinfo(dtype).max, shape, dtype, endpoint=True)


def test_an_array_is_a_packet() -> None:
    a, b = rows("u8", 9), rows("u8", 9)
    run = run_stream(StreamOperation(op=Op.XOR), a, b)
    np.testing.assert_array_equal(run.result, a ^ b)
    assert run.cycles == 9 + 2


@pytest.mark.slow
@pytest.mark.parametrize("op", sorted(BIT_OPS))
def test_every_operation_in_every_lane(op: Op) -> None:
    config = StreamConfiguration()
    for lane in Lane:
        operands = [rows(f"u{lane.bytes}", 20, 13) for _ in range(1 + op.reads_b)]
        outs = {lane, Lane.BITS_8, min(lane, Lane.BITS_32)} if op.counts else {lane}
        for out_lane in outs:
            if op.counts and out_lane not in {lane, Lane.BITS_8, Lane.BITS_32}:
                continue
            operation = StreamOperation(op=op, out_lane=out_lane, saturate=lane > 1)
            run_stream(operation, *operands, configuration=config, pauses=Pauses(0.3, op))


@pytest.mark.slow
def test_hamming_distances_of_random_packets_with_pauses() -> None:
    a, b = rows("u1", 2000, 37), rows("u1", 2000, 37)
    b[::3] = a[::3]
    config = StreamConfiguration(ops=frozenset({Op.COUNT_XOR}))
    distance = StreamOperation(op=Op.COUNT_XOR, reduction=PacketReduction.SUM)
    run = run_stream(distance, a, b, configuration=config, pauses=Pauses(0.3))
    np.testing.assert_array_equal(run.result, np.bitwise_count(a ^ b).sum(axis=1))
    equal = StreamOperation(op=Op.COUNT_XOR, reduction=PacketReduction.ANY, negate=True)
    run = run_stream(equal, a, b, configuration=config, pauses=Pauses(0.3))
    np.testing.assert_array_equal(run.result, (a == b).all(axis=1))


REFUSED = [
    ((StreamOperation(op=Op.XOR), rows("u1", 3)), "b: XOR has 2 operands; got 1"),
    ((StreamOperation(op=Op.NOT), rows("i4", 3)), "a: int32 of shape (1, 3); expected rows of"),
    ((StreamOperation(op=Op.AND), rows("u1", 3), rows("u1", 4)), "b: uint8 of shape (1, 4)"),
]


@pytest.mark.parametrize(("arguments", "message"), REFUSED)
def test_arrays_that_are_no_packets_are_refused(arguments: Any, message: str) -> None:
    with pytest.raises(ValueError) as caught:
        run_stream(*arguments)
    assert message in str(caught.value)


def test_a_flag_of_the_unit_is_an_error() -> None:
    config = StreamConfiguration(ops=frozenset({Op.COUNT, Op.NOT}), reduces=False)
    operation = StreamOperation(op=Op.COUNT, out_lane=Lane.BITS_32)
    with pytest.raises(SimulationError, match="packet 0: flags 0b0001; expected none"):
        run_stream(operation, rows("u1", 5), configuration=config)
