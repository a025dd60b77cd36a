"""Evaluate a netlist of gates: tables handed to compiled code, so that none is compiled for it."""

import ctypes
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cppsim.compiling.library import Signatures
from cppsim.errors import SimulationError

from .model import POINTER, Entry, PinModel, load
from .netlist import Netlist

_TABLES = {"lut": "luts", "flip_flop": "flip_flops", "port": "ports", "wire": "wires"}


_SOURCE = Path(__file__).with_name("gates.cc")
_NUMBER = ctypes.c_uint32

SIGNATURES: Signatures = {
    "gates_create": (POINTER, [POINTER]),
    "gates_destroy": (None, [POINTER]),
    "gates_input": (None, [POINTER, _NUMBER]),
    "gates_address": (ctypes.POINTER(ctypes.c_uint8), [POINTER, _NUMBER]),
    "gates_watch_rows": (None, [POINTER]),
    "gates_chosen": (POINTER, [POINTER]),
    "gates_get": (ctypes.c_int, [POINTER, _NUMBER]),
}
"""Functions of an evaluator of netlists."""


class _Netlist(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_uint32) for name in ("signals", *_TABLES.values(), "memories")),
        *((name, ctypes.c_void_p) for name in (*_TABLES, "contents")),
        ("content_bits", ctypes.c_uint64),
        ("bases", ctypes.c_void_p),
    )


class GateModel(PinModel):
    """A ``Netlist``, evaluated where it changes.

    A cycle in which little moves costs little, whatever the netlist's size.

    ``hidden`` lists what the netlist's source does not say.

    Raises ``SimulationError`` if there is no C++ compiler.
    """

    def __init__(self, netlist: Netlist, description: str, hidden: tuple[str, ...] = ()) -> None:
        self.netlist = netlist
        self.description = description
        self.hidden = hidden
        self._signals = {**netlist.inputs, **netlist.outputs}
        self._calls = self._load()
        tables: dict[str, NDArray[np.void]] = {
            name: np.ascontiguousarray(getattr(netlist, field)) for name, field in _TABLES.items()
        }
        arguments = _Netlist(
            signals=netlist.signals,
            **{field: tables[name].size for name, field in _TABLES.items()},
            **{name: table.ctypes.data for name, table in tables.items()},
            memories=netlist.bases.size,
            contents=netlist.contents.ctypes.data,
            content_bits=netlist.contents.size,
            bases=netlist.bases.ctypes.data,
        )
        self._gates: int | None = self._create(ctypes.addressof(arguments))
        for signals in netlist.inputs.values():
            for signal in signals:
                self._calls.gates_input(self._gates, signal)

    @property
    def ports(self) -> Mapping[str, int]:
        return {name: len(signals) for name, signals in self._signals.items()}

    def get(self, port: str) -> int:
        handle = self._handle
        return sum(
            self._calls.gates_get(handle, signal) << bit
            for bit, signal in enumerate(self._signals[port])
        )

    def set(self, port: str, value: int) -> None:
        signals = self._signals[port]
        if port not in self.netlist.inputs:
            raise ValueError(f"{port} is not an input")
        if not 0 <= value < 1 << len(signals):
            raise ValueError(f"{port}: {value} does not fit in {len(signals)} bits")
        for bit, signal in enumerate(signals):
            self._calls.gates_address(self._handle, signal)[0] = value >> bit & 1

    def entry(self) -> Entry:
        handle = self._handle
        addresses = {
            name: ctypes.addressof(self._calls.gates_address(handle, signals[0]).contents)
            for name, signals in self._signals.items()
        }
        run_until = ctypes.cast(self._calls.gates_run_until, ctypes.c_void_p).value or 0
        numbers = {name: signals[0] for name, signals in self._signals.items()}
        return Entry(handle, run_until, numbers, addresses)

    def watch_rows(self) -> None:
        """Record in every cycle from now on the row that each LUT looks up."""
        self._calls.gates_watch_rows(self._handle)

    @property
    def chosen(self) -> NDArray[np.uint16]:
        """The rows that each LUT looked up since ``watch_rows``, as a bit mask."""
        rows = np.empty(self.netlist.luts.size, np.uint16)
        ctypes.memmove(rows.ctypes.data, self._calls.gates_chosen(self._handle), rows.nbytes)
        return rows

    def trouble(self) -> SimulationError:
        return SimulationError(f"{self.description}: LUTs in a loop do not come to rest")

    def close(self) -> None:
        if self._gates is not None:
            self._calls.gates_destroy(self._gates)
            self._gates = None

    def __del__(self) -> None:
        if getattr(self, "_gates", None) is not None:
            self.close()

    def _load(self) -> ctypes.CDLL:
        return load(_SOURCE, SIGNATURES)

    def _create(self, netlist: int) -> int:
        """Return the evaluator of the structure at address ``netlist``."""
        handle: int = self._calls.gates_create(netlist)
        return handle

    @property
    def _handle(self) -> int:
        if self._gates is None:
            raise SimulationError(f"{self.description}: the model is closed")
        return self._gates
