"""Designs to measure, and a wrapper that gives any component random inputs and a checksum."""

import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from amaranth.hdl import Array, Cat, ClockDomain, Module, Mux, Signal, Value
from amaranth.lib.crc.catalog import CRC32_ETHERNET
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import Component, Flow, In, Out

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))

Make = Callable[[], Any]

WORD = 64
"""Bits of the random numbers and of the checksum."""

SEED = 0x9E3779B97F4A7C15
"""The first random number, of a xorshift generator."""


class Fifo(Component):
    """Amaranth's buffered FIFO of 16 words of 8 bits, which is read in each cycle."""

    w_data: In(8)
    w_en: In(1)
    r_data: Out(8)
    r_level: Out(5)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.fifo = fifo = SyncFIFOBuffered(width=8, depth=16)
        m.d.comb += [fifo.w_data.eq(self.w_data), fifo.w_en.eq(self.w_en), fifo.r_en.eq(1)]
        m.d.comb += [self.r_data.eq(fifo.r_data), self.r_level.eq(fifo.r_level)]
        return m


class Crossbar(Component):
    """``ports`` sources of 32-bit words, any of which goes to any of as many sinks.

    A word waits in its source's FIFO for the sink that its lowest bits name. A sink takes from the
    sources in turn, and computes the CRC of its words.
    """

    def __init__(self, ports: int) -> None:
        self.ports = ports
        super().__init__(
            {f"data_{number}": In(32) for number in range(ports)}
            | {f"valid_{number}": In(1) for number in range(ports)}
            | {f"crc_{number}": Out(32) for number in range(ports)}
            | {f"taken_{number}": Out(32) for number in range(ports)}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        fifos = [SyncFIFOBuffered(width=32, depth=64) for _ in range(self.ports)]
        for number, fifo in enumerate(fifos):
            m.submodules[f"fifo_{number}"] = fifo
            m.d.comb += fifo.w_data.eq(getattr(self, f"data_{number}"))
            m.d.comb += fifo.w_en.eq(getattr(self, f"valid_{number}"))
        grants = [self._sink(m, number, fifos) for number in range(self.ports)]
        for source, fifo in enumerate(fifos):
            m.d.comb += fifo.r_en.eq(Cat(grant[source] for grant in grants).any())
        return m

    def _sink(self, m: Module, number: int, fifos: Sequence[Any]) -> Value:
        """Add a sink; return a bit for each source, which is 1 if the sink takes its word."""
        ports = range(self.ports)
        last = Signal(ports, name=f"last_{number}")
        grant = Signal(self.ports, name=f"grant_{number}")
        wanted = Signal(self.ports, name=f"wanted_{number}")
        taken = getattr(self, f"taken_{number}")
        m.d.comb += wanted.eq(
            Cat(fifo.r_rdy & (fifo.r_data[: len(last)] == number) for fifo in fifos)
        )
        with m.Switch(last):
            for owner in ports:
                with m.Case(owner):
                    for step in reversed(range(1, self.ports + 1)):
                        source = (owner + step) % self.ports
                        with m.If(wanted[source]):
                            m.d.comb += grant.eq(1 << source)
                            m.d.sync += [last.eq(source), taken.eq(taken + 1)]
        m.submodules[f"crc_{number}"] = crc = CRC32_ETHERNET(32).create()
        m.d.comb += [crc.data.eq(Array(fifo.r_data for fifo in fifos)[only_bit(grant)])]
        m.d.comb += [crc.valid.eq(grant.any()), getattr(self, f"crc_{number}").eq(crc.crc)]
        return grant


def only_bit(grant: Value) -> Value:
    """Return the number of the only bit of ``grant`` that is 1."""
    number: Value = Value.cast(0)
    for bit in range(1, len(grant)):
        number = Mux(grant[bit], bit, number)
    return number


class Exercised(Component):
    """``design`` with random inputs in each cycle, and a checksum of its outputs in all cycles.

    Its domain has no reset, so no simulator evaluates one. Equal checksums after as many cycles
    mean that two simulators have computed the same.
    """

    checksum: Any

    def __init__(self, design: Any) -> None:
        self.design = design
        self.domain: Any = ClockDomain("sync", reset_less=True)
        super().__init__({"checksum": Out(WORD)})

    @property
    def ports(self) -> list[Any]:
        """Return the ports of its Verilog: the clock and the checksum."""
        return [self.domain.clk, self.checksum]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.domains.sync = self.domain
        m.submodules.design = self.design
        state, first, second = Signal(WORD, init=SEED), Signal(WORD), Signal(WORD)
        m.d.comb += first.eq(state ^ (state << 13)), second.eq(first ^ (first >> 7))
        m.d.sync += state.eq(second ^ (second << 17))
        total: Value = self.checksum.rotate_left(1)
        for number, (_, member, port) in enumerate(self.design.signature.flatten(self.design)):
            value = Value.cast(port)
            if member.flow == Flow.In:
                words = [
                    state.rotate_left(7 * number + 19 * word)
                    for word in range(-(-len(value) // WORD))
                ]
                m.d.comb += value.eq(Cat(*words))
            else:
                for start in range(0, len(value), WORD):
                    total = total ^ value[start : start + WORD]
        m.d.sync += self.checksum.eq(total)
        return m


def designs(words: Sequence[str]) -> dict[str, Make]:
    """Return what makes each design, by name.

    ``words`` are the names of a callable and of others, whose results are its arguments; without
    words, the designs are those of the examples and `Crossbar`.
    """
    if words:
        make, *arguments = map(resolve_name, words)
        return {words[0]: lambda: make(*(argument() for argument in arguments))}
    from firmware import FIRMWARES, Processor, assembled  # examples
    from speed import Grid

    endless = assembled(FIRMWARES["squares"].removesuffix("HALT") + "JUMP 0")
    return {
        "FIFO of 8 bits": Fifo,
        "processor": partial(Processor, endless),
        "grid of 144 cells": partial(Grid, 12),
        "crossbar of 2 ports": partial(Crossbar, 2),
    }
