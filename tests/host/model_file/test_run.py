"""Running a model: what is printed, compared and made one job; nothing before all is checked."""

import re
from typing import Any

import numpy as np
import pytest

from bitlane import dml
from bitlane.model_file import ModelFileError
from bitlane_rtl.abi import Op
from support.host.model_driver import ModelDriver
from support.host.model_runner import Runner, buffer, not_model, tensor

# --- Dispatch and check -------------------------------------------------------------------------


def test_dispatches_say_their_time_and_cycles_if_they_are_counted(runner: Runner) -> None:
    assert runner(not_model(), check=False, cycles=True)
    (line,) = runner.lines
    shown = r"Dispatch 'not': 1 iterations, (\d+\.\d{4}) ms median \(CPU\)"
    found = re.fullmatch(shown + ", 123 cycles", line)  # across the counter's wrap
    assert found
    assert float(found[1]) > 0
    runner.lines.clear()
    assert runner(not_model(), check=False)
    assert re.fullmatch(shown, runner.lines[0])


def test_checks_count_the_bytes_of_the_output_buffer(runner: Runner) -> None:
    model = not_model()
    model["resources"]["out"]["sizeInBytes"] = 60
    assert runner(model)
    assert runner.lines[1] == "Check 'not': 60 bytes equal"


@pytest.mark.parametrize(
    ("flip", "place"),
    [
        (0, "byte 16 of 'out' (byte 0 of OutputTensor): 0xFF, expected 0xFE"),
        (2, "byte 18 of 'out' (byte 2 of OutputTensor): 0xFD, expected 0xFC"),
        (3, "byte 19 of 'out' (byte 3 of OutputTensor): 0x01, expected 0x00"),  # padding
        (-1, "byte 15 of 'out' (byte -1 of OutputTensor): 0x06, expected 0x07"),  # before it
    ],
)
def test_checks_find_a_single_wrong_bit(flip: int, place: str, runner: Runner) -> None:
    model = not_model()
    model["resources"]["out"] = buffer("UINT8", [7] * 16, sizeInBytes=32)
    bindings = model["commands"][0]["bindings"]
    bindings["OutputTensor"] = {"name": "out", "elementOffset": 16}
    runner.driver.model.flip = flip
    assert not runner(model)
    assert runner.lines[1] == f"Check 'not': 1 of 32 bytes differ, first {place}"


def test_a_difference_is_reported_once(runner: Runner) -> None:
    model = not_model()
    model["commands"] *= 2

    def note(line: str) -> None:
        runner.lines.append(line)
        runner.driver.model.flip = None if len(runner.lines) > 1 else runner.driver.model.flip

    runner.driver.model.flip = 1
    assert not runner(model, note=note)
    assert [line.partition(": ")[2][:4] for line in runner.lines[1::2]] == ["1 of", "4 by"]


def test_an_in_place_difference_is_not_passed_on(runner: Runner) -> None:
    model = not_model()
    model["commands"][0]["bindings"]["OutputTensor"] = "in"
    model["commands"] *= 2
    runner.driver.model.flip = 0
    assert not runner(model)
    shown = [line for line in runner.lines if line.startswith("Check")]
    assert len(shown) == 2
    assert all("1 of 4 bytes differ, first byte 0 " in line for line in shown)


def test_without_checks_differences_are_not_noticed(runner: Runner) -> None:
    runner.driver.model.flip = 0
    assert runner(not_model(), check=False)
    assert len(runner.lines) == 1


def test_resources_reach_the_device_with_their_padding_zeroed(runner: Runner) -> None:
    assert runner(not_model([{"type": "writeFile", "resource": "in", "targetPath": "a.bin"}]))
    memory = runner.driver.model.memory
    assert memory[:4].tolist() == [1, 2, 3, 0]


# --- Printing -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data_type", "values", "flat"),
    [
        ("UINT8", [0, 65, 255], "0, 65, 255"),  # numbers, not characters
        ("INT8", [-1, -128], "-1, -128"),
        ("UINT64", [2**64 - 1], "18446744073709551615"),
        ("INT64", [-(2**63)], "-9223372036854775808"),
        ("FLOAT32", [1, 3.5, 0.1, 1e6, 1234567, 1e-5], "1, 3.5, 0.1, 1e+06, 1.23457e+06, 1e-05"),
        ("FLOAT16", [65504, "inf", "-inf", "nan"], "65504, inf, -inf, nan"),
        ("FLOAT64", [-0.0, 0.125], "-0, 0.125"),
    ],
)
def test_prints_flat(data_type: str, values: list[object], flat: str, runner: Runner) -> None:
    model = not_model([{"type": "print", "resource": "v"}])
    model["resources"]["v"] = buffer(data_type, values, sizeInBytes=64)
    assert runner(model)
    assert runner.lines == [f"Resource 'v': {flat}"]


