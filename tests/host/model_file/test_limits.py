"""Models that do not fit a device or memory are refused before either is used."""

import json
import tracemalloc
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bitlane.model_file import ModelFileError
from bitlane_rtl.abi import Op
from support.command_line import CommandLine
from support.host.model_files import Runner, buffer, changed, expect_error, not_model, tensor
from support.host.model_link import ModelDriver

DIGITS = "7" * 5000
COMMAND = "commands[0]"
NOT, BINDINGS = "dispatchables.not", f"{COMMAND}.bindings"
IN, OUT = f"{BINDINGS}.InputTensor", f"{BINDINGS}.OutputTensor"
IN_DESC, OUT_DESC = f"{NOT}.desc.InputTensor", f"{NOT}.desc.OutputTensor"
FIVE = {f"{IN_DESC}.Sizes": [5], f"{OUT_DESC}.Sizes": [5]}
AT_16 = {"name": "in", "elementOffset": 16}
LARGE: dict[str, Any] = {"resources.in.sizeInBytes": 64}
ROWS = tensor("UINT8", [1, 3], Strides=[3, 1], TotalTensorSizeInBytes=8)
SQUARES = {IN_DESC: tensor("UINT8", [2, 2]), OUT_DESC: tensor("UINT8", [2, 2])}


def npy(count: int) -> dict[str, object]:
    return {"initialValues": {"sourcePath": f"{count}.npy"}}


LATE = [
    *not_model()["commands"],
    {"type": "print", "resource": "out"},
    *changed({IN: AT_16}, not_model())["commands"],
]


@pytest.mark.parametrize(
    ("changes", "place", "found", "expected"),
    [
        (
            LARGE | {IN: {"name": "in", "elementOffset": 4}},
            f"{IN}.elementOffset", "4 bytes", "a multiple of 16 (DXGI_ERROR_DEVICE_REMOVED)",
        ),
        (FIVE, IN, "4 bytes of in", "at least 8"),
        (FIVE | {"resources.in.sizeInBytes": 8}, OUT, "4 bytes of out", "at least 8"),
        (
            LARGE | {f"{IN_DESC}.TotalTensorSizeInBytes": 32, OUT: AT_16},
            OUT, "bytes 16 to 19", "the same bytes as InputTensor",
        ),
        (
            LARGE | {IN_DESC: ROWS, OUT_DESC: ROWS | {"Strides": [3, 2]}, OUT: "in"},
            f"{OUT_DESC}.Strides", [0, 2], "[0, 1], as in InputTensor, whose place it takes",
        ),
        (
            {"commands": LATE},
            "commands[2].bindings.InputTensor.elementOffset", "16 bytes", "inside the buffer's 4",
        ),
        (
            {
                IN_DESC: tensor("UINT8", [3], Flags="OWNED_BY_DML"),
                f"{NOT}.bindings": {"InputTensor": {"name": "in", "elementOffset": 1}},
                BINDINGS: {"OutputTensor": "out"},
            },
            f"{NOT}.bindings.InputTensor.elementOffset", "1 bytes", "a multiple of 16",
        ),
        (
            {"resources.big": buffer("UINT8", {"valueCount": 2**21, "value": 0})},
            "resources.big", "2097152 bytes", "less (device memory: ",
        ),
        (
            SQUARES | {"resources.in": buffer("UINT8", [1, 2, 3])},
            IN, "3 bytes of in", "4 bytes",  # padding is not a value
        ),
        # The size of an array's file is the size of the input.
        *(
            (SQUARES | {"resources.in": npy(n)}, IN, f"{n} bytes of in", "4 bytes")
            for n in (1, 3, 5, 8, 100)
        ),
    ],
)  # fmt: skip
def test_the_device_refuses_before_anything_is_executed(
    changes: Mapping[str, object], place: str, found: object, expected: str, runner: Runner
) -> None:
    for n in (1, 3, 5, 8, 100):
        np.save(f"{n}.npy", np.zeros(n, np.uint8))
    expect_refused(runner, changed(changes, not_model()), place, found, expected)


