"""`bitlane check MODEL.onnx`: lists the nodes that the device lacks, and the groups of a model."""

from ..onnx import OnnxError, load
from ..onnx.cut import cut_model
from ..onnx.parse import read_model
from ..onnx.picture import list_groups
from ..onnx.rest import expect_rest
from ..onnx.whole import OTHERWISE
from ..text import printable
from .cli import DONE, report_error


def check_onnx(path: str, rest: str | None) -> int:
    """Check the model ``path``; ``rest`` may compute what the device lacks. Return the exit code.

    Prints the groups. Without ``rest``, reports each node that the device lacks; the last line
    names the option that computes them. Raises ``OnnxError`` for the last error, ``OSError`` if
    the file cannot be read, and ``SettingError``.
    """
    expect_rest(rest)
    model = load(path)
    try:
        whole = read_model(model, binary=rest is not None)
        errors = [] if whole.error is None else [whole.error]
        if rest is None and whole.lacking:
            errors += [OnnxError(node.reason) for node in whole.lacking]
            errors[-1] = OnnxError(f"{errors[-1]}; {OTHERWISE}")
        for error in errors[:-1]:
            report_error(OnnxError(f"{path}: {error}"))
        if errors:
            raise errors[-1]
        graph = cut_model(whole, rest)
    except OnnxError as error:
        raise type(error)(f"{path}: {error}") from error
    if graph.groups:
        print(list_groups(graph, rest))
    counts = f"{_count(len(whole.nodes), 'node')}, {_count(len(graph.groups), 'group')}"
    print(f"{printable(path)}: {counts}: nothing is wrong")
    return DONE


def _count(number: int, name: str) -> str:
    return f"{number} {name}{'s' * (number != 1)}"
