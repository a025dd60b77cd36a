"""The ports of a batch by the signals that a testbench uses."""

from collections.abc import Callable
from typing import Any

from amaranth.hdl import Signal, Value

from ..amaranth_internals import driven_signals, made_signals, read_signals
from ..errors import BatchError
from ..model.circuit import named_signals
from ..model.ports import PortPlace
from .description import Description
from .naming import PortChoice

__all__ = ["BatchPorts"]


class BatchPorts:
    """The ports of a batch by signal, and the domains that its cycles clock, by name.

    ``prepared`` is the batch's design, prepared again.
    """

    def __init__(self, choice: PortChoice, prepared: Any, description: Description) -> None:
        self._all = {id(signal): name for name, signal in named_signals(prepared)}
        self._names = choice.names(prepared)  # holds the signals, so that identities stay theirs
        known = description.ports
        self._ports = {id(x): known[n] for n, x in self._names.signals.items() if n in known}
        domains = prepared.fragment.domains
        made = made_signals(prepared)
        chosen = domains if choice.clocks is None else choice.clocks
        self.clocked = {
            name: domain
            for name, domain in domains.items()
            if name in chosen and domain.clk not in made
        }

    def of(self, signal: Signal, what: str) -> PortPlace:
        """Return the port of ``signal``. Raises ``BatchError`` if it does not have one."""
        port = self._ports.get(id(signal))
        if port is None:
            name = self._all.get(id(signal))
            hint = f"; make the batch with watch=[{name!r}]" if name else ", nor of the design"
            raise BatchError(f"{what} {signal.name!r}: it is not a port of the batch{hint}")
        return port

    def input(self, value: Value) -> tuple[PortPlace, Signal]:
        """Return the input that ``value`` is a part of. Raises ``BatchError`` for other values."""
        signals = _signals("set", value, driven_signals)
        if len(signals) != 1:
            raise BatchError(f"set {value!r}: a program sets one port at a time")
        port = self.of(signals[0], "set")
        if not port.input:
            raise BatchError(f"set {port.name!r}: the design drives it; only inputs can be set")
        return port, signals[0]

    def read(self, what: str, value: Value) -> list[tuple[PortPlace, Signal]]:
        """Return the ports in ``value``. Raises ``BatchError`` for signals without a port."""
        return [(self.of(x, what), x) for x in _signals(what, value, read_signals)]


def _signals(what: str, value: Any, signals_of: Callable[[Any], Any]) -> list[Signal]:
    """Return the signals of ``value`` that have bits. Raises ``BatchError`` for memory rows."""
    try:
        return [x for x in signals_of(value) if len(x)]
    except (AssertionError, NotImplementedError, TypeError) as error:
        line = f"{what} {value!r}: a program looks at ports alone; rows are Batch.memory's"
        raise BatchError(line) from error
