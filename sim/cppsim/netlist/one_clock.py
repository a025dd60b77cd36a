"""A circuit with ports and one clock in plain form, as a program that clocks itself needs it."""

from collections.abc import Iterator, Mapping
from typing import Any

from amaranth.hdl import Signal

from ..amaranth_internals import PortDirection, nir
from .design import Bits, DesignPort, Notice, PlainDesign
from .enables import find_enables
from .events import parts_of
from .lowering import Event, lower

__all__ = ["named_signals", "plain_circuit"]

_UNSAID = ("an assertion failed",)


def plain_circuit(
    fragment: Any, clock: Signal, inputs: Mapping[str, Any], outputs: Mapping[str, Any]
) -> PlainDesign:
    """The plain form of ``fragment``, which nothing but the rising edges of ``clock`` moves on.

    Its ports are the clock, called by its own name, ``inputs`` and ``outputs``. Signals keep their
    names, with those of the submodules before them; nothing is trimmed.

    Raises ``NotPlain`` for other edges, and what Amaranth raises of a design.
    """
    given = {clock.name: clock, **inputs}
    ports = {name: (value, PortDirection.Input) for name, value in given.items()}
    ports |= {name: (value, PortDirection.Output) for name, value in outputs.items()}
    prepared = fragment.prepare(ports=ports)
    lowered = lower(prepared, clock=clock)
    design = lowered.design
    design.ports = [
        DesignPort(name, name not in given, lowered.signals[value])
        for name, (value, _) in ports.items()
    ]
    design.names = {name: lowered.signals[signal] for name, signal in named_signals(prepared)}
    events = (*lowered.events, *lowered.watches)
    design.notices = [notice for event in events for notice in _notices(event)]
    find_enables(design)
    return design


def named_signals(prepared: Any) -> Iterator[tuple[str, Signal]]:
    """All signals that have a name, with those of the submodules before it."""
    for signal, fragment in prepared.signal_lca.items():
        about = prepared.fragments[fragment]
        if signal in about.signal_names:
            yield ".".join((*about.name[1:], about.signal_names[signal])), signal


def _notices(event: Event) -> Iterator[Notice]:
    """``event`` as whoever clocks a circuit hears of it; covers are not told."""
    prints = isinstance(event.cell, nir.SyncPrint | nir.AsyncPrint)
    if prints or event.cell.kind != "cover":
        message = parts_of(event.cell.format)
        values: tuple[Bits, ...] = event.values
        yield Notice(event.enable, values, message if prints else message or _UNSAID, not prints)
