"""Files that models write, whole or not there, and the timings and comparisons that they show."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from bitlane.model_file import ModelFileError
from bitlane.model_file.results import BusyCycles, Comparison, compare, measure
from support.host.model_runner import Runner, buffer, not_model


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


# --- timings and comparisons ----------------------------------------------------------------------


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
