"""`bitlane run MODEL.onnx`: executes a graph of ONNX's bit operators on arrays from files."""

from collections.abc import Sequence
from os.path import realpath
from pathlib import Path

from .._typing import AnyArray
from ..api.device import open_device
from ..arrays import compute, explain
from ..errors import BitlaneError, NpyError
from ..files import expected_instead
from ..model_file.images import encode_npy, write_file
from ..model_file.results import busy_cycles, compare, measure
from ..npy import read_npy
from ..onnx import OnnxError, PreparedGraph, load
from ..onnx.golden import reference_outputs
from ..onnx.model import BitGraph, quoted
from ..onnx.parse import read_graph
from .cli import CHECK_FAILED, DONE


def run_onnx(
    path: str, url: str, inputs: Sequence[str], outputs: Sequence[str], *, check: bool = True
) -> int:
    """Run the model ``path`` on the device ``url``; return the exit code.

    ``inputs`` and ``outputs``: NAME=FILE.npy. Outputs without a file are printed. Raises
    ``OnnxError`` and ``BitlaneError`` for a wrong model, name or file before the device is opened.
    """
    model = load(path)
    try:
        graph = read_graph(model)
    except OnnxError as error:
        raise OnnxError(f"{path}: {error}") from error
    targets = _targets(path, graph, outputs)
    arrays = {name: _read(file) for name, file in _files("--input", inputs).items()}
    graph.bind(arrays, {})
    with open_device(url) as device:
        results = PreparedGraph(graph, device).arrays(arrays)
        print(f"Running on '{device.description}'", flush=True)
        print(explain(*results))
        timing = measure(lambda: compute(*results), busy_cycles(device.driver))
        print(f"Graph {quoted(graph.name)}: {timing}")
        tensors = [x.get() for x in results]
        if predicted := device.driver.link.prediction:
            print(predicted)
    passed = True
    if check:
        want = reference_outputs(model, {**graph.constants, **arrays})
        passed = _check(graph, tensors, want)
    for x, tensor in zip(graph.outputs, tensors, strict=True):
        if x.name in targets:
            write_file(targets[x.name], encode_npy(tensor))
            print(f"Output {quoted(x.name)} written to '{targets[x.name]}'")
        else:
            # NumPy leaves out the middle of a long array.
            print(f"Output {quoted(x.name)}: {tensor.dtype} of shape {tensor.shape}\n{tensor}")
    return DONE if passed else CHECK_FAILED


def _targets(path: str, graph: BitGraph, outputs: Sequence[str]) -> dict[str, Path]:
    """Return the files of the outputs by name. Raises ``OnnxError`` and ``BitlaneError``."""
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
    return targets


def _files(option: str, words: Sequence[str]) -> dict[str, Path]:
    """Return the files of ``words`` by name. Raises ``BitlaneError``."""
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


def _check(graph: BitGraph, got: Sequence[AnyArray], want: Sequence[AnyArray]) -> bool:
    """Print the comparison of each output with the golden model; return whether all are equal."""
    passed = True
    for x, left, right in zip(graph.outputs, got, want, strict=True):
        comparison = compare(left, right)
        passed = passed and not comparison.different
        print(f"Check {quoted(x.name)}: {comparison}")
    return passed