def expect_refused(runner: Runner, model: Any, place: str, found: object, expected: str) -> None:
    with pytest.raises(ModelFileError) as caught:
        runner(model)
    expect_error(caught.value, place, found, expected)
    assert (runner.lines, runner.driver.model.calls) == ([], [])
    assert runner.driver.allocator.pieces == 0


def test_operators_that_the_circuit_lacks() -> None:
    runner = Runner(ModelDriver(ops=frozenset({Op.AND, Op.XOR})))
    place = f"{NOT}.type (DML_OPERATOR_ELEMENT_WISE_BIT_NOT.Type)"
    expect_refused(runner, not_model(), place, "NOT", "with: AND, XOR (DXGI_ERROR_UNSUPPORTED)")


# --- excess -----------------------------------------------------------------------------------


@pytest.fixture
def line_of(run: CommandLine) -> Callable[[str], str]:
    """Return the error line of `bitlane run` for a model file; no device may be opened."""

    def refused(text: str) -> str:
        Path("m.json").write_text(text)
        line = run.refuse("run", "m.json", "--device", "none:")
        assert "m.json" in line
        return line

    return refused


@pytest.mark.parametrize("number", [DIGITS, f"-{DIGITS}", f"{DIGITS}.5", f"1e{DIGITS}"])
def test_numbers_of_very_many_digits(number: str, line_of: Callable[[str], str]) -> None:
    line = line_of(json.dumps(not_model(), indent=0).replace("\n1", f"\n{number}", 1))
    assert "line 6, column 1 is" in line
    assert "expected at most 4000 digits" in line


def test_numbers_of_many_digits_are_out_of_range(line_of: Callable[[str], str]) -> None:
    text = json.dumps(not_model()).replace("1", DIGITS[:4000], 1)
    assert "expected an integer from 0 to 255" in line_of(text)


@pytest.mark.parametrize("values", [{"value": 7}, {"valueStart": 1, "valueDelta": 3}])
@pytest.mark.parametrize("data_type", ["UINT8", "FLOAT64"])
def test_values_too_large_are_not_made(
    values: dict[str, int], data_type: str, runner: Runner
) -> None:
    huge = buffer(data_type, {"valueCount": 2**32 - 1} | values)
    size = 2**32 if data_type == "UINT8" else (2**32 - 1) * 8
    model = changed({"resources.huge": huge}, not_model())
    tracemalloc.start()
    try:
        expect_refused(runner, model, "resources.huge", f"{size} bytes", "less")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1 << 20


def test_values_that_the_host_cannot_hold(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(np, "full", full)
    values = buffer("UINT8", {"valueCount": 3, "value": 7})
    with pytest.raises(ModelFileError, match=r"resources\.in\.initialValues .* this computer's"):
        runner(changed({"resources.in": values}, not_model()), check=False)


def test_the_longest_name_that_a_file_can_have(runner: Runner) -> None:
    name = "y" * 251 + ".bin"
    writing = {"type": "writeFile", "resource": "in", "targetPath": name}
    assert runner(changed({"commands": [writing]}, not_model()))
    assert Path(name).read_bytes() == bytes([1, 2, 3])
    assert sorted(x.name for x in Path().iterdir()) == ["m.json", name]


def test_padding_is_written_piece_by_piece() -> None:
    model = not_model()
    model["resources"]["in"] = buffer("UINT8", [1, 2, 3], sizeInBytes=(3 << 20) + 1)
    run = Runner(ModelDriver(memory_bytes=8 << 20))
    run.driver.model.memory[:] = 0xA5
    assert run(model)
    assert run.driver.model.memory[: (3 << 20) + 4].sum() == 6
    assert run.driver.model.calls.count("write") == 7
