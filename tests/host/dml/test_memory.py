"""Buffers, command lists and operators hold the device's memory, including operators' copies."""

import numpy as np
import pytest

from bitlane.dml import BufferBinding, BufferTensorDesc, DataType, ExecutionFlags, TensorFlags
from bitlane.driver.queue import DeviceFault
from bitlane_rtl.abi import BIT_OPS, Op
from support.host.dml_bench import NOT, XOR, Bench

SIZE = 4096
PLAIN = BufferTensorDesc(DataType.UINT8, [SIZE])
OWNED = BufferTensorDesc(DataType.UINT8, [SIZE], flags=TensorFlags.OWNED_BY_DML)


def noise(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, SIZE, np.uint8)


class Stand(Bench):
    """A device with room for 16 tensors, on which nothing is allocated."""

    def __init__(self, ops: frozenset[Op] = BIT_OPS) -> None:
        super().__init__(NOT(PLAIN, PLAIN), ops=ops | {Op.NOT})
        self.buffer.close()

    def bound(self, seed: int | None = None) -> BufferBinding:
        """Return a new buffer, filled with the noise of ``seed`` if there is one."""
        buffer = self.device.create_buffer(SIZE)
        if seed is not None:
            buffer.write(noise(seed))
        return BufferBinding(buffer)

    def execute(self) -> None:
        self.model.calls.clear()
        self.model.doorbells.clear()
        self.device.execute(self.commands)

    @property
    def pieces(self) -> int:
        return self.driver.allocator.pieces


# --- Copies of owned inputs -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ops", "calls"),
    [
        (BIT_OPS, ["COPY", "XOR"]),
        (frozenset({Op.XOR, Op.OR, Op.AND}), ["OR", "XOR"]),
        (frozenset({Op.XOR, Op.AND}), ["AND", "XOR"]),
        (frozenset({Op.XOR}), ["read", "write", "XOR"]),  # by way of the host
    ],
    ids=["COPY", "OR", "AND", "no operation that copies"],
)
def test_owned_inputs_are_copied_by_the_circuit(ops: frozenset[Op], calls: list[str]) -> None:
    stand = Stand(ops)
    a, b, out = stand.bound(1), stand.bound(2), stand.bound()
    stand.record_dispatch(stand.operator, a, b)
    operator = stand.compile(XOR(PLAIN, OWNED, PLAIN))
    stand.record_initialization(operator, None, b)
    stand.record_dispatch(operator, a, None, out)
    stand.execute()
    assert stand.model.calls == ["NOT", *calls]
    assert (out.buffer.read() == 255).all()
    assert np.array_equal(b.buffer.read(), ~noise(1))


def test_copying_is_a_part_of_the_job() -> None:
    stand = Stand()
    buffers = [stand.bound(seed) for seed in range(3)]
    other, xor = stand.operator, stand.compile(XOR(PLAIN, OWNED, PLAIN))
    stand.record_dispatch(other, buffers[0], buffers[1])
    stand.record_initialization(xor, None, buffers[1])  # what the dispatch before writes
    stand.record_dispatch(other, buffers[2], buffers[1])
    stand.record_dispatch(xor, buffers[2], None, buffers[2])
    stand.execute()
    assert stand.model.calls == ["NOT", "COPY", "NOT", "XOR"]
    assert stand.model.doorbells == [4]
    assert np.array_equal(buffers[2].buffer.read(), noise(2) ^ ~noise(0))
    assert np.array_equal(buffers[1].buffer.read(), ~noise(2))


def test_an_initialization_that_failed_can_be_repeated() -> None:
    stand = Stand()
    b = stand.bound(1)
    operator = stand.compile(XOR(PLAIN, OWNED, PLAIN))
    stand.record_initialization(operator, None, b)
    stand.model.fail_reads = frozenset({b.buffer.address + 100})
    with pytest.raises(DeviceFault):
        stand.execute()
    assert not operator.initialized
    assert stand.pieces == 1  # the buffer; the copy has been given back
    stand.model.fail_reads = frozenset()
    stand.execute()
    assert operator.initialized
    assert stand.pieces == 2


# --- Lifetimes --------------------------------------------------------------------------------


@pytest.mark.parametrize("flags", [ExecutionFlags.NONE, ExecutionFlags.DESCRIPTORS_VOLATILE])
def test_operators_and_buffers_may_come_and_go_forever(flags: ExecutionFlags) -> None:
    stand = Stand()
    for seed in range(50):
        a, b, out = stand.bound(seed), stand.bound(seed + 1), stand.bound()
        operator = stand.compile(XOR(PLAIN, OWNED, PLAIN), flags)
        stand.record_initialization(operator, None, b)
        stand.record_dispatch(operator, a, None, out)
        stand.execute()
        assert np.array_equal(out.buffer.read(), noise(seed) ^ noise(seed + 1))
        stand.commands.reset()
    assert stand.pieces == 4
    del operator, a, b, out
    assert stand.pieces == 0


@pytest.mark.parametrize("flags", [ExecutionFlags.NONE, ExecutionFlags.DESCRIPTORS_VOLATILE])
def test_a_command_list_holds_what_it_touches(flags: ExecutionFlags) -> None:
    stand = Stand()
    out = stand.bound()
    operator = stand.compile(XOR(PLAIN, OWNED, PLAIN), flags)
    stand.record_initialization(operator, None, stand.bound(1))
    stand.record_dispatch(operator, stand.bound(2), None, out)
    del operator
    assert stand.pieces == 3
    others = [stand.bound(99) for _ in range(8)]
    stand.execute()
    assert np.array_equal(out.buffer.read(), noise(1) ^ noise(2))
    stand.commands.reset()
    del others
    assert stand.pieces == 1


def test_an_initialized_operator_holds_its_copies_alone() -> None:
    stand = Stand()
    operator = stand.compile(XOR(PLAIN, OWNED, PLAIN))
    stand.record_initialization(operator, None, stand.bound(1))
    stand.execute()
    stand.commands.reset()
    assert stand.pieces == 1
    stand.device.close()
    assert stand.pieces == 0
    del operator
    assert stand.pieces == 0