def test_prints_verbose(runner: Runner) -> None:
    model = not_model([{"type": "print", "resource": "v", "verbose": True}])
    model["resources"]["v"] = buffer("INT16", {"valueCount": 10, "valueStart": -2, "valueDelta": 1})
    assert runner(model)
    lines = runner.lines[0].split("\n")
    assert lines[0] == "Resource 'v':"
    assert lines[1] == "[ 0] -2 (0xFFFE)"
    assert lines[10] == "[ 9] 7 (0x0007)"
    assert len(lines) == 11


# --- What the device refuses, before anything is executed ---------------------------------------


def refuse(runner: Runner, model: object, path: str, found: object, expected: str) -> None:
    with pytest.raises(ModelFileError) as caught:
        runner(model)
    error = caught.value
    assert (error.path, error.value) == (path, found)
    assert expected in error.expected
    assert runner.lines == []
    assert runner.driver.model.calls == []
    assert runner.driver.allocator.pieces == 0


def test_bindings_are_aligned(runner: Runner) -> None:
    model = not_model()
    model["resources"]["in"]["sizeInBytes"] = 64
    bindings = model["commands"][0]["bindings"]
    bindings["InputTensor"] = {"name": "in", "elementOffset": 4}
    path = "commands[0].bindings.InputTensor.elementOffset"
    refuse(runner, model, path, "4 bytes", "a multiple of 16 (DXGI_ERROR_DEVICE_REMOVED)")


def test_bindings_hold_their_tensors(runner: Runner) -> None:
    model = not_model()
    for name in ("InputTensor", "OutputTensor"):
        model["dispatchables"]["not"]["desc"][name]["Sizes"] = [5]
    path = "commands[0].bindings.InputTensor"
    refuse(runner, model, path, "4 bytes of in", "at least 8")
    model["resources"]["in"]["sizeInBytes"] = 8
    path = "commands[0].bindings.OutputTensor"
    refuse(runner, model, path, "4 bytes of out", "at least 8")


def test_bindings_do_not_overlap_in_part(runner: Runner) -> None:
    model = not_model()
    model["resources"]["in"]["sizeInBytes"] = 64
    desc = model["dispatchables"]["not"]["desc"]
    desc["InputTensor"]["TotalTensorSizeInBytes"] = 32
    model["commands"][0]["bindings"]["OutputTensor"] = {"name": "in", "elementOffset": 16}
    path = "commands[0].bindings.OutputTensor"
    refuse(runner, model, path, "bytes 16 to 19", "the same bytes as InputTensor")


def test_what_works_in_place_has_one_layout(runner: Runner) -> None:
    model = not_model()
    model["resources"]["in"]["sizeInBytes"] = 64
    desc = model["dispatchables"]["not"]["desc"]
    desc["InputTensor"] |= {"Sizes": [1, 3], "Strides": [3, 1]}
    desc["OutputTensor"] |= {"Sizes": [1, 3], "Strides": [3, 1], "TotalTensorSizeInBytes": 8}
    desc["InputTensor"]["TotalTensorSizeInBytes"] = 8
    model["commands"][0]["bindings"]["OutputTensor"] = "in"
    assert runner(model)
    desc["OutputTensor"]["Strides"], runner.lines = [3, 2], []
    path = "dispatchables.not.desc.OutputTensor.Strides"
    refuse(runner, model, path, [0, 2], "[0, 1], as in InputTensor, whose place it takes")


def test_a_late_mistake_stops_the_first_dispatch(runner: Runner) -> None:
    model = not_model()
    first = model["commands"][0]
    binding = {"InputTensor": {"name": "in", "elementOffset": 16}}
    late = first | {"bindings": first["bindings"] | binding}
    model["commands"] += [{"type": "print", "resource": "out"}, late]
    path = "commands[2].bindings.InputTensor"
    refuse(runner, model, f"{path}.elementOffset", "16 bytes", "inside the buffer's 4")


