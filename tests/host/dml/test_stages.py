"""Operators are created, compiled, initialised once and then executed; what holds their memory."""

from collections.abc import Iterable
from threading import Thread

import numpy as np
import pytest

from bitlane.dml import BufferBinding, BufferTensorDesc, DataType, ExecutionFlags, TensorFlags
from bitlane.driver.commands import Command
from bitlane.errors import DeviceFault, DmlError
from bitlane_rtl.abi import BIT_OPS, Op
from support.host.dml_bench import NOT, U8, XOR, Bench

NAME = "DML_OPERATOR_ELEMENT_WISE_BIT_NOT"
TWICE = (f"{NAME}.State is initialized already", "exactly once")


def test_operators_are_initialized_before_they_are_executed() -> None:
    bench = Bench(NOT(U8, U8), initialize=False)
    bench.dispatch(bench.at(0), bench.at(16))
    found = f"{NAME}.State is not initialized"
    bench.refuse_execution(found, "that an initializer has initialized")


def test_operators_are_initialized_once() -> None:
    bench = Bench(NOT(U8, U8))
    create = bench.device.create_operator_initializer
    bench.refuse(lambda: create([bench.operator]), *TWICE, hresult="E_INVALIDARG")


def test_two_initializers_of_one_operator_are_found() -> None:
    bench = Bench(NOT(U8, U8), initialize=False)
    for _ in range(2):
        bench.record_initialization(bench.operator)
    bench.refuse_execution(*TWICE)
    assert not bench.operator.initialized


