"""What a batch calls the signals of a design, of which a testbench has the signals themselves."""

from collections.abc import Collection
from typing import Any

from amaranth.hdl import Signal, Value
from amaranth.lib import wiring

from ..amaranth_internals import made_signals
from ..errors import BatchError
from ..model.ports import PortPlace
from ..netlist.one_clock import named_signals
from .description import Description

__all__ = ["BatchPorts"]


class BatchPorts:
    """Ports of a batch of ``dut`` by signal, and the domains that its cycles clock, by name.

    ``clocks`` as for `Batch`; ``prepared`` is the same design, prepared again.
    """

    def __init__(
        self, dut: Any, prepared: Any, description: Description, clocks: Collection[str] | None
    ) -> None:
        names: dict[str, Any] = dict(named_signals(prepared))
        self._all = {id(signal): name for name, signal in names.items()}
        signature = getattr(dut, "signature", None)
        if isinstance(signature, wiring.Signature):
            flat: Any = signature.flatten(dut)
            names |= {"__".join(map(str, path)): Value.cast(port) for path, _, port in flat}
        domains = prepared.fragment.domains
        for domain in domains.values():
            own = [x for x in (domain.clk, domain.rst) if x is not None]
            names |= {x.name: x for x in own if names.get(x.name, x) is x}
        known = description.ports
        self._ports = {id(x): known[name] for name, x in names.items() if name in known}
        self._kept = names  # so that nothing else gets their identity
        made = made_signals(prepared)
        chosen = domains if clocks is None else clocks
        self.clocked = {
            name: domain
            for name, domain in domains.items()
            if name in chosen and domain.clk not in made
        }

    def of(self, signal: Signal, what: str) -> PortPlace:
        """The port that ``signal`` is. Raises ``BatchError`` if it is none."""
        port = self._ports.get(id(signal))
        if port is None:
            name = self._all.get(id(signal))
            hint = f"; make the batch with watch=[{name!r}]" if name else ", nor of the design"
            raise BatchError(f"{what} {signal.name!r}: it is no port of the batch{hint}")
        return port

    def input(self, value: Value) -> tuple[PortPlace, Signal]:
        """The input that is set where ``value`` is. Raises ``BatchError`` if it is none."""
        signals = _signals("set", value, "_lhs_signals")
        if len(signals) != 1:
            raise BatchError(f"set {value!r}: a program sets one port at a time")
        port = self.of(signals[0], "set")
        if not port.input:
            raise BatchError(f"set {port.name!r}: the design drives it; only inputs can be set")
        return port, signals[0]

    def read(self, what: str, value: Value) -> list[tuple[PortPlace, Signal]]:
        """The ports that ``value`` is made of. Raises ``BatchError`` for what is none."""
        return [(self.of(x, what), x) for x in _signals(what, value, "_rhs_signals")]


def _signals(what: str, value: Any, method: str) -> list[Signal]:
    """The signals of ``value`` that have bits. Raises ``BatchError`` if there is more to it."""
    try:
        return [x for x in getattr(value, method)() if len(x)]
    except (AssertionError, NotImplementedError, TypeError) as error:
        line = f"{what} {value!r}: a program looks at ports alone; rows are Batch.memory's"
        raise BatchError(line) from error