def test_owned_bindings_are_checked_too(runner: Runner) -> None:
    model = not_model()
    desc = model["dispatchables"]["not"]["desc"]
    desc["InputTensor"] = tensor("UINT8", [3], Flags="OWNED_BY_DML")
    model["dispatchables"]["not"]["bindings"] = {"InputTensor": {"name": "in", "elementOffset": 1}}
    model["commands"][0]["bindings"] = {"OutputTensor": "out"}
    path = "dispatchables.not.bindings.InputTensor.elementOffset"
    refuse(runner, model, path, "1 bytes", "a multiple of 16")
    model["dispatchables"]["not"]["bindings"] = {"InputTensor": "in"}
    assert runner(model)
    assert runner.lines[1] == "Check 'not': 4 bytes equal"


def test_operators_that_the_circuit_lacks() -> None:
    runner = Runner(ModelDriver(ops=frozenset({Op.AND, Op.XOR})))
    path = "dispatchables.not.type (DML_OPERATOR_ELEMENT_WISE_BIT_NOT.Type)"
    refuse(runner, not_model(), path, "NOT", "built with: AND, XOR (DXGI_ERROR_UNSUPPORTED)")


def test_resources_that_do_not_fit(runner: Runner) -> None:
    model = not_model()
    model["resources"]["big"] = buffer("UINT8", {"valueCount": 2**21, "value": 0})
    refuse(runner, model, "resources.big", "2097152 bytes", "less (device memory: ")


def square_model(resource: dict[str, Any]) -> dict[str, Any]:
    """Return BIT_NOT of a 2 x 2 UINT8 tensor that is bound to ``resource``."""
    model = not_model()
    model["resources"] = {"in": resource, "out": buffer("UINT8", [0] * 4)}
    for name in ("InputTensor", "OutputTensor"):
        model["dispatchables"]["not"]["desc"][name] = tensor("UINT8", [2, 2])
    return model


@pytest.mark.parametrize("count", [1, 3, 5, 8, 100])
def test_numpy_files_have_the_size_of_the_input(count: int, runner: Runner) -> None:
    model = square_model({"initialValues": {"sourcePath": "a.npy"}})
    np.save("a.npy", np.zeros(count, np.uint8))
    path = "commands[0].bindings.InputTensor"
    refuse(runner, model, path, f"{count} bytes of in", "4 bytes")
    np.save("a.npy", np.zeros((2, 2), np.uint8))
    assert runner(model)


def test_padding_is_no_value(runner: Runner) -> None:
    values = buffer("UINT8", [1, 2, 3])
    path = "commands[0].bindings.InputTensor"
    refuse(runner, square_model(values), path, "3 bytes of in", "4 bytes")
    assert runner(square_model(values | {"sizeInBytes": 4}))


# --- Iterations, and operators as graphs --------------------------------------------------------


@pytest.mark.parametrize(("iterations", "values"), [(1, "254, 253, 252"), (2, "1, 2, 3")])
def test_iterations_in_place_go_on_from_the_last(
    runner: Runner, iterations: int, values: str
) -> None:
    model = not_model()
    model["commands"][0]["bindings"]["OutputTensor"] = "in"
    model["commands"].append({"type": "print", "resource": "in"})
    assert runner(model, iterations=iterations)
    assert runner.lines[1:] == ["Check 'not': 4 bytes equal", f"Resource 'in': {values}"]


def test_each_dispatch_is_repeated_before_the_next(runner: Runner) -> None:
    model = not_model()
    model["commands"] *= 2
    assert runner(model, check=False, iterations=3)
    assert [line.partition(" iter")[0] for line in runner.lines] == ["Dispatch 'not': 3"] * 2
    assert runner.driver.model.doorbells == [1] * 6


