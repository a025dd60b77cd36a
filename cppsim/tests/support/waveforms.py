"""Files of waveforms, and a design that fills them. No tests here."""

from functools import cache
from io import StringIO
from typing import Any

from amaranth.hdl import ClockDomain, Module, Signal

from cppsim.testing import EXECUTORS, Bench


@cache
def _registers() -> Module:
    m, registers = Module(), [Signal(64, name=f"register{k}", init=k) for k in range(64)]
    m.domains.sync = ClockDomain()  # a missing one is made anew for each simulation
    for before, register in zip(registers[-1:] + registers, registers, strict=False):
        m.d.sync += register.eq((before << 3) ^ (register >> 1) ^ ~before)
    return m


def many_registers(cycles: int, executor: str = "always") -> Any:
    """Return a simulator of a cached design that adds about four kilobytes per cycle to a file."""

    async def work(ctx: Any) -> None:
        for _ in range(cycles):
            await ctx.tick()

    return Bench(EXECUTORS[executor]).simulator(_registers(), work)


def text_of(simulator: Any, **options: Any) -> str:
    """Return the waveforms of a run."""
    file = StringIO()
    with simulator.write_vcd(file, **options):
        simulator.run()
    return file.getvalue()


def body(text: str) -> str:
    """Return ``text`` without the header, which has the date."""
    return text.split("$enddefinitions $end\n")[1]
