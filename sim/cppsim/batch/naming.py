"""The names under which a batch shows the signals of a design."""

from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import chain, count
from typing import Any

from amaranth.hdl import Signal, Value
from amaranth.lib import wiring

from ..errors import BatchError
from ..model.circuit import named_signals

__all__ = ["PortChoice", "PortNames", "free_name"]


@dataclass(frozen=True, slots=True)
class PortNames:
    """The signals of a design by port name, and the port names of each domain's clock and reset.

    ``signals`` are the ``chosen`` ones, and the clocks and resets of all domains.
    """

    chosen: dict[str, Signal]
    signals: dict[str, Signal]
    clocks: dict[str, str] = field(default_factory=dict)
    resets: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PortChoice:
    """A design, the domains whose clocks a cycle drives (None: all), and more signals to show."""

    dut: Any
    clocks: Collection[str] | None = None
    watch: Collection[str] = ()

    def names(self, prepared: Any) -> PortNames:
        """Name the ports of the design, which is ``prepared``.

        Ports are the signals in ``watch``, those of a component or else all of the top level, and
        the clocks and resets of all domains. A clock or a reset gets a number if another port has
        its name: ``rst2``. Raises ``BatchError`` for a name in ``watch`` that no signal has.
        """
        named = dict(named_signals(prepared))
        unknown = [name for name in self.watch if name not in named]
        if unknown:
            raise BatchError(f"no signal {unknown[0]!r}; names are those in waveforms, such as a.b")
        chosen: dict[str, Any] = {name: named[name] for name in self.watch}
        signature = getattr(self.dut, "signature", None)
        if isinstance(signature, wiring.Signature):
            flat: Any = signature.flatten(self.dut)
            chosen |= {"__".join(map(str, path)): Value.cast(port) for path, _, port in flat}
        else:
            chosen |= {name: signal for name, signal in named.items() if "." not in name}
        chosen = {name: signal for name, signal in chosen.items() if len(signal)}
        names = PortNames(chosen, dict(chosen))
        for name, domain in prepared.fragment.domains.items():
            names.clocks[name] = _add(names.signals, domain.clk)
            if domain.rst is not None:
                names.resets[name] = _add(names.signals, domain.rst)
        return names


def _add(signals: dict[str, Signal], signal: Signal) -> str:
    """Add ``signal`` under its own name or the first free one; return that name."""
    name = free_name(signal.name, {name for name, x in signals.items() if x is not signal})
    signals[name] = signal
    return name


def free_name(name: str, taken: Collection[str]) -> str:
    """Return the first of ``name``, ``name2``, ``name3`` and so on that is not ``taken``."""
    numbered = chain([name], (f"{name}{number}" for number in count(2)))
    return next(x for x in numbered if x not in taken)
