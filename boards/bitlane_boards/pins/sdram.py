"""A simulated SDRAM chip, alone or at the pins of a model. Its rules stand in ``sdram.cc``."""

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from amaranth.hdl import Module, Shape, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from numpy.typing import NDArray

from bitlane_rtl.bus import SdramPins
from bitlane_rtl.sdram_part import SdramPart
from cppsim.build import Signatures
from cppsim.errors import SimulationError

from .model import POINTER, Entry, Native, PinModel, load

_SOURCE = Path(__file__).with_name("sdram.cc")
_SIGNATURES: Signatures = {
    "sdram_create": (POINTER, [POINTER, POINTER]),
    "sdram_destroy": (None, [POINTER]),
    "sdram_edge": (None, [POINTER, POINTER]),
    "sdram_level": (ctypes.c_uint32, [POINTER]),
    "sdram_message": (ctypes.c_char_p, [POINTER]),
    "sdram_counts": (None, [POINTER, POINTER]),
    "sdram_run_until": (ctypes.c_int, [POINTER, ctypes.c_size_t, ctypes.c_uint64, POINTER]),
}

_LATENCIES = 4


_SIZES = ("width", "masks", "row_bits", "column_bits", "bank_bits", "first_refreshes")
_TIMES = (
    *("activate_to_access", "precharge", "active", "longest_active", "row_cycle"),
    *("refresh_cycle", "activate_to_activate", "write_recovery", "mode_cycle"),
    *("retention", "pause"),
)


class _Part(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_uint32) for name in _SIZES),
        *((name, ctypes.c_double) for name in ("period", *_TIMES)),
        ("clocks", ctypes.c_double * _LATENCIES),
    )


class _Levels(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_uint32) for name in ("command", "bank", "address", "mask", "o", "oe")
    )


class _Board(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_void_p) for name in ("chip", "model", "run_until", "outputs", "inputs")
    )


@dataclass(frozen=True, slots=True)
class ChipCounts:
    """Counters of a chip: clock edges, words, commands, violations, and rows that lost their data
    because they were not refreshed in time."""

    edges: int
    words_read: int
    words_written: int
    activates: int
    refreshes: int
    faults: int
    lost_rows: int


class SdramChip:
    """A chip of type ``part`` on a clock of ``clock_hz``, just powered up and full of zeros.

    Raises ``SimulationError`` if there is no C++ compiler.

    Attributes
    ----------
    words
        What it holds, a word in each element, by bank, row and column.
    native : Native
        The chip, for compiled code.
    """

    def __init__(self, part: SdramPart, clock_hz: float) -> None:
        self.part = part
        known = {name: getattr(part, name) for name in (*_SIZES, *_TIMES)}
        clocks = (part.clocks.get(latency, 0) for latency in range(_LATENCIES))
        arguments = _Part(**known, period=1e9 / clock_hz)
        arguments.clocks[:] = list(clocks)
        shape = (1 << part.bank_bits, 1 << part.row_bits, 1 << part.column_bits)
        self.words: NDArray[np.uint32] = np.zeros(shape, np.uint32)
        of = ctypes.byref(arguments), self.words.ctypes.data
        self.native = Native(load(_SOURCE, _SIGNATURES), "sdram", "the chip is gone", *of)

    @property
    def level(self) -> int:
        """Level of the data lines at the next edge, unless the controller drives them."""
        return int(self.native("level"))

    def edge(self, command: int, bank: int, address: int, mask: int, o: int, oe: int) -> None:
        """A clock edge, with this at the pins; ``mask`` is 0 if the part has no masks."""
        levels = _Levels(command, bank, address, mask, o, oe)
        self.native("edge", ctypes.byref(levels))

    @property
    def trouble(self) -> str:
        """The first rule that was broken: its name, and how; empty if none was."""
        message: bytes = self.native("message")
        return message.decode()

    @property
    def counts(self) -> ChipCounts:
        values = (ctypes.c_uint64 * len(fields(ChipCounts)))()
        self.native("counts", values)
        return ChipCounts(*values)

    def close(self) -> None:
        """Free it. May be called twice."""
        self.native.close()


