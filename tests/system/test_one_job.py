"""A command list is one job, with few waits; the way from a call to the circuit is short."""

import json
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import bitlane
import bitlane_rtl
import bitlane_sim
from bitlane import dml
from bitlane.dml import BufferBinding, BufferTensorDesc, DataType
from bitlane.driver import Write
from bitlane.links import Link
from bitlane.model_file import load_model, prepare, run
from bitlane_rtl.abi import CONTROL_BASE, register
from support.system.devices import noise, opened, simulator_of

SIZE, NUMBER = 4096, 50
TENSOR = BufferTensorDesc(DataType.UINT8, [SIZE])

MOST_WAITS = 8
"""A wait, and a doorbell, for every half of a ring of 16."""

MOST_CYCLES = 26_100
"""Those of the data, 25,600, and a few to start; with a fence for each XOR it would be 26,600."""


class Meter:
    """Counts what goes over a link from now on."""

    def __init__(self, link: Link, monkeypatch: pytest.MonkeyPatch) -> None:
        self.waits = self.doorbells = 0
        wait, exchange = link.wait, link.exchange

        def counted_wait(timeout: float) -> bool:
            self.waits += 1
            return wait(timeout)

        def counted_exchange(writes: Sequence[Write], reads: Sequence[tuple[int, int]]) -> Any:
            doorbell = CONTROL_BASE + register("DOORBELL").offset
            self.doorbells += [address for address, _ in writes].count(doorbell)
            return exchange(writes, reads)

        monkeypatch.setattr(link, "wait", counted_wait)
        monkeypatch.setattr(link, "exchange", counted_exchange)


def record(dml_device: dml.Device) -> tuple[Callable[[], None], Callable[[], bool]]:
    """The command list, and whether all results are right."""
    operator = dml_device.compile_operator(
        dml_device.create_operator(dml.ElementWiseBitXorOperatorDesc(TENSOR, TENSOR, TENSOR))
    )
    recorder, commands = dml_device.create_command_recorder(), dml_device.create_command_list()
    initializer = dml_device.create_operator_initializer([operator])
    recorder.record_dispatch(commands, initializer, dml_device.create_binding_table(initializer))
    buffers = [dml_device.create_buffer(SIZE) for _ in range(3 * NUMBER)]
    triples = list(zip(buffers[0::3], buffers[1::3], buffers[2::3], strict=True))
    for seed, buffer in enumerate(buffers):
        buffer.write(noise(SIZE, seed))
    for a, b, y in triples:
        table = dml_device.create_binding_table(operator)
        table.bind_inputs([BufferBinding(a), BufferBinding(b)])
        table.bind_outputs([BufferBinding(y)])
        recorder.record_dispatch(commands, operator, table)

    def right() -> bool:
        return all(np.array_equal(y.read(), a.read() ^ b.read()) for a, b, y in triples)

    return lambda: dml_device.execute(commands), right


def model_file(folder: Path) -> Path:
    """The same as a model file, which prints nothing."""
    values = {"valueCount": SIZE, "valueStart": 1, "valueDelta": 7}
    resource = {"initialValuesDataType": "UINT8", "initialValues": values}
    tensor = {"DataType": "UINT8", "Sizes": [SIZE]}
    tensors = dict.fromkeys(("ATensor", "BTensor", "OutputTensor"), tensor)
    model = {
        "resources": {f"{name}{k}": resource for name in "aby" for k in range(NUMBER)},
        "dispatchables": {"xor": {"type": "ELEMENT_WISE_BIT_XOR", "desc": tensors}},
        "commands": [
            {
                "type": "dispatch",
                "dispatchable": "xor",
                "bindings": {"ATensor": f"a{k}", "BTensor": f"b{k}", "OutputTensor": f"y{k}"},
            }
            for k in range(NUMBER)
        ],
    }
    file = folder / "model.json"
    file.write_text(json.dumps(model))
    return file


def test_a_command_list_on_the_simulator(monkeypatch: pytest.MonkeyPatch) -> None:
    with opened("sim") as device, dml.Device(device) as dml_device:
        execute, right = record(dml_device)
        meter = Meter(device.driver.link, monkeypatch)
        before = simulator_of(device).cycles
        execute()
        cycles = simulator_of(device).cycles - before
        assert right()
    assert 0 < meter.waits <= MOST_WAITS
    assert 0 < meter.doorbells <= MOST_WAITS
    assert cycles <= MOST_CYCLES


@pytest.mark.parametrize("check", [False, True])
def test_a_model_file_on_the_simulator(
    check: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[str] = []
    with opened("sim") as device, dml.Device(device) as dml_device:
        prepared = prepare(load_model(model_file(tmp_path)), dml_device)
        meter = Meter(device.driver.link, monkeypatch)
        before = simulator_of(device).cycles
        assert run(prepared, lines.append, check=check)
        cycles = simulator_of(device).cycles - before
    assert len(lines) == NUMBER * (1 + check)
    assert 0 < meter.waits <= MOST_WAITS
    assert 0 < meter.doorbells <= MOST_WAITS
    assert cycles <= MOST_CYCLES


# --- calls and files ------------------------------------------------------------------------------


PACKAGES = tuple(str(Path(x.__file__ or "").parent) for x in (bitlane, bitlane_rtl, bitlane_sim))

A = np.arange(64, dtype=np.uint8)
B = A[::-1].copy()
OUT = np.zeros(64, np.uint8)

CALLS: dict[str, Callable[[bitlane.Device], object]] = {
    "bit_xor": lambda device: device.bit_xor(A, B),
    "bit_not": lambda device: device.bit_not(A),
    "bit_count": lambda device: device.bit_count(A),
    "bit_xor into out": lambda device: device.bit_xor(A, B, out=OUT),
    "bit_and with a number": lambda device: device.bit_and(A, 15),
}

MOST_CALLS = 150
MOST_FILES = 13


def passed(call: Callable[[], object]) -> Counter[tuple[str, str]]:
    """Bitlane's functions that are entered during ``call``: how often, by file and name."""
    seen: Counter[tuple[str, str]] = Counter()

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(PACKAGES):
            seen[code.co_filename, code.co_qualname] += 1

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return seen


@pytest.mark.parametrize("name", CALLS)
def test_a_call_passes_few_functions_and_files(name: str) -> None:
    """64 bytes on the simulator, from the call to the result, the simulator's Python included."""
    call = CALLS[name]
    with opened("sim") as device:
        call(device)  # is planned once
        seen = passed(lambda: call(device))
    files = {file for file, _ in seen}
    report = f"{seen.total()} calls of {len(seen)} functions in {len(files)} files: {seen}"
    print(report)
    assert seen.total() <= MOST_CALLS, report
    assert len(files) <= MOST_FILES, report
