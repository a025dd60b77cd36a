"""Contracts: a component, an environment that may do whatever is allowed, and what must then hold.

A contract's free signals are inputs that the prover chooses; ``Assume`` bounds them, ``Assert``
claims. Must never drive a signal of the component that its users do not, nor assume anything of one
inside of it: what `Contract.inside` shows is for claims that help induction along.
"""

from collections.abc import Callable
from typing import Any

from amaranth.back import rtlil
from amaranth.hdl import (
    Assert,
    Assume,
    ClockDomain,
    Elaboratable,
    Fragment,
    Module,
    Mux,
    ShapeLike,
    Signal,
    Value,
)

__all__ = ["Contract", "before", "keeps_offers", "taken"]


class Contract(Elaboratable):
    """What a prover is asked. Subclasses say it in ``claim``; nothing ever resets the circuit."""

    def __init__(self) -> None:
        self._free: list[Signal] = []
        self._inside: dict[str, str] = {}
        self._clock = ClockDomain("sync", reset_less=True)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.domains += self._clock
        self.claim(m)
        return m

    def claim(self, m: Module) -> None:
        """Add the component, its environment and the claims to ``m``."""
        raise NotImplementedError

    def anything(self, shape: ShapeLike, name: str) -> Any:
        """A signal that may have another value in each cycle."""
        signal = Signal(shape, name=name)
        self._free.append(signal if isinstance(signal, Signal) else Value.cast(signal))
        return signal

    def something(self, m: Module, shape: ShapeLike, name: str) -> Any:
        """A signal that has one value for all time, whichever."""
        first, kept = Signal(init=1), Signal(shape, name=f"{name}_kept")
        chosen = Signal(shape, name=name)
        m.d.comb += chosen.eq(Mux(first, self.anything(shape, f"{name}_chosen"), kept))
        m.d.sync += [first.eq(0), kept.eq(chosen)]
        return chosen

    def inside(self, shape: ShapeLike, path: str) -> Signal:
        """The register ``path``, submodules and its name with dots between, inside of them."""
        name = path.replace(".", "_")
        self._inside[name] = path
        return self.anything(shape, name)  # until the prover connects it

    def offers(self, m: Module, stream: Any) -> None:
        """Offer anything to ``stream``, an input, as its contract allows: see `keeps_offers`."""
        m.d.comb += [
            stream.valid.eq(self.anything(1, "offered")),
            Value.cast(stream.payload).eq(
                self.anything(len(Value.cast(stream.payload)), "payload")
            ),
        ]
        keeps_offers(m, stream, Assume)

    def takes(self, m: Module, stream: Any) -> None:
        """Take what ``stream``, an output, offers, whenever; claim that it keeps its contract."""
        m.d.comb += stream.ready.eq(self.anything(1, "ready"))
        keeps_offers(m, stream, Assert)

    def rtlil(self) -> str:
        """The contract as Yosys reads it, in a module ``top``."""
        self._free.clear()
        fragment = Fragment.get(self, None)
        return str(rtlil.convert(fragment, name="top", ports=[self._clock.clk, *self._free]))

    def connections(self) -> list[str]:
        """Yosys' commands that connect what is ``inside``, once `rtlil` has been called."""
        return [
            command
            for name, path in self._inside.items()
            for command in (f"delete -input w:{name}", f"connect -set {name} {path}")
        ]


def before(m: Module, value: Any, *, init: int = 0) -> Signal:
    """``value`` as it was in the cycle before; ``init`` in the first. Not within an ``m.If``."""
    value = Value.cast(value)
    kept = Signal(len(value), init=init)
    m.d.sync += kept.eq(value)
    return kept


def taken(stream: Any) -> Value:
    """Whether a payload goes through ``stream`` in this cycle."""
    return stream.valid & stream.ready


def keeps_offers(m: Module, stream: Any, claim: Callable[..., Any]) -> None:
    """Claim, or assume, that what ``stream`` offers stays, unaltered, until it is taken."""
    payload = Value.cast(stream.payload)
    waited, offered = before(m, stream.valid & ~stream.ready), before(m, payload)
    with m.If(waited):
        m.d.comb += [claim(stream.valid), claim(payload == offered)]
