"""Contracts: a component, an environment with all behaviour that is allowed, and claims to prove.

A contract's free signals are inputs that the prover chooses; ``Assume`` bounds them, ``Assert``
claims. A contract must not drive a signal that users of the component do not drive, nor assume
anything about a signal inside it: `Contract.inside` is for claims that help induction along.
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


class Contract(Elaboratable):
    """A claim for a prover, which subclasses state in ``claim``; the circuit is never reset."""

    def __init__(self) -> None:
        self._free: list[Signal] = []
        self._inside: dict[str, str] = {}
        self._unknown: list[str] = []
        self._clock = ClockDomain("sync", reset_less=True)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.domains += self._clock
        self.claim(m)
        return m

    def claim(self, m: Module) -> None:
        """Add the component, its environment and the claims to ``m``."""
        raise NotImplementedError

    def anything(self, shape: ShapeLike, name: str) -> Signal:
        """Return a signal that may have another value in each cycle."""
        signal = Signal(shape, name=name)
        self._free.append(signal)
        return signal

    def something(self, m: Module, shape: ShapeLike, name: str) -> Signal:
        """Return a signal with an arbitrary value that is the same in all cycles."""
        first, kept = Signal(init=1), Signal(shape, name=f"{name}_kept")
        chosen = Signal(shape, name=name)
        m.d.comb += chosen.eq(Mux(first, self.anything(shape, f"{name}_chosen"), kept))
        m.d.sync += [first.eq(0), kept.eq(chosen)]
        return chosen

    def inside(self, shape: ShapeLike, path: str) -> Signal:
        """Return the register ``path``: submodules and its name inside them, joined by dots."""
        name = path.replace(".", "_")
        self._inside[name] = path
        return self.anything(shape, name)  # until the prover connects it

    def starts_as_anything(self, path: str) -> None:
        """Let the memory ``path``, named as for `inside`, hold any content at the start."""
        self._unknown.append(path)

    def offers(self, m: Module, stream: Any) -> None:
        """Drive ``stream``, an input, in any way that its contract allows: see `keeps_offers`."""
        payload = Value.cast(stream.payload)
        m.d.comb += [
            stream.valid.eq(self.anything(1, "offered")),
            payload.eq(self.anything(len(payload), "payload")),
        ]
        keeps_offers(m, stream, Assume)

    def takes(self, m: Module, stream: Any) -> None:
        """Accept from ``stream``, an output, in any cycle; claim that it keeps its contract."""
        m.d.comb += stream.ready.eq(self.anything(1, "ready"))
        keeps_offers(m, stream, Assert, src_loc_at=1)

    def rtlil(self) -> str:
        """Return the contract in RTLIL, for Yosys, in a module ``top``."""
        self._free.clear()
        fragment = Fragment.get(self, None)
        return str(rtlil.convert(fragment, name="top", ports=[self._clock.clk, *self._free]))

    def preparation(self) -> list[str]:
        """Return Yosys' commands for all that RTLIL cannot express; they run behind `rtlil`."""
        commands = []
        for path in self._unknown:
            start = f"t:$meminit_v2 r:MEMID=\\\\{path} %i"
            commands += [f"select -assert-count 1 {start}", f"delete {start}"]
        for name, path in self._inside.items():
            commands += [f"delete -input w:{name}", f"connect -nounset -set {name} {path}"]
        return commands


def before(m: Module, value: Any, *, init: int = 0) -> Signal:
    """Return ``value`` of the cycle before; ``init`` in the first. Not within an ``m.If``."""
    value = Value.cast(value)
    kept = Signal(len(value), init=init)
    m.d.sync += kept.eq(value)
    return kept


def taken(stream: Any) -> Value:
    """Return whether ``stream`` transfers a payload in this cycle."""
    return stream.valid & stream.ready


def keeps_offers(m: Module, stream: Any, claim: Callable[..., Any], *, src_loc_at: int = 0) -> None:
    """Claim, or assume, that ``stream`` holds valid and an unaltered payload until the transfer.

    ``src_loc_at``: calls between this one and the line that a failure names, as in Amaranth.
    """
    payload = Value.cast(stream.payload)
    waited, offered = before(m, stream.valid & ~stream.ready), before(m, payload)
    with m.If(waited):
        for held in (stream.valid, payload == offered):
            m.d.comb += claim(held, src_loc_at=1 + src_loc_at)