def pin_names(part: SdramPart, prefix: str) -> tuple[list[str], list[str]]:
    """Names of a model's pins, bit by bit: of those towards the chip, and of those from it."""
    members: Mapping[str, Any] = SdramPins(part).members
    outputs: list[str] = []
    inputs: list[str] = []
    for name, member in members.items():
        names = [f"{prefix}_{name}_{bit}" for bit in range(Shape.cast(member.shape).width)]
        (inputs if member.flow is In else outputs).extend(names)
    return outputs, inputs


class SplitPins(wiring.Component):
    """``component`` with each bit of its member ``name``, of `SdramPins`, a port of its own.

    Only ports of one bit show after an edge what they were before it.
    """

    def __init__(self, component: wiring.Component, name: str = "sdram") -> None:
        self._component: Any = component
        self._name = name
        pins: Any = getattr(component, name)
        members: dict[str, Any] = dict(component.signature.members)
        del members[name]
        for pin, member in pins.signature.members.items():
            for bit in range(len(Value.cast(getattr(pins, pin)))):
                members[f"{name}_{pin}_{bit}"] = (In if member.flow is In else Out)(1)
        super().__init__(members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.component = component = self._component
        name, pins = self._name, getattr(component, self._name)
        for member in component.signature.members:
            if member == name:
                continue
            ours, theirs = getattr(self, member), getattr(component, member)
            if isinstance(ours, Value):
                into = component.signature.members[member].flow is In
                m.d.comb += theirs.eq(ours) if into else ours.eq(theirs)
            else:
                wiring.connect(m, wiring.flipped(ours), theirs)
        for pin, member in pins.signature.members.items():
            for bit, theirs in enumerate(getattr(pins, pin)):
                ours = getattr(self, f"{name}_{pin}_{bit}")
                m.d.comb += theirs.eq(ours) if member.flow is In else ours.eq(theirs)
        return m


class SdramModel(PinModel):
    """A model with a chip at its pins, which are called as `pin_names` says of ``prefix``.

    Attributes
    ----------
    chip : SdramChip

    The model is then its own. Clocked by compiled code through ``entry``, it stops where the chip
    sees a rule broken. Raises ``SimulationError`` if a pin is missing.
    """

    def __init__(
        self, model: PinModel, part: SdramPart, clock_hz: float, prefix: str = "sdram"
    ) -> None:
        self._model = model
        self.chip = SdramChip(part, clock_hz)
        self.description = f"{model.description}, with {part.name}"
        self.hidden = model.hidden
        inner = model.entry()
        outputs, inputs = pin_names(part, prefix)
        missing = [name for name in (*outputs, *inputs) if name not in inner.addresses]
        if missing:
            raise SimulationError(f"{model.description}: no pin {missing[0]!r}")
        # The chip's code holds pointers into these; they must live as long as it does.
        self._pointers = [
            np.array([inner.addresses[name] for name in names], np.uintp)
            for names in (outputs, inputs)
        ]
        self._board = _Board(
            self.chip.native.address,
            inner.model,
            inner.run_until,
            *(pointers.ctypes.data for pointers in self._pointers),
        )
        self._inner = inner
        self._run_until = load(_SOURCE, _SIGNATURES).sdram_run_until

    @property
    def ports(self) -> Mapping[str, int]:
        return self._model.ports

    def get(self, port: str) -> int:
        return self._model.get(port)

    def set(self, port: str, value: int) -> None:
        self._model.set(port, value)

    def entry(self) -> Entry:
        board, run_until = ctypes.addressof(self._board), self.chip.native.function("run_until")
        return Entry(board, run_until, self._inner.numbers, self._inner.addresses)

    def entry_of_other_clocks(self) -> Entry:
        return self._inner

    def run_until(self, port: str, limit: int) -> bool:
        """Clock until an edge at which ``port`` is high, at most ``limit`` times.

        Returns whether one came. Raises ``SimulationError`` if a rule is broken.
        """
        came = ctypes.c_int()
        number = self._inner.numbers[port]
        if not self._run_until(ctypes.byref(self._board), number, limit, ctypes.byref(came)):
            raise self.trouble()
        return bool(came.value)

    def trouble(self) -> SimulationError:
        if self.chip.trouble:
            return SimulationError(f"{self.chip.part.name}: {self.chip.trouble}")
        return self._model.trouble()

    def close(self) -> None:
        self.chip.close()
        self._model.close()
