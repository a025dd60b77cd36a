"""A circuit at its pins with a UART at the other end, in exact cycles, and its serial port."""

import ctypes
from enum import IntEnum
from pathlib import Path

import numpy as np
from amaranth.hdl import Elaboratable
from amaranth.lib import wiring
from numpy.typing import NDArray

from cppsim.build import Signatures
from cppsim.errors import SimulationError

from .model import NUMBER, POINTER, SIZE, CircuitModel, Native, PinModel, load

_SOURCE = Path(__file__).with_name("peer.cc")
_SIGNATURES: Signatures = {
    "peer_create": (POINTER, [POINTER, ctypes.c_double]),
    "peer_destroy": (None, [POINTER]),
    "peer_set_bit": (None, [POINTER, ctypes.c_double]),
    "peer_send": (None, [POINTER, ctypes.c_char_p, SIZE]),
    "peer_unsent": (SIZE, [POINTER]),
    "peer_arrived": (SIZE, [POINTER]),
    "peer_take": (None, [POINTER, SIZE, POINTER, POINTER]),
    "peer_cycle": (NUMBER, [POINTER]),
    "peer_framing_errors": (NUMBER, [POINTER]),
    "peer_glitches": (NUMBER, [POINTER]),
    "peer_run": (ctypes.c_int, [POINTER, NUMBER, NUMBER, NUMBER]),
}


_BUFFER_BYTES = 4096
"""Bytes received at once, at first."""


class _Stop(IntEnum):
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


class PinSimulation:
    """Clocks ``what`` and talks to it over the pins ``rx`` and ``tx``, seen from the circuit.

    The clock stands still between the calls; none of them calls Python in a cycle.

    Parameters
    ----------
    what
        An Amaranth component (see ``CircuitModel`` for one with Instances), or a ``PinModel``,
        which the simulation then owns.
    divider
        Cycles of a bit of the UART at the other end; need not be whole.
    busy
        A port that is high while the circuit has work without anything on its lines; "" if it has
        none. A port called ``busy`` is found.

    Raises ``SimulationError`` if a pin is missing or not one bit wide, if there is no C++ compiler,
    and from every member except ``close`` after ``close``.
    """

    def __init__(
        self,
        what: PinModel | wiring.Component | Elaboratable,
        divider: float,
        *,
        rx: str = "rx",
        tx: str = "tx",
        busy: str = "busy",
    ) -> None:
        _expect_bit(divider)
        self.model = what if isinstance(what, PinModel) else CircuitModel(what)
        ports = self.model.ports
        busy = busy if busy != "busy" or busy in ports else ""
        for name in filter(None, (rx, tx, busy)):
            if ports.get(name) != 1:
                found = f"{ports[name]} bits" if name in ports else f"only {', '.join(ports)}"
                raise SimulationError(f"{self.model.description}: no pin {name!r}, {found}")
        self._divider = divider
        entry = self.model.entry()
        model = _Model(
            model=entry.model,
            run_until=entry.run_until,
            tx=entry.numbers[tx],
            rx=entry.addresses[rx],
            busy=entry.addresses[busy] if busy else None,
        )
        library, of = load(_SOURCE, _SIGNATURES), (ctypes.byref(model), divider)
        self._peer = Native(library, "peer", "the simulation is closed", *of)
        self._reserve(_BUFFER_BYTES)

    @property
    def divider(self) -> float:
        """Cycles of a bit of the UART at the other end. To be set while the lines are idle."""
        return self._divider

    @divider.setter
    def divider(self, divider: float) -> None:
        _expect_bit(divider)
        self._divider = divider
        self._peer("set_bit", divider)

    @property
    def cycle(self) -> int:
        """Clock edges since power-on."""
        return int(self._peer("cycle"))

    @property
    def unsent(self) -> int:
        """Bytes that ``send`` took and whose start bit has not begun."""
        return int(self._peer("unsent"))

    @property
    def arrived(self) -> int:
        """Bytes that ``receive`` would give now."""
        return int(self._peer("arrived"))

    @property
    def framing_errors(self) -> int:
        """Stop bits that were low, sent by the circuit; their bytes are dropped."""
        return int(self._peer("framing_errors"))

    @property
    def glitches(self) -> int:
        """Times that the circuit's line was low for less than half a bit, which UARTs ignore."""
        return int(self._peer("glitches"))

    def send(self, data: bytes) -> None:
        """Queue bytes; they go out one right behind the other while the clock runs."""
        content = bytes(data)
        self._peer("send", content, len(content))

    def receive(self, most: int | None = None) -> bytes:
        """Return up to ``most`` bytes that have arrived. Does not run the clock."""
        count = self._count(most)
        if count > self._buffer.size:
            self._reserve(count)
        self._peer("take", count, self._address, None)
        return self._buffer[:count].tobytes()

    def receive_timed(
        self, most: int | None = None
    ) -> tuple[NDArray[np.uint8], NDArray[np.uint64]]:
        """The same, and for each byte the cycle in the middle of its stop bit."""
        count = self._count(most)
        data, cycles = np.empty(count, np.uint8), np.empty(count, np.uint64)
        self._peer("take", count, data.ctypes.data, cycles.ctypes.data)
        return data, cycles

    def get(self, port: str) -> int:
        """Value of a port now. Raises ``KeyError`` for an unknown port."""
        return self.model.get(port)

    def set(self, port: str, value: int) -> None:
        """Drive an input, from the next cycle on."""
        self.model.set(port, value)

    def run(self, cycles: int) -> None:
        """Run the clock for ``cycles``. Raises ``SimulationError`` if the circuit's rules break."""
        self._run(cycles)

    def wait(self, count: int, limit: int) -> bool:
        """Run until ``count`` bytes have arrived that were not received, or for ``limit`` cycles.

        Returns whether they have.
        """
        return self._run(limit, received=count) is _Stop.RECEIVED

    def settle(self, quiet: int, limit: int) -> bool:
        """Run until lines and ``busy`` have not moved for ``quiet`` cycles, or for ``limit``.

        Returns whether they came to rest.
        """
        return self._run(limit, quiet=quiet) is _Stop.QUIET

    def advance(self, limit: int, *, count: int, quiet: int) -> bool:
        """Run until ``count`` bytes are there or all is quiet, at most ``limit`` cycles.

        Returns whether all is quiet.
        """
        return self._run(limit, received=count, quiet=quiet) is _Stop.QUIET

    def close(self) -> None:
        """Free the model. May be called twice."""
        self._peer.close()
        self.model.close()

    def _count(self, most: int | None) -> int:
        return self.arrived if most is None else min(most, self.arrived)

    def _reserve(self, size: int) -> None:
        """Make a buffer for received bytes; NumPy takes long to tell the address of an array."""
        self._buffer = np.empty(size, np.uint8)
        self._address = self._buffer.ctypes.data

    def _run(self, cycles: int, received: int = 0, quiet: int = 0) -> _Stop:
        stop = _Stop(self._peer("run", cycles, received, quiet))
        if stop is _Stop.BROKEN:
            raise self.model.trouble()
        return stop


