"""Evaluate a netlist of gates: tables handed to compiled code, so that none is compiled for it."""

import ctypes
import functools
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from cppsim.errors import SimulationError

from .model import Entry, PinModel
from .netlist import LUT, FlippedRow, Netlist
from .peer import compile_library

__all__ = ["COPIES", "GateModel"]

COPIES = 63
"""Most flipped copies of a netlist that run beside it."""

_TABLES = {"lut": "luts", "flip_flop": "flip_flops", "port": "ports", "wire": "wires"}
_FLIP = np.dtype([("lut", np.uint32), ("row", np.uint32), ("whole", LUT)])


class _Netlist(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_uint32) for name in ("signals", *_TABLES.values(), "flips", "memories")),
        *((name, ctypes.c_void_p) for name in (*_TABLES, "flip", "contents")),
        ("content_bits", ctypes.c_uint64),
        ("bases", ctypes.c_void_p),
    )


class GateModel(PinModel):
    """A ``Netlist``, evaluated where it changes.

    A cycle in which little moves costs little, whatever the netlist's size.

    ``hidden`` is what the netlist's source does not tell. For each of ``flips``, up to ``COPIES``,
    a copy of the netlist with this row flipped gets the same inputs; see ``apart``.

    Raises ``SimulationError`` if there is no C++ compiler.
    """

    def __init__(
        self,
        netlist: Netlist,
        description: str,
        hidden: tuple[str, ...] = (),
        flips: Sequence[FlippedRow] = (),
    ) -> None:
        if len(flips) > COPIES:
            raise ValueError(f"flips: {len(flips)}; expected up to {COPIES}")
        self.netlist = netlist
        self.description = description
        self.hidden = hidden
        self._signals = {**netlist.inputs, **netlist.outputs}
        self._calls = _load()
        tables: dict[str, NDArray[np.void]] = {
            name: np.ascontiguousarray(getattr(netlist, field)) for name, field in _TABLES.items()
        }
        flipped = _table_of(netlist, flips)
        arguments = _Netlist(
            signals=netlist.signals,
            **{field: tables[name].size for name, field in _TABLES.items()},
            **{name: table.ctypes.data for name, table in tables.items()},
            flips=flipped.size,
            flip=flipped.ctypes.data,
            memories=netlist.bases.size,
            contents=netlist.contents.ctypes.data,
            content_bits=netlist.contents.size,
            bases=netlist.bases.ctypes.data,
        )
        self._gates: int | None = self._calls.gates_create(ctypes.byref(arguments))
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
            raise ValueError(f"{port} is no input")
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

    @property
    def apart(self) -> frozenset[int]:
        """Numbers of ``flips`` that have shown: at the pin that a simulation listens to some cycle
        was another one than without the flip, or at any after ``watch_pins``; or a loop of LUTs did
        not come to rest.

        May be asked for after ``close``.
        """
        if self._gates is None:
            return self._apart
        copies: int = self._calls.gates_apart(self._gates)
        return frozenset(number for number in range(COPIES) if copies >> number + 1 & 1)

    def watch_pins(self) -> None:
        """Let every output count for ``apart``."""
        for signals in self.netlist.outputs.values():
            for signal in signals:
                self._calls.gates_watch(self._handle, signal)

    def watch_rows(self) -> None:
        """From now on see in every cycle which row of its table each LUT's inputs choose."""
        self._calls.gates_watch_rows(self._handle)

    @property
    def chosen(self) -> NDArray[np.uint16]:
        """Of each LUT of the netlist: the bits of the rows chosen since ``watch_rows``."""
        rows = np.empty(self.netlist.luts.size, np.uint16)
        ctypes.memmove(rows.ctypes.data, self._calls.gates_chosen(self._handle), rows.nbytes)
        return rows

    def trouble(self) -> SimulationError:
        return SimulationError(f"{self.description}: LUTs in a loop do not come to rest")

    def close(self) -> None:
        if self._gates is not None:
            self._apart = self.apart
            self._calls.gates_destroy(self._gates)
            self._gates = None

    def __del__(self) -> None:
        if getattr(self, "_gates", None) is not None:
            self.close()

    @property
    def _handle(self) -> int:
        if self._gates is None:
            raise SimulationError(f"{self.description}: the model is closed")
        return self._gates


def _table_of(netlist: Netlist, flips: Sequence[FlippedRow]) -> NDArray[np.void]:
    table = np.zeros(len(flips), _FLIP)
    for entry, flip in zip(table, flips, strict=True):
        entry["lut"], entry["whole"], entry["row"] = flip.place(netlist), flip.lut(), flip.row
    return table


@functools.cache
def _load() -> ctypes.CDLL:
    calls = ctypes.CDLL(str(compile_library("gates.cc")))
    pointer, number = ctypes.c_void_p, ctypes.c_uint32
    calls.gates_create.restype, calls.gates_create.argtypes = pointer, [pointer]
    calls.gates_destroy.restype, calls.gates_destroy.argtypes = None, [pointer]
    calls.gates_input.restype, calls.gates_input.argtypes = None, [pointer, number]
    calls.gates_address.restype = ctypes.POINTER(ctypes.c_uint8)
    calls.gates_address.argtypes = [pointer, number]
    calls.gates_watch.restype, calls.gates_watch.argtypes = None, [pointer, number]
    calls.gates_watch_rows.restype, calls.gates_watch_rows.argtypes = None, [pointer]
    calls.gates_chosen.restype, calls.gates_chosen.argtypes = pointer, [pointer]
    calls.gates_apart.restype, calls.gates_apart.argtypes = ctypes.c_uint64, [pointer]
    calls.gates_get.restype, calls.gates_get.argtypes = ctypes.c_int, [pointer, number]
    return calls
