"""One circuit as a compiled library, which runs whole programs without Python."""

import ctypes
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..compiling import Signatures, bind
from ..errors import SimulationError
from ..netlist import formatted, from_words, messages_of, to_words
from ..waveforms.model import Waveform
from .build import Library, build
from .interface import AnyModel, Elaborated, counted_cycles, fitting_value
from .ports import ByPort, PortValue, Words
from .program import Encoded, Port, Program
from .storage import Buffers, StoragePort, buffer_names

if TYPE_CHECKING:
    from amaranth.hdl import Elaboratable


_ADDRESS, _SIZE, _NUMBER = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint64

_SIGNATURES: Signatures = {
    "model_create": (_ADDRESS, ()),
    "model_destroy": (None, (_ADDRESS,)),
    "model_reset": (None, (_ADDRESS,)),
    "model_word": (_ADDRESS, (_ADDRESS, _SIZE)),
    "model_memory": (_ADDRESS, (_ADDRESS, _SIZE)),
    "model_buffer": (None, (_ADDRESS, _SIZE, _ADDRESS, _NUMBER)),
    "model_settle": (None, (_ADDRESS,)),
    "model_step": (ctypes.c_int, (_ADDRESS, _NUMBER)),
    "model_run_until": (ctypes.c_int, (_ADDRESS, _NUMBER, _NUMBER, _ADDRESS)),
    "model_run": (_NUMBER, (_ADDRESS, _ADDRESS, _NUMBER, _ADDRESS, _ADDRESS, ctypes.c_int)),
    "model_cycles": (_NUMBER, (_ADDRESS,)),
    "model_storage_fault": (_SIZE, (_ADDRESS,)),
    "model_messages": (_SIZE, (_ADDRESS, _ADDRESS)),
    "model_shown": (_ADDRESS, (_ADDRESS,)),
    "model_waves": (None, (_ADDRESS, _ADDRESS, _ADDRESS)),
}


_SLICE = 1 << 20
"""Most cycles of one call into compiled code; Python sees Ctrl-C between two calls."""
_PAUSED = (1 << 64) - 1
"""``PAUSED`` of ported.h: a program is to be resumed."""