def _expect_bit(divider: float) -> None:
    if not divider >= 2:
        raise SimulationError(f"divider {divider}: expected 2 or more cycles of a bit")


class SimulatedPort:
    """The part of pyserial's interface that the host link uses, in simulated time.

    The clock runs only while ``read`` or ``flush`` waits.

    Parameters
    ----------
    simulation
        The circuit; closed with the port.
    clock_hz
        Cycles in a second of ``timeout``.

    Attributes
    ----------
    timeout : float or None
        Most simulated seconds that ``read`` waits for the first byte; None, the default, is a
        minute, because a wait without an end would be a hang.
    """

    def __init__(self, simulation: PinSimulation, clock_hz: float) -> None:
        self.simulation = simulation
        self.clock_hz = clock_hz
        self.timeout: float | None = None
        self.is_open = True

    @property
    def in_waiting(self) -> int:
        """Bytes that ``read`` would give at once."""
        self._expect_open()
        return self.simulation.arrived

    @property
    def out_waiting(self) -> int:
        """Bytes written that have not gone out."""
        self._expect_open()
        return self.simulation.unsent

    @property
    def seconds(self) -> float:
        """Simulated time since power-on."""
        return self.simulation.cycle / self.clock_hz

    def read(self, size: int = 1) -> bytes:
        """Up to ``size`` bytes: what there is, at least 1 unless ``timeout`` passes first."""
        self._expect_open()
        if not self.simulation.arrived:
            timeout = 60 if self.timeout is None else self.timeout
            self.simulation.wait(1, round(timeout * self.clock_hz))
        return self.simulation.receive(size)

    def write(self, data: bytes | bytearray | memoryview) -> int:
        """Queue ``data``; returns its size."""
        self._expect_open()
        content = bytes(data)
        self.simulation.send(content)
        return len(content)

    def flush(self) -> None:
        """Run until all that was written has gone out."""
        self._expect_open()
        bits = 10 * (self.simulation.unsent + 1)
        while self.simulation.unsent:
            self.simulation.run(round(bits * self.simulation.divider))

    def reset_input_buffer(self) -> None:
        """Drop what has arrived."""
        self._expect_open()
        self.simulation.receive()

    def close(self) -> None:
        """Close the simulation. May be called twice."""
        if self.is_open:
            self.is_open = False
            self.simulation.close()

    def _expect_open(self) -> None:
        if not self.is_open:
            raise OSError("the simulated port is closed")
