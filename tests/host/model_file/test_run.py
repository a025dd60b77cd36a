"""Running a model: what is printed, compared, written to files and made one job."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from bitlane import dml
from bitlane.model_file import BusyCycles, Comparison, ModelFileError, compare, measure
from support.host.model_files import Runner, buffer, changed, not_model, tensor

DESC, BINDINGS = "dispatchables.not.desc", "commands[0].bindings"


# --- dispatch and check -------------------------------------------------------------------------


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


# --- printing -----------------------------------------------------------------------------------


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


# --- layouts, iterations and graphs -----------------------------------------------------------


def test_what_works_in_place_has_one_layout(runner: Runner) -> None:
    rows = tensor("UINT8", [1, 3], Strides=[3, 1], TotalTensorSizeInBytes=8)
    changes: dict[str, object] = {
        f"{DESC}.{name}": rows for name in ("InputTensor", "OutputTensor")
    }
    changes |= {"resources.in.sizeInBytes": 64, f"{BINDINGS}.OutputTensor": "in"}
    assert runner(changed(changes, not_model()))


def test_owned_inputs_are_bound_once(runner: Runner) -> None:
    owned: dict[str, object] = {
        f"{DESC}.InputTensor": tensor("UINT8", [3], Flags="OWNED_BY_DML"),
        "dispatchables.not.bindings": {"InputTensor": "in"},
        BINDINGS: {"OutputTensor": "out"},
    }
    assert runner(changed(owned, not_model()))
    assert runner.lines[1] == "Check 'not': 4 bytes equal"


def test_files_and_padded_values_fill_a_tensor(runner: Runner) -> None:
    squares = {
        f"{DESC}.{name}": tensor("UINT8", [2, 2]) for name in ("InputTensor", "OutputTensor")
    }
    np.save("a.npy", np.zeros((2, 2), np.uint8))
    four = {"resources.out": buffer("UINT8", [0] * 4)}
    for given in (
        {"initialValues": {"sourcePath": "a.npy"}},
        buffer("UINT8", [1, 2, 3], sizeInBytes=4),
    ):
        assert runner(changed(squares | four | {"resources.in": given}, not_model()))


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


# --- output -----------------------------------------------------------------------------------


def write(target: str, **fields: object) -> dict[str, Any]:
    return {"type": "writeFile", "resource": "v", "targetPath": target, **fields}


def holding(data_type: str, values: object, *commands: dict[str, Any], **fields: Any) -> Any:
    """Return a model of ``commands`` with a resource, v."""
    model = not_model([*commands])
    model["resources"]["v"] = buffer(data_type, values, **fields)
    return model


def test_writes_numpy_arrays(runner: Runner) -> None:
    commands = [write("a.npy"), write("new/b.NPY", dimensions=[2, 3])]
    assert runner(holding("FLOAT16", [1, 2, 3, 4, 5, "inf"], *commands))
    assert runner.lines[0] == "Resource 'v' written to 'a.npy'"
    for name, shape in (("a.npy", (6,)), ("new/b.NPY", (2, 3))):
        array = np.load(name)
        assert (array.dtype, array.shape) == (np.dtype(np.float16), shape)
        assert array.ravel().tolist() == [1, 2, 3, 4, 5, float("inf")]


@pytest.mark.parametrize(("given", "size"), [(None, 3), (3, 3), (6, 6), (8, 8)])
def test_writes_raw_bytes_without_inflation(given: int | None, size: int, runner: Runner) -> None:
    commands = [write("a.bin"), write("a.npy")]
    assert runner(holding("UINT8", [1, 2, 3], *commands, sizeInBytes=given))
    assert Path("a.bin").read_bytes() == bytes([1, 2, 3, 0, 0, 0, 0, 0])[:size]
    assert np.load("a.npy").size == size


def test_writes_images_that_read_back(runner: Runner) -> None:
    pixels = (np.arange(24, dtype=np.uint8) * 10).reshape(4, 2, 3)
    command = write("a.png", dimensions=[1, 4, 2, 3])
    assert runner(holding("UINT8", pixels.ravel().tolist(), command))
    with Image.open("a.png") as image:
        assert image.mode == "RGBA"
        assert np.array_equal(np.asarray(image), pixels.transpose(1, 2, 0))
    assert runner(holding("UINT8", {"sourcePath": "a.png"}, write("b.npy")))
    assert np.load("b.npy").tolist() == pixels.ravel().tolist()


def test_writes_floats_as_pixels_clamped(runner: Runner) -> None:
    command = write("a.png", dimensions=[1, 1, 1, 5])
    assert runner(holding("FLOAT32", [-1, 0, 0.5, 1, 7], command))
    with Image.open("a.png") as image:
        assert image.mode == "L"
        assert np.asarray(image).tolist() == [[0, 0, 127, 255, 255]]


def test_writes_jpeg(runner: Runner) -> None:
    command = write("a.jpg", dimensions=[1, 3, 8, 8])
    assert runner(holding("UINT8", {"valueCount": 192, "value": 200}, command))
    with Image.open("a.jpg") as image:
        assert (image.format, image.size) == ("JPEG", (8, 8))


def test_files_are_replaced_whole_or_not(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("a.bin").write_bytes(b"old")
    model = holding("UINT8", [1, 2, 3], write("a.bin"))

    def fail(self: Path, target: Path) -> Path:
        assert self.read_bytes() == bytes([1, 2, 3])  # complete before it takes the name
        assert self.parent == target.parent
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", fail)
        with pytest.raises(ModelFileError, match="No space left on device") as caught:
            runner(model)
    assert caught.value.path == "commands[0].targetPath"
    assert sorted(path.name for path in Path().iterdir()) == ["a.bin", "m.json"]
    assert Path("a.bin").read_bytes() == b"old"
    assert runner(model)
    assert Path("a.bin").read_bytes() == bytes([1, 2, 3])
    assert sorted(path.name for path in Path().iterdir()) == ["a.bin", "m.json"]


# --- timings and comparisons ------------------------------------------------------------------


def test_a_timing_has_the_medians_of_its_iterations() -> None:
    counter = iter([0xFFFF_FFFE, 3, 10, 30, 30, 31])
    calls: list[int] = []
    timing = measure(lambda: calls.append(0), BusyCycles(lambda: next(counter)), iterations=3)
    assert (timing.iterations, timing.cycles, len(calls)) == (3, 5, 3)  # of 5, 20 and 1
    assert str(timing).endswith(" ms median (CPU), 5 cycles")
    assert measure(lambda: None, None).cycles is None
    predicted = measure(lambda: None, BusyCycles(lambda: 7, predicted=True))
    assert str(predicted).endswith(", 0 cycles predicted")


def test_a_comparison_counts_bytes_and_describes_the_first() -> None:
    want = np.arange(6, dtype="<u2").reshape(2, 3)
    assert compare(want, want) == Comparison(12)
    assert str(compare(want, want)) == "12 bytes equal"
    got = want.copy()
    got[0, 1] = 0x0302
    found = compare(got.T, want.T)  # bytes in the order of the elements, not of the memory
    assert (found.size, found.different) == (12, 2)
    expected = "2 of 12 bytes differ, first byte number 4: 0x02, expected 0x01"
    assert str(compare(got.T, want.T, lambda byte: f"number {byte}")) == expected
