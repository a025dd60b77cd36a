"""Operators are created, compiled, initialised once and then executed; in no other order."""

from collections.abc import Iterable
from threading import Thread

import numpy as np
import pytest

from bitlane.dml import BufferTensorDesc, DataType, ExecutionFlags, TensorFlags
from bitlane.driver.commands import Command
from bitlane.errors import DmlError
from support.host.dml_bench import NOT, U8, XOR, Bench


def test_operators_are_initialized_before_they_are_executed() -> None:
    bench = Bench(NOT(U8, U8), initialize=False)
    bench.record_dispatch(bench.operator, bench.at(0), bench.at(16))
    bench.refuse(
        lambda: bench.device.execute(bench.commands),
        "DML_OPERATOR_ELEMENT_WISE_BIT_NOT.State is not initialized",
        "that an initializer has initialized",
    )


def test_operators_are_initialized_once() -> None:
    bench = Bench(NOT(U8, U8))
    refusal = ("DML_OPERATOR_ELEMENT_WISE_BIT_NOT.State is initialized already", "exactly once")
    bench.refuse(
        lambda: bench.device.create_operator_initializer([bench.operator]),
        *refusal,
        hresult="E_INVALIDARG",
    )


def test_two_initializers_of_one_operator_are_found() -> None:
    bench = Bench(NOT(U8, U8), initialize=False)
    for _ in range(2):
        bench.record_initialization(bench.operator)
    bench.refuse(
        lambda: bench.device.execute(bench.commands),
        "DML_OPERATOR_ELEMENT_WISE_BIT_NOT.State is initialized already",
        "exactly once",
    )
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
    assert [error.expected for error in refused] == [
        "a compiled operator that is initialized exactly once"
    ]


def test_a_table_serves_its_dispatchable_alone() -> None:
    bench = Bench(NOT(U8, U8))
    other = bench.compile(NOT(U8, U8))
    bench.refuse(
        lambda: bench.recorder.record_dispatch(bench.commands, other, bench.table),
        "RecordDispatch.BindingTable is of another dispatchable",
        "created for",
    )


def test_one_bad_dispatch_stops_the_whole_list_before_it_starts() -> None:
    bench = Bench(NOT(U8, U8), ExecutionFlags.DESCRIPTORS_VOLATILE)
    bench.table.bind_inputs([bench.at(0)])
    bench.table.bind_outputs([bench.at(16)])
    bench.record()
    second = bench.device.create_binding_table(bench.operator)
    bench.recorder.record_dispatch(bench.commands, bench.operator, second)
    bench.refuse(
        lambda: bench.device.execute(bench.commands),
        "InputTensor.Buffer is not bound",
        "a buffer when the operator is executed",
    )


def test_a_table_that_was_reset_is_no_longer_the_volatile_bindings_of_a_dispatch() -> None:
    bench = Bench(NOT(U8, U8), ExecutionFlags.DESCRIPTORS_VOLATILE)
    bench.record()
    other = bench.compile(XOR(U8, U8, U8))
    bench.table.reset(other)
    bench.table.bind_inputs([bench.at(0), bench.at(16)])
    bench.table.bind_outputs([bench.at(32)])
    bench.refuse(
        lambda: bench.device.execute(bench.commands),
        "DML_OPERATOR_ELEMENT_WISE_BIT_NOT.BindingTable is reset to another dispatchable since the"
        " dispatch was recorded",
        "the table of the operator",
    )


# --- Inputs that DML owns ---------------------------------------------------------------------

OWNED = BufferTensorDesc(DataType.UINT8, [16], flags=TensorFlags.OWNED_BY_DML)


def test_owned_inputs_are_not_bound_when_the_operator_is_executed() -> None:
    bench = Bench(XOR(U8, OWNED, U8), initialize=False)
    bench.refuse(
        lambda: bench.table.bind_inputs([bench.at(0), bench.at(16)]),
        "BTensor.Buffer is bound",
        "executed, as the tensor is OWNED_BY_DML",
    )


def test_owned_inputs_are_copied_after_the_dispatches_before_the_initializer() -> None:
    bench = Bench(NOT(U8, U8))
    bench.buffer.write(np.arange(256, dtype=np.uint8))
    bench.record_dispatch(bench.operator, bench.at(0), bench.at(16))
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
    bench.record_dispatch(bench.operator, bench.at(0), None, bench.at(32))
    bench.refuse(
        lambda: bench.device.execute(bench.commands),
        "RecordDispatch.Buffer is closed",
        "buffers that exist",
    )


def test_owned_inputs_are_bound_when_the_operator_is_initialized() -> None:
    bench = Bench(XOR(U8, OWNED, U8), initialize=False)
    bench.refuse(
        bench.initialize, "BTensor.Buffer is not bound", "a buffer when the operator is initialized"
    )


def test_other_inputs_are_not_bound_when_the_operator_is_initialized() -> None:
    bench = Bench(XOR(U8, OWNED, U8), initialize=False)
    initializer = bench.device.create_operator_initializer([bench.operator])
    assert initializer.binding_properties.required_descriptor_count == 1
    table = bench.device.create_binding_table(initializer)
    bench.refuse(
        lambda: table.bind_inputs([[bench.at(0), bench.at(16)]]),
        "ATensor.Buffer is bound",
        "initialized, as the tensor is not OWNED_BY_DML",
    )
    bench.refuse(
        lambda: table.bind_inputs([bench.at(0)]),
        "BindInputs.BindingType is BUFFER",
        "a list of bindings for each operator",
    )
    bench.refuse(lambda: table.bind_inputs([None, None]), "BindInputs.BindingCount is 2", "1")
    bench.refuse(
        lambda: table.bind_outputs([bench.at(0)]),
        "PersistentResource.Buffer is bound",
        "its size is 0",
    )
