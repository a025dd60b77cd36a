"""Operators are created, compiled, initialised once and then executed; what holds their memory."""

from collections.abc import Iterable
from threading import Thread
from typing import Any

import numpy as np
import pytest

from bitlane.dml import BufferBinding, BufferTensorDesc, DataType, ExecutionFlags, TensorFlags
from bitlane.driver import Command
from bitlane.errors import DeviceFault, DmlError
from bitlane_rtl.abi import BIT_OPS, Op
from support.host.dml_bench import COUNT, NOT, SHIFT_LEFT, SHIFT_RIGHT, U8, XOR, Bench

NAME = "DML_OPERATOR_ELEMENT_WISE_BIT_NOT"
TWICE = f"{NAME}.State is initialized already; expected ...exactly once"


def test_operators_are_initialized_before_they_are_executed() -> None:
    bench = Bench(NOT(U8, U8), initialize=False)
    bench.dispatch(bench.at(0), bench.at(16))
    bench.refuse_execution(f"{NAME}.State is not initialized; ...an initializer has initialized")


def test_operators_are_initialized_once() -> None:
    bench = Bench(NOT(U8, U8))
    create = bench.device.create_operator_initializer
    bench.refuse(lambda: create([bench.operator]), TWICE, "E_INVALIDARG")


def test_two_initializers_of_one_operator_are_found() -> None:
    bench = Bench(NOT(U8, U8), initialize=False)
    for _ in range(2):
        bench.record_initialization(bench.operator)
    bench.refuse_execution(TWICE)
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
    words = "RecordDispatch.BindingTable is of another dispatchable; expected ...created for"
    bench.refuse(bench.record, words)


def test_one_bad_dispatch_stops_the_whole_list_before_it_starts() -> None:
    bench = Bench(NOT(U8, U8), ExecutionFlags.DESCRIPTORS_VOLATILE)
    bench.bind(bench.at(0), bench.at(16))
    bench.record()
    bench.table = bench.device.create_binding_table(bench.operator)
    bench.record()
    bench.refuse_execution("InputTensor.Buffer is not bound; ...when the operator is executed")


def test_a_table_that_was_reset_is_no_longer_the_volatile_bindings_of_a_dispatch() -> None:
    bench = Bench(NOT(U8, U8), ExecutionFlags.DESCRIPTORS_VOLATILE)
    bench.record()
    bench.table.reset(bench.compile(XOR(U8, U8, U8)))
    bench.bind(bench.at(0), bench.at(16), bench.at(32))
    bench.refuse_execution(
        f"{NAME}.BindingTable is reset to another dispatchable since the dispatch was recorded;"
        " expected the table of the operator"
    )


# --- inputs that DML owns ---------------------------------------------------------------------

OWNED = BufferTensorDesc(DataType.UINT8, [16], flags=TensorFlags.OWNED_BY_DML)


def test_owned_inputs_are_bound_when_the_operator_is_initialized_and_not_later() -> None:
    bench = Bench(XOR(U8, OWNED, U8), initialize=False)
    bench.refuse(
        lambda: bench.table.bind_inputs([bench.at(0), bench.at(16)]),
        "BTensor.Buffer is bound; ...executed, as the tensor is OWNED_BY_DML",
    )
    words = "BTensor.Buffer is not bound; expected a buffer when the operator is initialized"
    bench.refuse(bench.initialize, words)


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
    bench.refuse_execution("RecordDispatch.Buffer is closed; ...buffers that exist")


def test_other_inputs_are_not_bound_when_the_operator_is_initialized() -> None:
    bench = Bench(XOR(U8, OWNED, U8), initialize=False)
    initializer = bench.device.create_operator_initializer([bench.operator])
    assert initializer.binding_properties.required_descriptor_count == 1
    table = bench.device.create_binding_table(initializer)
    at = bench.at(0)
    not_owned = "ATensor.Buffer is bound; ...initialized, as the tensor is not OWNED_BY_DML"
    lists = "BindInputs.BindingType is BUFFER; ...a list of bindings for each operator"
    bench.refuse(lambda: table.bind_inputs([[at, bench.at(16)]]), not_owned)
    bench.refuse(lambda: table.bind_inputs([at]), lists)
    bench.refuse(
        lambda: table.bind_inputs([None, None]), "BindInputs.BindingCount is 2; expected 1"
    )
    persistent = "PersistentResource.Buffer is bound; ...its size is 0"
    bench.refuse(lambda: table.bind_outputs([at]), persistent)


# --- tensors in one buffer --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("inputs", "output"),
    [
        ((0, 16), 32),
        ((0, 0), 16),  # inputs may be the same
        ((0, 16), 0),  # in place of A
        ((16, 0), 0),  # in place of B
        ((0, 0), 0),  # in place of both
        ((16, 32), 0),
        (((0, 32), (16, 32)), 48),  # inputs may overlap each other in part
    ],
)
def test_disjoint_or_identical_ranges_are_fine(inputs: tuple[Any, Any], output: int) -> None:
    bench = Bench(XOR(U8, U8, U8))
    bench.dispatch(*map(bench.bound, (*inputs, output)))
    bench.device.execute(bench.commands)
    assert bench.model.calls == ["XOR"]


