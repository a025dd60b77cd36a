"""The VCD file of a compiled circuit.

Signals have their names and submodules. A clock cycle is 1 us.
"""

import ctypes
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import groupby
from pathlib import Path

from ..cpp.words import WordPlace
from ..errors import SimulationError
from ..native import ModelHandle
from ..native.waves import Areas, Variable, Waves

_DIGITS = range(0x21, 0x7F)
"""Characters of identifiers in a VCD file (IEEE 1364-2005, 18.2.1)."""

_Paths = list[tuple[tuple[str, ...], "_Entry"]]
_Entry = tuple[str, int]
"""The identifier of a variable, and its bits."""


class Waveform:
    """Writes the signals of the model at address ``model`` to the file ``path``.

    ``calls`` is the library of the model. ``shown`` has the widths of the signals by name, in the
    order of the model's words.
    """

    def __init__(
        self, calls: ctypes.CDLL, model: int, shown: Mapping[str, int], path: Path
    ) -> None:
        self._file = path.open("w", encoding="utf-8")
        codes = {name: _code(number) for number, name in enumerate(shown)}
        self._file.writelines(_header({x: (codes[x], width) for x, width in shown.items()}))
        variables, word = [], 0
        for name, width in shown.items():
            places = [
                WordPlace(word + low // 64, 0, low, min(64, width - low))
                for low in range(0, width, 64)
            ]
            word += len(places)
            variables.append(Variable(codes[name], width, places))
        address = calls.model_shown(model)
        areas = Areas()
        areas.add(memoryview((ctypes.c_uint64 * max(1, word)).from_address(address)).cast("B"))
        settle = ctypes.cast(calls.model_settle, ctypes.c_void_p)
        handle = ModelHandle(model, address, None, settle)
        self._waves = Waves(handle, areas, variables, self._file)
        self._waves.sample(0)
        calls.model_waves(model, self._waves.handle, self._waves.take)
        self._end: Callable[[], object] = partial(calls.model_waves, model, None, None)

    def close(self) -> None:
        """Finish the file. Raises ``SimulationError`` if it could not be written."""
        try:
            with self._file:
                self._end()
                whole = self._waves.flush()
        except OSError as error:
            raise SimulationError("the waveform file could not be written") from error
        if not whole:
            raise SimulationError("the waveform file could not be written")


def _code(number: int) -> str:
    """A short identifier."""
    text = ""
    while True:
        number, digit = divmod(number, len(_DIGITS))
        text += chr(_DIGITS[digit])
        if not number:
            return text


def _header(entries: Mapping[str, _Entry]) -> Iterator[str]:
    yield "$timescale 1 fs $end\n$scope module top $end\n"
    yield from _scope([(tuple(name.split(".")), entry) for name, entry in entries.items()])
    yield "$upscope $end\n$enddefinitions $end\n"


def _scope(paths: _Paths) -> Iterator[str]:
    """Signals by their paths within a submodule, sorted."""
    for name, group in groupby(sorted(paths), lambda item: item[0][0]):
        inner: _Paths = []
        for path, (code, width) in group:
            if len(path) > 1:
                inner.append((path[1:], (code, width)))
            else:
                size = f" [{width - 1}:0]" if width > 1 else ""
                yield f"$var wire {width} {code} {name}{size} $end\n"
        if inner:
            yield f"$scope module {name} $end\n"
            yield from _scope(inner)
            yield "$upscope $end\n"
