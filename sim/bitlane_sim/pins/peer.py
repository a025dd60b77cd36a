"""The compiled other end of a UART, called from Python: bytes in, bytes and their cycles out."""

import ctypes
import functools
import hashlib
from dataclasses import dataclass
from enum import IntEnum
from importlib.resources import files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cppsim.compiling.flags import LIBRARY
from cppsim.errors import SimulationError

from ..builds import CACHE, find_compiler
from .model import Entry

__all__ = ["Stop", "UartPeer", "compile_library"]

_PACKAGE = "bitlane_sim.pins"
_FLAGS = (*LIBRARY, "-O2")


class Stop(IntEnum):
    """Why a run ended."""

    BROKEN = -1
    CYCLES = 0
    RECEIVED = 1
    QUIET = 2


class _Model(ctypes.Structure):
    _fields_ = (
        ("model", ctypes.c_void_p),
        ("run_until", ctypes.c_void_p),
        ("tx", ctypes.c_size_t),
        ("rx", ctypes.c_void_p),
        ("busy", ctypes.c_void_p),
    )


@dataclass(frozen=True, slots=True)
class Pins:
    """Names of the ports at which a UART is connected; ``busy`` may be empty."""

    rx: str = "rx"
    tx: str = "tx"
    busy: str = "busy"


class UartPeer:
    """A UART whose bits are ``bit`` cycles long, at the pins of the model behind ``entry``.

    Raises ``SimulationError`` if there is no C++ compiler, and from all but ``close`` once it is
    closed.
    """

    def __init__(self, entry: Entry, pins: Pins, bit: float) -> None:
        self._calls = _load()
        model = _Model(
            model=entry.model,
            run_until=entry.run_until,
            tx=entry.numbers[pins.tx],
            rx=entry.addresses[pins.rx],
            busy=entry.addresses[pins.busy] if pins.busy else None,
        )
        self._peer: int | None = self._calls.peer_create(ctypes.byref(model), bit)

    @property
    def cycle(self) -> int:
        """Clock edges so far."""
        return int(self._calls.peer_cycle(self._handle))

    @property
    def unsent(self) -> int:
        """Bytes whose start bit has not begun."""
        return int(self._calls.peer_unsent(self._handle))

    @property
    def arrived(self) -> int:
        """Bytes that ``take`` would give."""
        return int(self._calls.peer_arrived(self._handle))

    @property
    def framing_errors(self) -> int:
        """Stop bits that were low, so far."""
        return int(self._calls.peer_framing_errors(self._handle))

    @property
    def glitches(self) -> int:
        """Times that the line was low for less than half a bit, so far."""
        return int(self._calls.peer_glitches(self._handle))

    def set_bit(self, bit: float) -> None:
        """Let bits be ``bit`` cycles long from now on."""
        self._calls.peer_set_bit(self._handle, bit)

    def send(self, data: bytes) -> None:
        """Queue bytes to be sent one right behind the other."""
        self._calls.peer_send(self._handle, data, len(data))

    def take(self, most: int) -> tuple[NDArray[np.uint8], NDArray[np.uint64]]:
        """Up to ``most`` bytes that arrived, and the cycle in the middle of each one's stop bit."""
        count = min(most, self.arrived)
        data, cycles = np.empty(count, np.uint8), np.empty(count, np.uint64)
        self._calls.peer_take(self._handle, count, data.ctypes.data, cycles.ctypes.data)
        return data, cycles

    def run(self, cycles: int, received: int = 0, quiet: int = 0) -> Stop:
        """Clock up to ``cycles`` times; less if ``received`` bytes have come and were not taken,
        or if nothing has moved on either line, with ``busy`` low, for ``quiet`` cycles."""
        return Stop(self._calls.peer_run(self._handle, cycles, received, quiet))

    def close(self) -> None:
        """Free it; the model is left alone. May be called twice."""
        if self._peer is not None:
            self._calls.peer_destroy(self._peer)
            self._peer = None

    @property
    def _handle(self) -> int:
        if self._peer is None:
            raise SimulationError("the simulation is closed")
        return self._peer


def compile_library(source: str) -> Path:
    """The shared library of ``source``, a C++ file of this package, built once for all."""
    compiler = find_compiler()
    path = Path(str(files(_PACKAGE) / source))
    parts = (path.read_text(encoding="utf-8"), *compiler.command, compiler.version, *_FLAGS)
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
    name = f"{path.stem}.so"

    def build(folder: Path) -> None:
        compiler.run([*_FLAGS, "-o", str(folder / name), str(path)])

    return CACHE.cached("pins", key, build) / name


@functools.cache
def _load() -> ctypes.CDLL:
    calls = ctypes.CDLL(str(compile_library("peer.cc")))
    pointer, size, number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint64
    signatures: dict[str, tuple[object, list[object]]] = {
        "peer_create": (pointer, [pointer, ctypes.c_double]),
        "peer_destroy": (None, [pointer]),
        "peer_set_bit": (None, [pointer, ctypes.c_double]),
        "peer_send": (None, [pointer, ctypes.c_char_p, size]),
        "peer_unsent": (size, [pointer]),
        "peer_arrived": (size, [pointer]),
        "peer_take": (None, [pointer, size, pointer, pointer]),
        "peer_cycle": (number, [pointer]),
        "peer_framing_errors": (number, [pointer]),
        "peer_glitches": (number, [pointer]),
        "peer_run": (ctypes.c_int, [pointer, number, number, number]),
    }
    for name, (result, arguments) in signatures.items():
        call = getattr(calls, name)
        call.restype, call.argtypes = result, arguments
    return calls
