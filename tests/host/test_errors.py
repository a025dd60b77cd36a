"""Errors survive a trip through a pool of processes; what holds a device refuses one."""

import importlib
import pickle
import traceback

import pytest

import bitlane
from bitlane import dml, errors
from bitlane.errors import BitlaneError, DeviceFault, DmlError, DmlTypeError
from bitlane.model_file import ModelFileError
from bitlane_rtl.abi import Port, Status
from support.host.arrays import model
from support.host.model_driver import ModelDriver

NAMED = [getattr(bitlane, name) for name in bitlane.__all__]
OWN = (DmlError, DmlTypeError, DeviceFault)
"""Errors with constructors that take more than a message."""
PUBLIC = [x for x in NAMED if isinstance(x, type) and issubclass(x, Exception) and x not in OWN]

ERRORS: list[BitlaneError] = [
    DmlError("InputTensor", "Sizes", (1, 2), "one size", hresult="DXGI_ERROR_UNSUPPORTED"),
    DmlTypeError("BufferTensorDesc", "Flags", "x" * 99, "an integer"),
    ModelFileError("m.json", "commands[0].type", "'x'", "dispatch, print or writeFile"),
    DeviceFault("READ_ERROR at 0x40", Status.READ_ERROR, 3, Port.READ_A, 0x40),
    *(kind("thing: 1; expected 2") for kind in PUBLIC),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_every_error_can_be_sent_to_another_process(error: BitlaneError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert (str(again), again.args, vars(again)) == (str(error), error.args, vars(error))


def test_what_holds_a_device_says_to_open_it_in_the_worker() -> None:
    device = dml.Device(ModelDriver())
    index = bitlane.BinaryIndex(model(), 64)
    for thing in (model(), device, device.create_buffer(4), index):
        with pytest.raises(BitlaneError, match=r"open the device there: bitlane\.open\(url\)") as e:
            pickle.dumps(thing)
        assert isinstance(e.value, TypeError)


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_tracebacks_show_the_name_that_users_write(error: BitlaneError) -> None:
    (line,) = traceback.format_exception_only(error)
    module, name = line.partition(":")[0].rsplit(".", 1)
    assert module in ("bitlane", "bitlane.model_file")
    assert getattr(importlib.import_module(module), name) is type(error)


def test_errors_that_reach_users_are_public() -> None:
    for name in ("RowTooLongError", "NoRunError", "WorkerLostError", "CheckFailed"):
        assert issubclass(getattr(bitlane, name), BitlaneError)
    raised = {x for x in vars(errors).values() if isinstance(x, type) and x.__module__ == "bitlane"}
    assert {x for x in raised if issubclass(x, BitlaneError)} <= set(NAMED)


def test_errors_of_every_kind_are_tested() -> None:
    assert len(PUBLIC) >= 22


def test_messages_name_bitlane_open_as_users_call_it() -> None:
    with pytest.raises(TypeError, match=r"^open\(\) missing 1 required positional argument: 'url'"):
        bitlane.open()  # type: ignore[call-arg]
    assert repr(bitlane.open).startswith("<function open at ")
