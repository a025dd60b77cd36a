"""The VCD file of a compiled circuit.

Signals have their names and submodules. A clock cycle is 1 us.
"""

import ctypes
import io
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from ..cpp import BitField
from ..errors import SimulationError
from ..native import InstanceHandle
from ..netlist import from_words
from . import Areas, Variable, Waves


class Waveform:
    """Writes the signals of the model at address ``model`` to the file ``path``.

    ``calls`` is the library of the model. ``shown`` has the widths of the signals by name, in the
    order of the model's words.
    """

    def __init__(
        self, calls: ctypes.CDLL, model: int, shown: Mapping[str, int], path: Path
    ) -> None:
        from vcd.writer import VCDWriter  # only here: pyvcd takes 10 ms

        self._file = path.open("w", encoding="utf-8")
        # In memory first: a full disk is an error of `close`.
        text = io.StringIO()
        header = VCDWriter(text, timescale="1 fs", date="")
        variables, declared, word = [], [], 0
        for name, width in shown.items():
            fields = [
                BitField(word + low // 64, 0, low, min(64, width - low))
                for low in range(0, width, 64)
            ]
            word += len(fields)
            *scope, last = name.split(".")
            label = f"{last} [{width - 1}:0]" if width > 1 else last
            declared.append(header.register_var(("top", *scope), label, "wire", width, 0))
            variables.append(Variable(declared[-1].ident, width, fields))
        address = calls.model_shown(model)
        words = (ctypes.c_uint64 * max(1, word)).from_address(address)
        areas = Areas()
        areas.add(memoryview(words).cast("B"))
        settle = ctypes.cast(calls.model_settle, ctypes.c_void_p)
        handle = InstanceHandle(model, address, None, settle)
        self._waves = Waves(handle, areas, variables, self._file)
        self._waves.note()
        for known, variable in zip(declared, variables, strict=True):
            header.change(known, 0, from_words(words[field.word] for field in variable.fields))
        header.flush()
        self._file.write(text.getvalue())
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
