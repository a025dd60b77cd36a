"""`bitlane lower MODEL.onnx`: prints the commands of each group, for inputs of given lengths."""

from collections.abc import Mapping, Sequence

from ..compiler import Expression
from ..compiler.listing import list_commands
from ..driver import Control, Geometry
from ..errors import BitlaneError
from ..links import open_link
from ..onnx import OnnxError, load
from ..onnx.cut import read_graph
from ..onnx.dry import run_dry
from ..onnx.model import BitTensor, quoted
from ..onnx.picture import draw_groups
from ..profile import command_text, geometry_text
from ..text import printable
from .cli import DONE


def lower_onnx(path: str, url: str, rest: str | None, lengths: Sequence[str]) -> int:
    """Print the commands of the model ``path`` for the device ``url``; return the exit code.

    ``rest`` names the backend of the nodes that the device lacks. ``lengths``: NAME=LENGTH of the
    axes that the model names. Raises ``OnnxError``, also for an axis without a length or a length
    without an axis, and ``BitlaneError``.
    """
    known, model = _lengths(lengths), load(path)
    try:
        graph = read_graph(model, rest)
        wanted = [x for x in graph.inputs if x.name not in graph.constants]
        shapes = {x.name: _shape(x, known) for x in wanted}
        _expect_axes(known, wanted)
    except OnnxError as error:
        raise type(error)(f"{path}: {error}") from error
    with open_link(url) as link:
        geometry = Control(link).geometry()

    def show(roots: Sequence[Expression]) -> str:
        return _listing(geometry, roots)

    print(geometry_text(geometry))
    print(draw_groups(run_dry(graph, geometry, shapes), rest, show))
    return DONE


def _listing(geometry: Geometry, roots: Sequence[Expression]) -> str:
    lines = []
    for run in list_commands(geometry.abilities, roots, geometry.memory_base):
        lines += [command_text(command, number) for number, command in enumerate(run)]
    return "\n".join(lines)


def _lengths(words: Sequence[str]) -> dict[str, int]:
    """Return the lengths of ``words`` by name. Raises ``BitlaneError``."""
    found: dict[str, int] = {}
    for word in words:
        name, joint, length = word.partition("=")
        if not (name and joint and length.isascii() and length.isdigit()):
            raise BitlaneError(f"--length {word}: expected NAME=LENGTH")
        if name in found:
            raise BitlaneError(f"--length {word}: {name} is there already; expected it once")
        found[name] = int(length)
    return found


def _expect_axes(lengths: Mapping[str, int], inputs: Sequence[BitTensor]) -> None:
    """Raise ``OnnxError`` for a name in ``lengths`` that no axis of ``inputs`` has."""
    axes = dict.fromkeys(axis for x in inputs for axis in x.shape or () if isinstance(axis, str))
    for name in lengths:
        if name not in axes:
            names = ", ".join(map(quoted, axes)) or "none"
            raise OnnxError(f"--length: no axis of an input is {quoted(name)}; expected {names}")


def _shape(x: BitTensor, lengths: Mapping[str, int]) -> tuple[int, ...]:
    """Return the shape of an input. Raises ``OnnxError`` for an axis without a length."""
    if x.shape is None:
        raise OnnxError(f"input {quoted(x.name)}: any shape; expected one in the model")
    shape = []
    for axis in x.shape:
        length = lengths.get(axis) if isinstance(axis, str) else axis
        if length is None:
            name = printable(str(axis or ""))
            option = f" (--length {name}=LENGTH)" if name else " in the model"
            raise OnnxError(
                f"input {quoted(x.name)}: {x}, without a length of {name or 'an axis'}; expected"
                f" one{option}"
            )
        shape.append(length)
    return tuple(shape)
