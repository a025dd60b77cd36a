"""Who holds the device's memory: buffers, what is recorded with them, and operators' own copies."""

import numpy as np
import pytest

from bitlane import dml
from bitlane.dml import BufferBinding, BufferTensorDesc, DataType, ExecutionFlags, TensorFlags
from bitlane.driver.queue import DeviceFault
from bitlane_rtl.abi import Op
from support.host.dml_bench import NOT, XOR, Bench

SIZE = 4096
PLAIN = BufferTensorDesc(DataType.UINT8, [SIZE])
OWNED = BufferTensorDesc(DataType.UINT8, [SIZE], flags=TensorFlags.OWNED_BY_DML)


def noise(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, SIZE, np.uint8)


class Stand:
    """A device with room for 16 tensors, and lists that it executes."""

    def __init__(self, ops: frozenset[Op] = frozenset(Op)) -> None:
        self.bench = Bench(NOT(PLAIN, PLAIN), ops=ops | {Op.NOT})
        self.bench.buffer.close()
        self.bench.model.calls.clear()
        self.device, self.driver = self.bench.device, self.bench.driver

    def buffer(self, seed: int | None = None) -> dml.Buffer:
        buffer = self.device.create_buffer(SIZE)
        if seed is not None:
            buffer.write(noise(seed))
        return buffer

    def initialize(self, operator: dml.CompiledOperator, *bindings: dml.Buffer | None) -> None:
        """Record the initialisation of ``operator``."""
        initializer = self.device.create_operator_initializer([operator])
        table = self.device.create_binding_table(initializer)
        table.bind_inputs([[x and BufferBinding(x) for x in bindings]])
        self.bench.recorder.record_dispatch(self.bench.commands, initializer, table)

    def dispatch(
        self, operator: dml.CompiledOperator, *inputs: dml.Buffer | None, output: dml.Buffer
    ) -> None:
        """Record a dispatch of ``operator``."""
        table = self.device.create_binding_table(operator)
        table.bind_inputs([x and BufferBinding(x) for x in inputs])
        table.bind_outputs([BufferBinding(output)])
        self.bench.recorder.record_dispatch(self.bench.commands, operator, table)

    def compile(
        self, desc: dml.OperatorDesc, flags: ExecutionFlags = ExecutionFlags.NONE
    ) -> dml.CompiledOperator:
        return self.device.compile_operator(self.device.create_operator(desc), flags)

    def execute(self) -> None:
        self.device.execute(self.bench.commands)

    @property
    def pieces(self) -> int:
        return self.driver.allocator.pieces


# --- Copies of owned inputs -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ops", "calls"),
    [
        (frozenset(Op), ["COPY", "XOR"]),
        (frozenset({Op.XOR, Op.OR, Op.AND}), ["OR", "XOR"]),
        (frozenset({Op.XOR, Op.AND}), ["AND", "XOR"]),
        (frozenset({Op.XOR}), ["read", "write", "XOR"]),  # by way of the host
    ],
    ids=["COPY", "OR", "AND", "no operation that copies"],
)
def test_owned_inputs_are_copied_with_what_the_circuit_has(
    ops: frozenset[Op], calls: list[str]
) -> None:
    stand = Stand(ops)
    a, b, out = stand.buffer(1), stand.buffer(2), stand.buffer()
    stand.dispatch(stand.bench.operator, a, output=b)
    operator = stand.compile(XOR(PLAIN, OWNED, PLAIN))
    stand.initialize(operator, None, b)
    stand.dispatch(operator, a, None, output=out)
    stand.bench.model.calls.clear()
    stand.execute()
    assert stand.bench.model.calls == ["NOT", *calls]
    assert (out.read() == 255).all()
    assert np.array_equal(b.read(), ~noise(1))


def test_copying_is_a_part_of_the_job() -> None:
    stand = Stand()
    buffers = [stand.buffer(seed) for seed in range(3)]
    other, xor = stand.bench.operator, stand.compile(XOR(PLAIN, OWNED, PLAIN))
    stand.dispatch(other, buffers[0], output=buffers[1])
    stand.initialize(xor, None, buffers[1])  # what the dispatch before writes
    stand.dispatch(other, buffers[2], output=buffers[1])
    stand.dispatch(xor, buffers[2], None, output=buffers[2])
    stand.bench.model.calls.clear()
    stand.bench.model.doorbells.clear()
    stand.execute()
    assert stand.bench.model.calls == ["NOT", "COPY", "NOT", "XOR"]
    assert stand.bench.model.doorbells == [4]
    assert np.array_equal(buffers[2].read(), noise(2) ^ ~noise(0))
    assert np.array_equal(buffers[1].read(), ~noise(2))


def test_an_initialization_that_failed_can_be_repeated() -> None:
    stand = Stand()
    b = stand.buffer(1)
    operator = stand.compile(XOR(PLAIN, OWNED, PLAIN))
    stand.initialize(operator, None, b)
    stand.bench.model.fail_reads = frozenset({b.address + 100})
    with pytest.raises(DeviceFault):
        stand.execute()
    assert not operator.initialized
    assert stand.pieces == 1  # the buffer; the copy has been given back
    stand.bench.model.fail_reads = frozenset()
    stand.execute()
    assert operator.initialized
    assert stand.pieces == 2


# --- Lifetimes --------------------------------------------------------------------------------


@pytest.mark.parametrize("flags", [ExecutionFlags.NONE, ExecutionFlags.DESCRIPTORS_VOLATILE])
def test_operators_and_buffers_may_come_and_go_forever(flags: ExecutionFlags) -> None:
    stand = Stand()
    for seed in range(50):
        a, b, out = stand.buffer(seed), stand.buffer(seed + 1), stand.buffer()
        operator = stand.compile(XOR(PLAIN, OWNED, PLAIN), flags)
        stand.initialize(operator, None, b)
        stand.dispatch(operator, a, None, output=out)
        stand.execute()
        assert np.array_equal(out.read(), noise(seed) ^ noise(seed + 1))
        stand.bench.commands.reset()
    assert stand.pieces == 4
    del operator, a, b, out
    assert stand.pieces == 0


@pytest.mark.parametrize("flags", [ExecutionFlags.NONE, ExecutionFlags.DESCRIPTORS_VOLATILE])
def test_a_command_list_holds_what_it_touches(flags: ExecutionFlags) -> None:
    stand = Stand()
    out = stand.buffer()
    operator = stand.compile(XOR(PLAIN, OWNED, PLAIN), flags)
    stand.initialize(operator, None, stand.buffer(1))
    stand.dispatch(operator, stand.buffer(2), None, output=out)
    del operator
    assert stand.pieces == 3
    others = [stand.buffer(99) for _ in range(8)]
    stand.execute()
    assert np.array_equal(out.read(), noise(1) ^ noise(2))
    stand.bench.commands.reset()
    del others
    assert stand.pieces == 1


def test_an_initialized_operator_holds_its_copies_alone() -> None:
    stand = Stand()
    operator = stand.compile(XOR(PLAIN, OWNED, PLAIN))
    stand.initialize(operator, None, stand.buffer(1))
    stand.execute()
    stand.bench.commands.reset()
    assert stand.pieces == 1
    stand.device.close()
    assert stand.pieces == 0
    del operator
    assert stand.pieces == 0
