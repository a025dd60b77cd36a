"""Models with pins, for a pin simulation to clock; and the libraries of this package's C++ files.

A library is compiled once for all processes, and loaded once by each.
"""

import ctypes
import functools
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amaranth.hdl import Elaboratable, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from bitlane_sim.builds import OWNER, build_circuit
from cppsim.build import Builder, Signatures, bind
from cppsim.errors import SimulationError

if TYPE_CHECKING:
    from cppsim import Model

POINTER, SIZE, NUMBER = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint64

BUILDER = Builder(
    "pins", "its own library", ("-O2",), headers=(Path(__file__).parent,), owner=OWNER
)


def load(source: Path, signatures: Signatures) -> ctypes.CDLL:
    """Return the library of the C++ file ``source``, whose functions have these ``signatures``.

    Raises ``SimulationError`` if it cannot be compiled.
    """
    return bind(_loaded(source), signatures)


@functools.cache
def _loaded(source: Path) -> ctypes.CDLL:
    return ctypes.CDLL(str(BUILDER.from_files(source)))


class Native:
    """An object of a C++ library whose functions for it begin with ``prefix``.

    ``arguments`` are those of the function ``create``. Calls after `close` raise
    ``SimulationError`` with the message ``gone``.
    """

    _address: int | None = None

    def __init__(
        self,
        library: ctypes.CDLL,
        prefix: str,
        gone: str,
        *arguments: object,
        create: str = "create",
    ) -> None:
        self._library, self._prefix, self._gone = library, prefix, gone
        self._functions: dict[str, Any] = {}
        self._address = self._function(create)(*arguments)

    def __call__(self, function: str, *arguments: object) -> Any:
        return self._function(function)(self.address, *arguments)

    @property
    def address(self) -> int:
        if self._address is None:
            raise SimulationError(self._gone)
        return self._address

    def close(self) -> None:
        """Free the object. May be called twice."""
        address, self._address = self._address, None
        if address is not None:
            self._function("destroy")(address)

    def __del__(self) -> None:
        self.close()

    def function(self, name: str) -> int:
        """Return the address of a function, for compiled code."""
        return ctypes.cast(self._function(name), ctypes.c_void_p).value or 0

    def _function(self, name: str) -> Any:
        found = self._functions.get(name)
        if found is None:
            found = self._functions[name] = getattr(self._library, f"{self._prefix}_{name}")
        return found


@dataclass(frozen=True, slots=True)
class Entry:
    """Addresses for compiled code that clocks a model without Python.

    Attributes
    ----------
    model
        What ``run_until`` takes first.
    run_until
        ``int (void *model, size_t port, uint64_t limit, int *came)``: clocks the model until an
        edge at which ``port`` is high, at most ``limit`` times; 0 if the model broke a rule.
    numbers
        Numbers of ports, by name.
    addresses
        Where the lowest byte of a port's value lies, by name.
    """

    model: int
    run_until: int
    numbers: Mapping[str, int]
    addresses: Mapping[str, int]


class PinModel(ABC):
    """A circuit with one clock, at the state of power-on, and ports of which some are pins."""

    description: str
    """A short description of the simulated circuit."""

    hidden: tuple[str, ...]
    """Features of the real circuit that the model lacks, a sentence each."""

    @property
    @abstractmethod
    def ports(self) -> Mapping[str, int]:
        """Bits of every port, by name."""

    @abstractmethod
    def get(self, port: str) -> int:
        """Value of a port now. Raises ``KeyError`` for an unknown port."""

    @abstractmethod
    def set(self, port: str, value: int) -> None:
        """Drive an input, seen by the next edge. Raises ``KeyError`` or ``ValueError``."""

    @abstractmethod
    def entry(self) -> Entry:
        """Return the addresses for compiled code; they are valid until ``close``."""

    def entry_of_other_clocks(self) -> Entry:
        """Return the addresses for edges that chips at the model's pins do not see."""
        return self.entry()

    @abstractmethod
    def trouble(self) -> SimulationError:
        """Why the last ``run_until`` returned 0."""

    @abstractmethod
    def close(self) -> None:
        """Free what the model holds. May be called twice."""


class CircuitModel(PinModel):
    """An Amaranth component, compiled.

    Instances that it contains are those of ``VENDOR_CELLS``.

    Raises ``SimulationError`` if a tool is missing, or for another Instance.
    """

    def __init__(
        self, component: wiring.Component | Elaboratable, *, description: str = ""
    ) -> None:
        self.description = description or f"RTL of {type(component).__name__}"
        self.hidden = ("the clock is driven directly: no PLL, no delays",)
        # Netlists of gates do without the tools that this one needs.
        from cppsim import Model
        from cppsim.circuits import Circuit

        self._evaluator = Model(Circuit(component, VENDOR_CELLS), build_with=build_circuit)

    @property
    def evaluator(self) -> "Model":
        """The compiled model of the circuit."""
        return self._evaluator

    @property
    def ports(self) -> Mapping[str, int]:
        return self._evaluator.widths

    def get(self, port: str) -> int:
        # Somebody else clocks the model, so that the evaluator cannot know what is stale.
        return self._evaluator.probe(port)

    def set(self, port: str, value: int) -> None:
        self._evaluator.set(port, value)

    def entry(self) -> Entry:
        return Entry(*self._evaluator.addresses())

    def trouble(self) -> SimulationError:
        return self._evaluator.trouble()

    def close(self) -> None:
        self._evaluator.close()


class SinglePortRam256K(wiring.Component):
    """``SB_SPRAM256KA``, the large RAM of iCE40 UltraPlus, powered and awake.

    Lattice FPGA-TN-02022, section 3. A write leaves the output undefined there; here it becomes the
    inverse of the written word, so that nothing can rely on it.
    """

    ADDRESS: Signal
    DATAIN: Signal
    MASKWREN: Signal
    WREN: Signal
    CHIPSELECT: Signal
    DATAOUT: Signal

    def __init__(self) -> None:
        super().__init__(
            {
                "ADDRESS": In(14),
                "DATAIN": In(16),
                "MASKWREN": In(4),
                "WREN": In(1),
                "CHIPSELECT": In(1),
                "DATAOUT": Out(16),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        words: Any = Memory(shape=16, depth=1 << 14, init=[])
        m.submodules.words = words
        write = words.write_port(granularity=4)
        read = words.read_port(domain="comb")
        store = Signal()
        m.d.comb += [
            store.eq(self.CHIPSELECT & self.WREN),
            write.addr.eq(self.ADDRESS),
            write.data.eq(self.DATAIN),
            write.en.eq(self.MASKWREN & store.replicate(4)),
            read.addr.eq(self.ADDRESS),
        ]
        with m.If(store):
            m.d.sync += self.DATAOUT.eq(~self.DATAIN)
        with m.Elif(self.CHIPSELECT):
            m.d.sync += self.DATAOUT.eq(read.data)
        return m


VENDOR_CELLS = {"SB_SPRAM256KA": SinglePortRam256K}
"""The component that replaces an Instance, by the Instance's type."""
