"""Operators are created, compiled, initialised once and then executed; in no other order."""

from collections.abc import Iterable
from threading import Thread

import numpy as np
import pytest

from bitlane.dml import BufferTensorDesc, DataType, ExecutionFlags, TensorFlags
from bitlane.driver.commands import Command
from bitlane.errors import DmlError
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
