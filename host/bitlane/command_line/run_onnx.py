"""`bitlane run MODEL.onnx`: executes a graph of ONNX's bit operators on arrays from files."""

from collections.abc import Sequence
from io import BytesIO
from os.path import realpath
from pathlib import Path
from time import perf_counter

import numpy as np

from .._typing import AnyArray
from ..arrays import Array, compute, explain
from ..device import Device, open_device
from ..errors import BitlaneError, NpyError
from ..files import expected_instead, write_atomically
from ..model_file.images import read_npy
from ..onnx import OnnxError, PreparedGraph, load
from ..onnx.backend import reference_outputs
from ..onnx.model import BitGraph, quoted
from ..onnx.parse import read_graph
from .cli import CHECK_FAILED, DONE


def run_onnx(
    path: str, url: str, inputs: Sequence[str], outputs: Sequence[str], *, check: bool = True
) -> int:
    """Run the model ``path`` on the device ``url``; returns the exit code.

    ``inputs`` and ``outputs``: NAME=FILE.npy. Outputs without a file are printed. Raises
    ``OnnxError`` and what else is wrong with model, names or files before the device is opened.
    """
    model = load(path)
    try:
        graph = read_graph(model)
    except OnnxError as error:
        raise OnnxError(f"{path}: {error}") from error
    targets = _files("--output", outputs)
    if len({realpath(file) for file in targets.values()}) < len(targets):
        raise OnnxError("--output: two go to the same file; expected one for each")
    for name, file in targets.items():
        wanted = expected_instead(file)
        if wanted is not None:
            raise OnnxError(f"--output {name}={file}: expected {wanted}")
    for name in targets.keys() - {x.name for x in graph.outputs}:
        names = ", ".join(quoted(x.name) for x in graph.outputs)
        raise OnnxError(f"--output: {path} has no {quoted(name)}; expected {names}")
    arrays = {name: _read(file) for name, file in _files("--input", inputs).items()}
    graph.bind(arrays, {})
    with open_device(url) as device:
        results = PreparedGraph(graph, device).arrays(arrays)
        print(f"Running on '{device.description}'", flush=True)
        print(explain(*results))
        print(f"Graph {quoted(graph.name)}: 1 iterations, {_time(device, results)}")
        tensors = [x.get() for x in results]
    passed = not check or _compare(
        graph, tensors, reference_outputs(graph, {**graph.constants, **arrays})
    )
    for x, tensor in zip(graph.outputs, tensors, strict=True):
        if x.name in targets:
            _write(targets[x.name], tensor)
            print(f"Output {quoted(x.name)} written to '{targets[x.name]}'")
        else:
            # NumPy leaves out the middle of a long array.
            print(f"Output {quoted(x.name)}: {tensor.dtype} of shape {tensor.shape}\n{tensor}")
    return DONE if passed else CHECK_FAILED


def _files(option: str, words: Sequence[str]) -> dict[str, Path]:
    """The files of ``words``, by name. Raises ``BitlaneError``."""
    files: dict[str, Path] = {}
    for word in words:
        name, joint, file = word.partition("=")
        if not (name and joint) or Path(file).suffix.lower() != ".npy":
            raise BitlaneError(f"{option} {word}: expected NAME=FILE.npy")
        if name in files:
            raise BitlaneError(f"{option} {word}: {name} is there already; expected it once")
        files[name] = Path(file)
    return files


def _read(file: Path) -> AnyArray:
    try:
        return read_npy(file)
    except NpyError as error:
        raise BitlaneError(f"--input: {file}; expected {error}") from error
    except MemoryError:
        raise BitlaneError(f"--input: {file}; expected one that fits this memory") from None


def _time(device: Device, results: Sequence[Array]) -> str:
    """Compute ``results``; what that took."""
    driver = device.driver
    counted = driver.geometry.counters
    before = driver.read_register("BUSY_CYCLES") if counted else 0
    start = perf_counter()
    compute(*results)
    figures = f"{(perf_counter() - start) * 1000:.4f} ms median (CPU)"
    if counted:
        figures += f", {(driver.read_register('BUSY_CYCLES') - before) % 2**32} cycles"
    return figures


def _compare(graph: BitGraph, got: Sequence[AnyArray], wanted: Sequence[AnyArray]) -> bool:
    """Print a line for each output; whether all bytes are those of the golden model."""
    passed = True
    for x, mine, other in zip(graph.outputs, got, wanted, strict=True):
        left, right = (np.frombuffer(each.tobytes(), np.uint8) for each in (mine, other))
        different = np.flatnonzero(left != right)
        line = f"Check {quoted(x.name)}: {left.size} bytes equal"
        if different.size:
            first, passed = int(different[0]), False
            line = (
                f"Check {quoted(x.name)}: {different.size} of {left.size} bytes differ, first byte"
                f" {first}: 0x{left[first]:02X}, expected 0x{right[first]:02X}"
            )
        print(line)
    return passed


def _write(file: Path, tensor: AnyArray) -> None:
    """Write a file of NumPy's, whole or not at all. Raises ``OSError``."""
    buffer = BytesIO()
    np.save(buffer, tensor, allow_pickle=False)
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(file, buffer.getvalue())
