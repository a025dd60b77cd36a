"""Other backends, for the nodes that the device lacks: named by the user, never chosen.

A backend is loaded when a model needs it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, Protocol, TypeAlias

import numpy as np
from onnx.reference import ReferenceEvaluator

from ..arguments.operands import as_zeros_and_ones
from ..errors import OnnxError, OnnxMissingError, SettingError
from ..installation import how_to_install
from ..text import printable
from .golden import BitCast
from .inference import one_line
from .model import HostValue, RestGroup, quoted

Compute: TypeAlias = Callable[[Mapping[str, HostValue]], Sequence[HostValue]]
"""Returns the outputs of a model for its inputs by name."""


class _Load(Protocol):
    """Makes the function that computes a model, as ONNX writes it, whose outputs have names."""

    def __call__(self, content: bytes, outputs: Sequence[str]) -> Compute: ...


def _load_onnxruntime(content: bytes, outputs: Sequence[str]) -> Compute:
    try:
        import onnxruntime
    except ModuleNotFoundError as error:
        raise OnnxMissingError(
            f"rest: 'onnxruntime' needs the Python package {error.name}, which is not installed:"
            f" {how_to_install('onnxruntime')} brings it"
        ) from error
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # its errors are raised, too
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])

    def compute(inputs: Mapping[str, HostValue]) -> Sequence[HostValue]:
        results: Any = session.run(list(outputs), dict(inputs))
        return list(results)

    return compute


def _load_reference(content: bytes, outputs: Sequence[str]) -> Compute:
    evaluator = ReferenceEvaluator(content, new_ops=[BitCast])

    def compute(inputs: Mapping[str, HostValue]) -> Sequence[HostValue]:
        results: Any = evaluator.run(list(outputs), dict(inputs))
        # Some are views of the model's constants, which later runs read.
        return [x.copy() if isinstance(x, np.ndarray) else x for x in results]

    return compute


_BACKENDS: Final[Mapping[str, _Load]] = {
    "onnxruntime": _load_onnxruntime,
    "reference": _load_reference,
}


def expect_rest(rest: object) -> str | None:
    """Return ``rest``, the name of a backend or None. Raises ``SettingError``."""
    if rest is None or (isinstance(rest, str) and rest in _BACKENDS):
        return rest
    names = " or ".join(map(repr, _BACKENDS))
    raise SettingError(f"rest: {printable(f'{rest!r:.40}')}; expected None, {names}")


class RestModel:
    """The model of a group, loaded by the backend ``rest``.

    Raises ``OnnxError`` if the backend refuses it, ``OnnxMissingError`` if it is not installed.
    """

    def __init__(self, group: RestGroup, rest: str) -> None:
        self.group = group
        self.rest = rest
        with _named(rest):
            self._compute = _BACKENDS[rest](group.content, group.outputs)

    def run(self, inputs: Mapping[str, HostValue]) -> dict[str, HostValue]:
        """Return the outputs by name. Raises ``OnnxError``, also for results of other types."""
        given = {name: plain(x) for name, x in inputs.items()}
        with _named(self.rest):
            results = self._compute(given)
        found = dict(zip(self.group.outputs, results, strict=True))
        for name, dtype in self.group.types.items():
            x = np.asarray(found[name])
            if x.dtype != dtype:
                raise OnnxError(
                    f"rest {self.rest!r}: value {quoted(name)}: {x.dtype}; expected {dtype}, as"
                    " ONNX infers"
                )
            found[name] = x
        return _apart(found, given.values())


def _apart(found: dict[str, HostValue], given: Iterable[HostValue]) -> dict[str, HostValue]:
    """Return results that share no memory with the inputs, nor with each other."""
    known = [x for x in given if isinstance(x, np.ndarray)]
    for name, x in found.items():
        if isinstance(x, np.ndarray):
            if any(np.may_share_memory(x, other) for other in known):
                found[name] = x = x.copy()
            known.append(x)
    return found


@contextmanager
def _named(rest: str) -> Iterator[None]:
    """Raise an error of the backend as ``OnnxError`` that names it: each has classes of its own."""
    try:
        yield
    except (OnnxError, OnnxMissingError):
        raise
    except Exception as error:
        raise OnnxError(f"rest {rest!r}: {one_line(error)}") from error


def plain(x: HostValue) -> HostValue:
    """Return ``x`` with booleans of the bytes 0 and 1, in this machine's byte order."""
    if not isinstance(x, np.ndarray):
        return x
    if x.dtype.kind == "b":
        return as_zeros_and_ones(x)
    return np.ascontiguousarray(x, x.dtype.newbyteorder("=")).reshape(x.shape)
