"""`bitlane run MODEL.onnx`: executes a graph of ONNX's bit operators on arrays from files."""

from collections.abc import Mapping, Sequence
from os.path import realpath
from pathlib import Path

import numpy as np

from .._typing import AnyArray
from ..api import open_device
from ..errors import BitlaneError, NpyError
from ..files import expected_instead
from ..model_file import busy_cycles, compare, measure
from ..model_file.images import encode_npy, write_file
from ..npy import read_npy
from ..onnx import OnnxError, PreparedGraph, load
from ..onnx.cut import cut_model
from ..onnx.golden import reference_group
from ..onnx.model import BitGraph, RestGroup, quoted
from ..onnx.parse import read_model
from ..onnx.prepared import load_rest
from ..onnx.rest import expect_rest
from ..onnx.values import RunValues
from ..onnx.whole import WholeModel
from .cli import CHECK_FAILED, DONE


def run_onnx(
    path: str,
    url: str,
    inputs: Sequence[str],
    outputs: Sequence[str],
    *,
    rest: str | None = None,
    check: bool = True,
) -> int:
    """Run the model ``path`` on the device ``url``; return the exit code.

    ``inputs`` and ``outputs``: NAME=FILE.npy. Outputs without a file are printed. ``rest``: the
    backend of the nodes that the device lacks; its results are not checked. Raises ``OnnxError``
    and ``BitlaneError`` for a wrong model, name or file before the device is opened.
    """
    model = load(path)
    expect_rest(rest)
    try:
        whole = read_model(model, binary=rest is not None)
        graph = cut_model(whole, rest)
        models = load_rest(graph, rest)
    except OnnxError as error:
        raise type(error)(f"{path}: {error}") from error
    targets = _targets(path, graph, outputs)
    arrays = {name: _read(file) for name, file in _files("--input", inputs).items()}
    graph.bind(arrays, {})
    with open_device(url) as device:
        prepared = PreparedGraph(graph, device, models)
        print(f"Running on '{device.description}'", flush=True)
        print(prepared.explain(arrays))
        run = _Run(prepared, arrays)
        timing = measure(run.compute, busy_cycles(device.driver))
        print(f"Graph {quoted(graph.name)}: {timing}")
        if predicted := device.driver.link.prediction:
            print(predicted)
        passed = not check or _check(whole, run)
        tensors = [run.host(x.name) for x in graph.outputs]
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


class _Run:
    """One run of ``prepared`` on ``inputs``, and all values of it."""

    def __init__(self, prepared: PreparedGraph, inputs: Mapping[str, AnyArray]) -> None:
        self.graph = prepared.graph
        self._prepared = prepared
        self._inputs = inputs
        self._values: RunValues | None = None

    def compute(self) -> None:
        """Compute all outputs on the device, and leave them there."""
        self._values = self._prepared.compute(self._inputs)
        self._values.settle()

    def host(self, name: str) -> AnyArray:
        """Return a value, once all are computed."""
        assert self._values is not None
        return np.asarray(self._values.host(name))


def _check(whole: WholeModel, run: _Run) -> bool:
    """Print the comparison of each group's outputs with the golden model; return if all are equal.

    The golden model gets the group's inputs as another backend has computed them.
    """
    passed = True
    for group in run.graph.groups:
        if isinstance(group, RestGroup):
            names = ", ".join(map(quoted, group.outputs))
            print(f"Not checked: {names} of another backend")
            continue
        given = {name: run.host(name) for name in group.inputs}
        wanted = reference_group(whole.proto, group, given)
        for name, right in zip(group.outputs, wanted, strict=True):
            comparison = compare(run.host(name), right)
            passed = passed and not comparison.different
            print(f"Check {quoted(name)}: {comparison}")
    return passed