def test_an_operator_compiled_as_a_graph(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    model = not_model()
    model["dispatchables"]["not"]["dmlCompileType"] = "DmlCompileGraph"
    graphs = []
    compile_graph = dml.Device.compile_graph

    def note(self: dml.Device, graph: dml.GraphDesc, flags: dml.ExecutionFlags) -> object:
        graphs.append(graph)
        return compile_graph(self, graph, flags)

    monkeypatch.setattr(dml.Device, "compile_graph", note)
    assert runner(model)
    assert len(graphs) == 1
    assert runner.lines[1] == "Check 'not': 4 bytes equal"
    model["commands"][0]["bindings"]["OutputTensor"] = {"name": "out", "elementOffset": 2}
    with pytest.raises(ModelFileError, match=r"OutputTensor\.elementOffset is 2 bytes"):
        runner(model)


# --- jobs -------------------------------------------------------------------------------------


def xor_model(*commands: Any) -> dict[str, Any]:
    """Return a model with resources of 4 bytes; the command "abc" is c = a XOR b."""
    vector = tensor("UINT8", [4])
    desc = {"ATensor": vector, "BTensor": vector, "OutputTensor": vector}

    def dispatch(a: str, b: str, y: str) -> dict[str, Any]:
        bindings = {"ATensor": a, "BTensor": b, "OutputTensor": y}
        return {"type": "dispatch", "dispatchable": "xor", "bindings": bindings}

    return not_model() | {
        "resources": {name: buffer("UINT8", [1 << k] * 4) for k, name in enumerate("abcdef")},
        "dispatchables": {"xor": {"type": "ELEMENT_WISE_BIT_XOR", "desc": desc}},
        "commands": [dispatch(*x) if isinstance(x, str) else x for x in commands],
    }


def show(name: str) -> dict[str, Any]:
    return {"type": "print", "resource": name}


def jobs(runner: Runner, model: dict[str, Any], *, check: bool) -> list[int]:
    """Return the number of commands that each doorbell submits; expect that all checks pass."""
    runner.lines.clear()
    runner.driver.model.doorbells.clear()
    assert runner(model, check=check)
    return list(runner.driver.model.doorbells)


@pytest.mark.parametrize("check", [False, True])
def test_dispatches_in_a_row_are_one_job(runner: Runner, check: bool) -> None:
    assert jobs(runner, xor_model("abc", "ade", "bdf"), check=check) == [3]
    figures = {line.partition(", ")[2] for line in runner.lines if line.startswith("Dispatch")}
    (text,) = figures  # of the job, so the same for each
    assert text.endswith(" ms median (CPU) for a job of 3 dispatches")


@pytest.mark.parametrize("check", [False, True])
def test_each_sees_what_those_before_it_wrote(runner: Runner, check: bool) -> None:
    # c is read before and after it is written; a, which is read first, is written in the end.
    model = xor_model("acd", "abc", "ace", "bca", show("d"), show("e"), show("a"))
    assert jobs(runner, model, check=check) == [4]
    shown = [line.partition(": ")[2] for line in runner.lines if line.startswith("Resource")]
    assert shown == ["5, 5, 5, 5", "2, 2, 2, 2", "1, 1, 1, 1"]


def test_cycles_are_those_of_the_job(runner: Runner) -> None:
    assert runner(xor_model("abc", "ade"), check=False, cycles=True)
    assert [line.rpartition("(CPU), ")[2] for line in runner.lines] == [
        "246 cycles for a job of 2 dispatches"
    ] * 2


@pytest.mark.parametrize(
    "between", [show("f"), {"type": "writeFile", "resource": "f", "targetPath": "f.bin"}]
)
def test_what_shows_a_resource_ends_a_job(runner: Runner, between: dict[str, Any]) -> None:
    assert jobs(runner, xor_model("abc", between, "ade"), check=False) == [1, 1]
    kinds = [line.partition(" ")[0] for line in runner.lines]
    assert kinds == ["Dispatch", "Resource", "Dispatch"]


def test_with_checks_an_output_that_is_written_again_ends_a_job(runner: Runner) -> None:
    model = xor_model("abc", "bcd", "abc", "cdc")
    assert jobs(runner, model, check=False) == [4]
    assert jobs(runner, model, check=True) == [2, 1, 1]
    assert [line.partition(" ")[0] for line in runner.lines] == ["Dispatch", "Check"] * 4


def test_a_difference_is_found_where_it_arose(runner: Runner) -> None:
    model = xor_model("abc", "bcd", "bde")
    right = runner.driver.model.execute

    def spoil(record: Any) -> None:
        runner.driver.model.flip = 2 if runner.driver.model.calls.count("XOR") == 1 else None
        right(record)

    runner.driver.model.execute = spoil  # type: ignore[method-assign]
    assert not runner(model)
    checks = [line for line in runner.lines if line.startswith("Check")]
    assert ["differ" in line for line in checks] == [False, True, False]
    assert "1 of 4 bytes differ, first byte 2 of 'd'" in checks[1]