def test_two_threads_do_not_initialize_an_operator_both(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(NOT(U8, U8), initialize=False)
    bench.record_initialization(bench.operator)
    refused: list[DmlError] = []

    def execute_too() -> None:
        try:
            bench.device.execute(bench.commands)
        except DmlError as error:
            refused.append(error)

    other = Thread(target=execute_too)
    run = bench.driver.run

    def run_while_another_comes(commands: Iterable[Command]) -> object:
        monkeypatch.setattr(bench.driver, "run", run)
        other.start()
        other.join(0.2)
        return run(commands)

    monkeypatch.setattr(bench.driver, "run", run_while_another_comes)
    bench.device.execute(bench.commands)
    other.join(30)
    expected = ["a compiled operator that is initialized exactly once"]
    assert [error.expected for error in refused] == expected


def test_a_table_serves_its_dispatchable_alone() -> None:
    bench = Bench(NOT(U8, U8))
    bench.operator = bench.compile(NOT(U8, U8))
    bench.refuse(
        bench.record, "RecordDispatch.BindingTable is of another dispatchable", "created for"
    )


def test_one_bad_dispatch_stops_the_whole_list_before_it_starts() -> None:
    bench = Bench(NOT(U8, U8), ExecutionFlags.DESCRIPTORS_VOLATILE)
    bench.bind(bench.at(0), bench.at(16))
    bench.record()
    bench.table = bench.device.create_binding_table(bench.operator)
    bench.record()
    bench.refuse_execution("InputTensor.Buffer is not bound", "when the operator is executed")


def test_a_table_that_was_reset_is_no_longer_the_volatile_bindings_of_a_dispatch() -> None:
    bench = Bench(NOT(U8, U8), ExecutionFlags.DESCRIPTORS_VOLATILE)
    bench.record()
    bench.table.reset(bench.compile(XOR(U8, U8, U8)))
    bench.bind(bench.at(0), bench.at(16), bench.at(32))
    bench.refuse_execution(
        f"{NAME}.BindingTable is reset to another dispatchable since the dispatch was recorded",
        "the table of the operator",
    )


# --- Inputs that DML owns ---------------------------------------------------------------------

OWNED = BufferTensorDesc(DataType.UINT8, [16], flags=TensorFlags.OWNED_BY_DML)


def test_owned_inputs_are_bound_when_the_operator_is_initialized_and_not_later() -> None:
    bench = Bench(XOR(U8, OWNED, U8), initialize=False)
    bench.refuse(
        lambda: bench.table.bind_inputs([bench.at(0), bench.at(16)]),
        "BTensor.Buffer is bound",
        "executed, as the tensor is OWNED_BY_DML",
    )
    bench.refuse(
        bench.initialize, "BTensor.Buffer is not bound", "a buffer when the operator is initialized"
    )


def test_owned_inputs_are_copied_after_the_dispatches_before_the_initializer() -> None:
    bench = Bench(NOT(U8, U8))
    bench.buffer.write(np.arange(256, dtype=np.uint8))
    bench.dispatch(bench.at(0), bench.at(16))
    xor = bench.compile(XOR(U8, OWNED, U8))
    bench.record_initialization(xor, None, bench.at(16))
    bench.record_dispatch(xor, bench.at(32), None, bench.at(48))
    bench.device.execute(bench.commands)
    written = np.arange(32, 48) ^ (255 - np.arange(16))
    assert np.array_equal(bench.buffer.read(16, 48), written.astype(np.uint8))


def test_owned_inputs_go_with_their_device() -> None:
    bench = Bench(XOR(U8, OWNED, U8), initialize=False)
    bench.record_initialization(bench.operator, None, bench.at(16))
    bench.device.execute(bench.commands)
    bench.commands.reset()
    bench.device.close()
    bench.buffer = bench.device.create_buffer(256)
    bench.dispatch(bench.at(0), None, bench.at(32))
    bench.refuse_execution("RecordDispatch.Buffer is closed", "buffers that exist")


def test_other_inputs_are_not_bound_when_the_operator_is_initialized() -> None:
    bench = Bench(XOR(U8, OWNED, U8), initialize=False)
    initializer = bench.device.create_operator_initializer([bench.operator])
    assert initializer.binding_properties.required_descriptor_count == 1
    table = bench.device.create_binding_table(initializer)
    at = bench.at(0)
    not_owned = "initialized, as the tensor is not OWNED_BY_DML"
    lists = "a list of bindings for each operator"
    for bind, bindings, found, expected in (
        (table.bind_inputs, [[at, bench.at(16)]], "ATensor.Buffer is bound", not_owned),
        (table.bind_inputs, [at], "BindInputs.BindingType is BUFFER", lists),
        (table.bind_inputs, [None, None], "BindInputs.BindingCount is 2", "1"),
        (table.bind_outputs, [at], "PersistentResource.Buffer is bound", "its size is 0"),
    ):
        bench.refuse(lambda: bind(bindings), found, expected)  # type: ignore[operator]  # noqa: B023


# --- memory -----------------------------------------------------------------------------------


SIZE = 4096
PAGE = BufferTensorDesc(DataType.UINT8, [SIZE])
OWNED_PAGE = BufferTensorDesc(DataType.UINT8, [SIZE], flags=TensorFlags.OWNED_BY_DML)


def noise(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, SIZE, np.uint8)


class Stand(Bench):
    """A device with room for 16 tensors, on which nothing is allocated."""

    def __init__(self, ops: frozenset[Op] = BIT_OPS) -> None:
        super().__init__(NOT(PAGE, PAGE), ops=ops | {Op.NOT})
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
    operator = stand.compile(XOR(PAGE, OWNED_PAGE, PAGE))
    stand.record_initialization(operator, None, b)
    stand.record_dispatch(operator, a, None, out)
    stand.execute()
    assert stand.model.calls == ["NOT", *calls]
    assert (out.buffer.read() == 255).all()
    assert np.array_equal(b.buffer.read(), ~noise(1))


def test_copying_is_a_part_of_the_job() -> None:
    stand = Stand()
    buffers = [stand.bound(seed) for seed in range(3)]
    other, xor = stand.operator, stand.compile(XOR(PAGE, OWNED_PAGE, PAGE))
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
    operator = stand.compile(XOR(PAGE, OWNED_PAGE, PAGE))
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
        operator = stand.compile(XOR(PAGE, OWNED_PAGE, PAGE), flags)
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
    operator = stand.compile(XOR(PAGE, OWNED_PAGE, PAGE), flags)
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
    operator = stand.compile(XOR(PAGE, OWNED_PAGE, PAGE))
    stand.record_initialization(operator, None, stand.bound(1))
    stand.execute()
    stand.commands.reset()
    assert stand.pieces == 1
    stand.device.close()
    assert stand.pieces == 0
    del operator
    assert stand.pieces == 0
