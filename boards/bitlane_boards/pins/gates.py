"""Evaluate a netlist of gates: tables handed to compiled code, so that none is compiled for it."""

import ctypes
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cppsim.build import Signatures
from cppsim.errors import SimulationError

from .model import POINTER, Entry, Native, PinModel, load
from .netlist import Netlist

_TABLES = {"lut": "luts", "flip_flop": "flip_flops", "port": "ports", "wire": "wires"}


_SOURCE = Path(__file__).with_name("gates.cc")
_NUMBER = ctypes.c_uint32

SIGNATURES: Signatures = {
    "gates_create": (POINTER, [POINTER]),
    "gates_destroy": (None, [POINTER]),
    "gates_input": (None, [POINTER, _NUMBER]),
    "gates_address": (ctypes.POINTER(ctypes.c_uint8), [POINTER, _NUMBER]),
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
        self._gates = self._created(f"{description}: the model is closed", arguments)
        for signals in netlist.inputs.values():
            for signal in signals:
                self._gates("input", signal)

    @property
    def ports(self) -> Mapping[str, int]:
        return {name: len(signals) for name, signals in self._signals.items()}

    def get(self, port: str) -> int:
        signals = self._signals[port]
        return sum(self._gates("get", signal) << bit for bit, signal in enumerate(signals))

    def set(self, port: str, value: int) -> None:
        signals = self._signals[port]
        if port not in self.netlist.inputs:
            raise ValueError(f"{port} is not an input")
        if not 0 <= value < 1 << len(signals):
            raise ValueError(f"{port}: {value} does not fit in {len(signals)} bits")
        for bit, signal in enumerate(signals):
            self._gates("address", signal)[0] = value >> bit & 1

    def entry(self) -> Entry:
        numbers = {name: signals[0] for name, signals in self._signals.items()}
        addresses = {
            name: ctypes.addressof(self._gates("address", signal).contents)
            for name, signal in numbers.items()
        }
        return Entry(self._gates.address, self._gates.function("run_until"), numbers, addresses)

    def trouble(self) -> SimulationError:
        return SimulationError(f"{self.description}: LUTs in a loop do not come to rest")

    def close(self) -> None:
        self._gates.close()

    def _created(self, gone: str, netlist: ctypes.Structure) -> Native:
        """Return the evaluator of ``netlist``; calls after its end raise an error, ``gone``."""
        return Native(load(_SOURCE, SIGNATURES), "gates", gone, ctypes.byref(netlist))
