"""A circuit at its pins, with a UART at the other end: bytes in, bytes out, exact cycles."""

import numpy as np
from amaranth.hdl import Elaboratable
from amaranth.lib import wiring
from numpy.typing import NDArray

from cppsim.errors import SimulationError

from .model import CircuitModel, PinModel
from .peer import Pins, Stop, UartPeer

__all__ = ["PinSimulation"]


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

    Raises ``SimulationError`` if a pin is missing or not one bit wide.
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
        pins = Pins(rx, tx, busy if busy != "busy" or busy in ports else "")
        for name in filter(None, (pins.rx, pins.tx, pins.busy)):
            if ports.get(name) != 1:
                found = f"{ports[name]} bits" if name in ports else f"only {', '.join(ports)}"
                raise SimulationError(f"{self.model.description}: no pin {name!r}, {found}")
        self._divider = divider
        self._peer = UartPeer(self.model.entry(), pins, divider)

    @property
    def divider(self) -> float:
        """Cycles of a bit of the UART at the other end. To be set while the lines are idle."""
        return self._divider

    @divider.setter
    def divider(self, divider: float) -> None:
        _expect_bit(divider)
        self._divider = divider
        self._peer.set_bit(divider)

    @property
    def cycle(self) -> int:
        """Clock edges since power-on."""
        return self._peer.cycle

    @property
    def unsent(self) -> int:
        """Bytes that ``send`` took and whose start bit has not begun."""
        return self._peer.unsent

    @property
    def arrived(self) -> int:
        """Bytes that ``receive`` would give now."""
        return self._peer.arrived

    @property
    def framing_errors(self) -> int:
        """Stop bits that were low, sent by the circuit; their bytes are dropped."""
        return self._peer.framing_errors

    @property
    def glitches(self) -> int:
        """Times that the circuit's line was low for less than half a bit, which UARTs ignore."""
        return self._peer.glitches

    def send(self, data: bytes) -> None:
        """Queue bytes; they go out one right behind the other while the clock runs."""
        self._peer.send(bytes(data))

    def receive(self, most: int | None = None) -> bytes:
        """What has arrived, up to ``most`` bytes. Does not run the clock."""
        return self.receive_timed(most)[0].tobytes()

    def receive_timed(
        self, most: int | None = None
    ) -> tuple[NDArray[np.uint8], NDArray[np.uint64]]:
        """The same, and for each byte the cycle in the middle of its stop bit."""
        return self._peer.take(self.arrived if most is None else most)

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
        return self._run(limit, received=count) is Stop.RECEIVED

    def settle(self, quiet: int, limit: int) -> bool:
        """Run until lines and ``busy`` have not moved for ``quiet`` cycles, or for ``limit``.

        Returns whether they came to rest.
        """
        return self._run(limit, quiet=quiet) is Stop.QUIET

    def advance(self, limit: int, *, count: int, quiet: int) -> bool:
        """Run until ``count`` bytes are there or all is quiet, at most ``limit`` cycles.

        Returns whether all is quiet.
        """
        return self._run(limit, received=count, quiet=quiet) is Stop.QUIET

    def close(self) -> None:
        """Free the model. May be called twice."""
        self._peer.close()
        self.model.close()

    def _run(self, cycles: int, received: int = 0, quiet: int = 0) -> Stop:
        stop = self._peer.run(cycles, received, quiet)
        if stop is Stop.BROKEN:
            raise self.model.trouble()
        return stop


def _expect_bit(divider: float) -> None:
    if not divider >= 2:
        raise SimulationError(f"divider {divider}: expected 2 or more cycles of a bit")