class Model(AnyModel):
    """A circuit compiled to C++.

    Ctrl-C ends `step`, `until` and `run` within a million cycles.
    One thread at a time may use a model.

    Parameters
    ----------
    component
        An Amaranth component, or a circuit that is elaborated already.
    storage, buffers
        RAM outside the circuit: ports, and an array of bytes for each buffer.
    vcd
        The waveform file, if one is written. A model with waveforms is slower.
    build_with
        A function like `build`: for a library that another tool writes, or for another cache.

    Raises ``SimulationError`` for a missing compiler, for storage that does not fit the circuit,
    for a clock edge that is not the rising one, and for a combinational loop of words; and what
    Amaranth raises of a design. A component is elaborated once: a later change of it has no effect.

    Attributes
    ----------
    library : Library
        The compiled circuit.
    """

    name = "compiled"

    def __init__(
        self,
        component: "Elaborated | Elaboratable",
        *,
        storage: Sequence[StoragePort] = (),
        buffers: Buffers | None = None,
        vcd: str | Path | None = None,
        build_with: Callable[..., Library] = build,
    ) -> None:
        self._model: int | None = None
        self._waves: Waveform | None = None
        if vcd is not None:
            # A file that cannot be written fails before the long build.
            Path(vcd).write_bytes(b"")
        circuit = component if isinstance(component, Elaborated) else _circuit_of(component)
        super().__init__(circuit, storage, buffers)
        # As in an UNTIL: the first word, and 32 bits up the last.
        self._numbers = ByPort(
            (name, x.first | x.first + x.words - 1 << 32) for name, x in self.ports.items()
        )
        self.library: Library = build_with(circuit, self._storage, waveform=vcd is not None)
        self._prints = not all(message.failed for message in self.library.messages)
        self._failure = ""
        self._calls = bind(ctypes.CDLL(str(self.library.path)), _SIGNATURES)
        self._model = self._calls.model_create()
        contents = circuit.contents
        self._contents = [
            (number, x.content(contents[x.number]))
            for number, x in enumerate(self.library.memories)
            if any(contents[x.number])
        ]
        self._fill()
        for number, name in enumerate(buffer_names(self._storage)):
            array = self._buffers[name]
            self._calls.model_buffer(self._model, number, array.ctypes.data, array.size)
        self._values = ByPort[ctypes.Array[Any]]()
        for name, port in self.ports.items():
            pointer = self._calls.model_word(self._model, port.first)
            self._values[name] = (ctypes.c_uint64 * port.words).from_address(pointer)
        self._stale = True
        if vcd is not None:
            self._waves = Waveform(self._calls, self._handle, self.library.shown, Path(vcd))

    @property
    def cycles(self) -> int:
        return int(self._calls.model_cycles(self._handle))

    def set(self, port: Port, value: PortValue) -> None:
        if not isinstance(port, str):
            port = self._name_of(port)
        number = fitting_value(self.ports[port], value, self._shapes.get(port))
        data = self._data(port)
        self._stale = True
        if number < 0:
            number += 1 << self.widths[port]
        if len(data) == 1:
            data[0] = number
        else:
            data[:] = to_words(number, len(data))

    def get(self, port: Port) -> int:
        if not isinstance(port, str):
            port = self._name_of(port)
        data = self._data(port)
        if self._stale:
            self._calls.model_settle(self._handle)
            self._stale = False
        value = int(data[0]) if len(data) == 1 else from_words(data)
        if self.ports[port].signed and value >> self.widths[port] - 1:
            value -= 1 << self.widths[port]
        return value

    def step(self, cycles: int = 1) -> None:
        self._stale = True
        count = counted_cycles(cycles)
        while count > _SLICE:
            self.step(_SLICE)
            count -= _SLICE
        legal = self._calls.model_step(self._handle, count)
        if self._prints or not legal:
            self._take_messages()
        if not legal:
            raise self._trouble()

    def until(self, port: Port, limit: int) -> bool:
        if not isinstance(port, str):
            port = self._name_of(port)
        self._stale = True
        came = ctypes.c_int()
        number, most = self._numbers[port], counted_cycles(limit)
        while most > _SLICE:
            if self.until(port, _SLICE):
                return True
            most -= _SLICE
        legal = self._calls.model_run_until(self._handle, number, most, ctypes.byref(came))
        if self._prints or not legal:
            self._take_messages()
        if not legal:
            raise self._trouble()
        return bool(came.value)

    def _execute(
        self, program: Program, encoded: Encoded, columns: Sequence[int] | None = None
    ) -> Words:
        taken = np.array(encoded.input if columns is None else columns, np.uint64)
        results = np.zeros(encoded.columns, np.uint64)
        rows = encoded.instructions
        self._stale = True
        data = rows.ctypes.data, len(rows), taken.ctypes.data, results.ctypes.data
        done = self._calls.model_run(self._handle, *data, 0)
        while done == _PAUSED:
            done = self._calls.model_run(self._handle, *data, 1)
        if self._prints or done < len(rows):
            self._take_messages()
        if done < len(rows):
            raise self._trouble()
        return results

    def reset(self) -> None:
        self._calls.model_reset(self._handle)
        self._fill()
        self._failure = ""
        self._stale = True

    def _fill(self) -> None:
        """Copy in the rows of memories at power-on; in the library all are 0."""
        for number, content in self._contents:
            address = self._calls.model_memory(self._handle, number)
            ctypes.memmove(address, content, len(content))

    def close(self) -> None:
        model, self._model = self._model, None
        if model is None:
            return
        self._values.clear()
        try:
            if self._waves is not None:
                self._waves.close()
        finally:
            self._calls.model_destroy(model)

    def __del__(self) -> None:
        if getattr(self, "_model", None) is not None:
            # Python would print an exception here and continue.
            with suppress(SimulationError):
                self.close()

    def addresses(self) -> tuple[int, int, dict[str, int], dict[str, int]]:
        """Return addresses for compiled code that clocks the model itself.

        They are the address of the model, that of ``model_run_until``, and by name the number of
        each port for it and the address of its value. Read ports by ``probe`` then. The addresses
        are valid until ``close``.
        """
        handle = self._handle
        function = ctypes.cast(self._calls.model_run_until, ctypes.c_void_p).value or 0
        ports = {name: ctypes.addressof(data) for name, data in self._values.items()}
        return handle, function, dict(self._numbers), ports

    def probe(self, port: str) -> int:
        """Return ``get(port)`` after compiled code has clocked the model."""
        self._stale = True
        return self.get(port)

    def trouble(self) -> SimulationError:
        """Return the reason why ``model_run_until``, called by compiled code, failed."""
        self._take_messages()
        return self._trouble()

    @property
    def _handle(self) -> int:
        if self._model is None:
            raise SimulationError("the model is closed")
        return self._model

    def _data(self, port: str) -> "ctypes.Array[Any]":
        """Return the words of a port."""
        if self._model is None:
            raise SimulationError("the model is closed")
        return self._values[port]

    def _take_messages(self) -> None:
        """Print the messages of the model; store the first failed check."""
        first = ctypes.POINTER(ctypes.c_uint64)()
        count = self._calls.model_messages(self._handle, ctypes.byref(first))
        messages = self.library.messages
        for number, values in messages_of(first[:count], [x.sizes for x in messages]):
            message = messages[number]
            text = formatted(message.parts, values)
            if not message.failed:
                print(text, end="")
            elif not self._failure:
                self._failure = text

    def _trouble(self) -> SimulationError:
        """Return the reason why the driver stopped."""
        fault = self._calls.model_storage_fault(self._handle)
        if fault:
            port = self._storage[fault - 1]
            return SimulationError(f"storage port {port.data}: an access is past its buffer")
        return SimulationError(f"cycle {self.cycles}: {self._failure}")


def _circuit_of(component: "Elaboratable") -> Elaborated:
    from ..stand_ins import registered

    return _circuit(component, registered())


@lru_cache(maxsize=16)
def _circuit(component: "Elaboratable", _stand_ins: tuple[object, ...]) -> Elaborated:
    """Return one circuit for each component, so that its netlist is written once."""
    from .circuit import Circuit

    return Circuit(component)