IMPLIED = BufferTensorDesc(DataType.UINT8, [1, 4, 4])
WRITTEN_OUT = BufferTensorDesc(DataType.UINT8, [1, 4, 4], [99, 4, 1])
ALIGNED = BufferTensorDesc(DataType.UINT8, [16], guaranteed_base_offset_alignment=64)


@pytest.mark.parametrize(
    ("desc", "places"),
    [
        *(
            (kind(U8, U8, U8), [*inputs, 0])
            for kind in (SHIFT_LEFT, SHIFT_RIGHT)
            for inputs in ((0, 16), (16, 0))
        ),
        (NOT(IMPLIED, WRITTEN_OUT), [0, 0]),  # in place, packed strides may be written out
        (NOT(U8, U8), [(240, None), 0]),
        (NOT(ALIGNED, U8), [64, 0]),
        (NOT(U8, U8), [(np.int64(16), np.int64(16)), 0]),
    ],
)
def test_ranges_that_are_accepted(desc: Any, places: list[Any]) -> None:
    Bench(NOT(U8, U8)).use(desc, *places)


def test_the_same_offsets_of_different_buffers_do_not_overlap() -> None:
    bench = Bench(COUNT(U8, U8))
    bench.dispatch(bench.at(0), BufferBinding(bench.device.create_buffer(16)))


def test_a_table_can_be_bound_anew_without_a_false_alarm() -> None:
    bench = Bench(COUNT(U8, U8))
    bench.dispatch(bench.at(0), bench.at(16))
    bench.bind(bench.at(0), bench.at(16))
    bench.record()
    bench.table.bind_inputs([bench.at(16)])  # for a moment, input and output are the same
    bench.table.bind_outputs([bench.at(0)])
    bench.record()


def test_closed_buffers_are_found_when_bound_and_when_executed() -> None:
    bench = Bench(NOT(U8, U8))
    bench.dispatch(bench.at(0), bench.at(16))
    closed = bench.at(0)
    bench.buffer.close()
    bench.refuse_execution("RecordDispatch.Buffer is closed; expected ...exist")
    words = "InputTensor.Buffer is closed; expected ...exists"
    bench.refuse(lambda: bench.table.bind_inputs([closed]), words)


def test_nothing_is_bound_at_first_nor_after_unbinding_nor_after_a_reset() -> None:
    bench = Bench(NOT(U8, U8))
    unbound = "Tensor.Buffer is not bound; expected a buffer when the operator is executed"
    bench.table.bind_inputs([bench.at(0)])
    bench.refuse(bench.record, f"Output{unbound}")
    bench.table.reset(bench.operator)
    bench.table.bind_outputs([bench.at(0)])
    bench.refuse(bench.record, f"Input{unbound}")
    bench.table.bind_inputs([bench.at(16)])
    bench.record()
    for unbind in (lambda: bench.table.bind_inputs([]), lambda: bench.table.reset(bench.operator)):
        unbind()
        bench.refuse(bench.record, f"Input{unbound}")
        bench.table.bind_inputs([bench.at(16)])


@pytest.mark.parametrize("name", ["temporary", "persistent"])
def test_no_other_resources_are_needed(name: str) -> None:
    bench = Bench(NOT(U8, U8))
    properties = bench.operator.binding_properties
    assert properties.required_descriptor_count == 2
    assert getattr(properties, f"{name}_resource_size") == 0
    getattr(bench.table, f"bind_{name}_resource")(None)


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

    def filled(self, seed: int | None = None) -> BufferBinding:
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


# --- copies of owned inputs -------------------------------------------------------------------


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
    a, b, out = stand.filled(1), stand.filled(2), stand.filled()
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
    buffers = [stand.filled(seed) for seed in range(3)]
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
    b = stand.filled(1)
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


# --- lifetimes --------------------------------------------------------------------------------


@pytest.mark.parametrize("flags", [ExecutionFlags.NONE, ExecutionFlags.DESCRIPTORS_VOLATILE])
def test_operators_and_buffers_may_come_and_go_forever(flags: ExecutionFlags) -> None:
    stand = Stand()
    for seed in range(50):
        a, b, out = stand.filled(seed), stand.filled(seed + 1), stand.filled()
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
    out = stand.filled()
    operator = stand.compile(XOR(PAGE, OWNED_PAGE, PAGE), flags)
    stand.record_initialization(operator, None, stand.filled(1))
    stand.record_dispatch(operator, stand.filled(2), None, out)
    del operator
    assert stand.pieces == 3
    others = [stand.filled(99) for _ in range(8)]
    stand.execute()
    assert np.array_equal(out.buffer.read(), noise(1) ^ noise(2))
    stand.commands.reset()
    del others
    assert stand.pieces == 1


def test_an_initialized_operator_holds_its_copies_alone() -> None:
    stand = Stand()
    operator = stand.compile(XOR(PAGE, OWNED_PAGE, PAGE))
    stand.record_initialization(operator, None, stand.filled(1))
    stand.execute()
    stand.commands.reset()
    assert stand.pieces == 1
    stand.device.close()
    assert stand.pieces == 0
    del operator
    assert stand.pieces == 0
