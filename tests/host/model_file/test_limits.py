"""Excessive model files give one line and exit code 2, before memory or time is spent."""

import json
import tracemalloc
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bitlane.command_line.cli import main
from bitlane.model_file import ModelFileError, load_model
from support.host.model_driver import ModelDriver
from support.host.model_runner import Runner, buffer, not_model
from support.seeds import seeds

LONG = "x" * 300
DIGITS = "7" * 5000


@pytest.fixture
def line_of(capsys: pytest.CaptureFixture[str]) -> Callable[[str], str]:
    """Return the error line of `bitlane run` for a model file; no device may be opened."""

    def run(text: str) -> str:
        Path("m.json").write_text(text)
        assert main(["run", "m.json", "--device", "none:"]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        (line,) = captured.err.splitlines()
        assert "m.json" in line
        return line

    return run


def writing(target: str) -> dict[str, Any]:
    return not_model([{"type": "writeFile", "resource": "in", "targetPath": target}])


def reading(source: str) -> dict[str, Any]:
    model = not_model()
    model["resources"]["in"]["initialValues"] = {"sourcePath": source}
    return model


@pytest.mark.parametrize(
    ("model", "place", "expected"),
    [
        (writing("a\0b.bin"), "commands[0].targetPath", "without the character NUL"),
        (writing(f"{LONG}.bin"), "commands[0].targetPath", "a file that can be created"),
        (writing(f"{LONG}/a.bin"), "commands[0].targetPath", "a file that can be created"),
        (writing("a/" * 3000 + "a.bin"), "commands[0].targetPath", "a file that can be created"),
        (reading("a\0b.bin"), "resources.in.initialValues.sourcePath", "a file in "),
        (reading(f"{LONG}.bin"), "resources.in.initialValues.sourcePath", "a file in "),
    ],
)
def test_names_that_no_file_can_have(
    model: dict[str, Any], place: str, expected: str, line_of: Callable[[str], str]
) -> None:
    line = line_of(json.dumps(model))
    assert f"{place} is " in line
    assert expected in line


def test_the_longest_name_that_a_file_can_have(runner: Runner) -> None:
    name = "y" * 251 + ".bin"
    assert runner(writing(name))
    assert Path(name).read_bytes() == bytes([1, 2, 3])
    assert sorted(x.name for x in Path().iterdir()) == ["m.json", name]


@pytest.mark.parametrize("content", [b"PK\x03\x04", b"PK", b"", b"\x80\x04.", b"\x93NUMPY", None])
def test_what_is_no_numpy_file(content: bytes | None, line_of: Callable[[str], str]) -> None:
    path = Path("in.npy")
    if content is None:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("in.npy", b"x")
    else:
        path.write_bytes(content)
    line = line_of(json.dumps(reading("in.npy")))
    assert line.count("m.json") == line.count("a NumPy array file") == 1


@pytest.mark.parametrize("seed", seeds(7, 30))
def test_numpy_files_that_are_damaged(seed: int) -> None:
    path = Path("in.npy")
    np.save(path, np.array([1, 2, 3], np.uint8))
    data = np.fromfile(path, np.uint8)
    generator = np.random.default_rng(seed)
    places = generator.integers(0, data.size, 3)
    data[places] = generator.integers(0, 256, 3)
    data[: generator.integers(1, data.size + 1)].tofile(path)
    Path("m.json").write_text(json.dumps(reading("in.npy")))
    # Some damage is harmless.
    with suppress(ModelFileError):
        load_model(Path("m.json"))


@pytest.mark.parametrize("number", [DIGITS, f"-{DIGITS}", f"{DIGITS}.5", f"1e{DIGITS}"])
def test_numbers_of_very_many_digits(number: str, line_of: Callable[[str], str]) -> None:
    text = json.dumps(not_model(), indent=0).replace("\n1", f"\n{number}", 1)
    line = line_of(text)
    assert "line 6, column 1 is" in line
    assert "expected at most 4000 digits" in line


def test_numbers_of_many_digits_are_out_of_range(line_of: Callable[[str], str]) -> None:
    text = json.dumps(not_model()).replace("1", DIGITS[:4000], 1)
    assert "expected an integer from 0 to 255" in line_of(text)


@pytest.mark.parametrize(
    "values",
    [
        {"valueCount": 2**32 - 1, "value": 7},
        {"valueCount": 2**32 - 1, "valueStart": 1, "valueDelta": 3},
    ],
)
@pytest.mark.parametrize("data_type", ["UINT8", "FLOAT64"])
def test_values_too_large_are_not_made(
    values: dict[str, int], data_type: str, runner: Runner
) -> None:
    model = not_model()
    model["resources"]["huge"] = buffer(data_type, values)
    size = 2**32 if data_type == "UINT8" else (2**32 - 1) * 8
    tracemalloc.start()
    try:
        message = rf"resources\.huge is {size} bytes; expected less"
        with pytest.raises(ModelFileError, match=message):
            runner(model)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1 << 20
    assert runner.driver.allocator.pieces == 0


def test_values_that_the_host_cannot_hold(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(np, "full", full)
    model = not_model()
    model["resources"]["in"] = buffer("UINT8", {"valueCount": 3, "value": 7})
    with pytest.raises(ModelFileError, match=r"resources\.in\.initialValues .* this computer's"):
        runner(model, check=False)


def test_padding_is_written_piece_by_piece() -> None:
    model = not_model()
    model["resources"]["in"] = buffer("UINT8", [1, 2, 3], sizeInBytes=(3 << 20) + 1)
    run = Runner(ModelDriver(memory_bytes=8 << 20))
    run.driver.model.memory[:] = 0xA5
    assert run(model)
    assert run.driver.model.memory[: (3 << 20) + 4].sum() == 6
    assert run.driver.model.calls.count("write") == 7
