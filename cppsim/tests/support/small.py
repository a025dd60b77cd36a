"""Small designs and their waveforms, refusals, and interrupts of Python. No tests here."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from io import StringIO
from typing import Any

import pytest
from amaranth.hdl import ClockDomain, Instance, Module, Signal

from cppsim.testing import EXECUTORS, Bench, RandomDesign, follow_processes


def counter(shape: Any = 8, step: Any = 1, **options: Any) -> tuple[Module, Signal]:
    """Return a design that adds ``step`` to a register at each tick, and the register."""
    m, count = Module(), Signal(shape, **options, name="count")
    m.d.sync += count.eq(count + step)
    return m, count


def loop() -> Module:
    """Return a signal that depends on itself."""
    m, a, b = Module(), Signal(), Signal()
    m.d.comb += [a.eq(b), b.eq(~(a & b))]
    return m


def foreign() -> Module:
    """Return an Instance."""
    m = Module()
    m.submodules.cell = Instance("CELL", i_a=Signal(), o_o=Signal())
    return m


def phased(design: RandomDesign) -> dict[str, tuple[float, float]]:
    """Return clocks for a design, each of which begins 0.1 us after the one before it."""
    clocks = enumerate(design.clocks.items(), 1)
    return {name: (period, 1e-7 * number) for number, (name, period) in clocks}


def followed(executor: str, design: RandomDesign, **options: Any) -> list[Any]:
    """Return what `follow_processes` lets an executor see."""
    bench = Bench(EXECUTORS[executor])
    follow_processes(bench, design, **options)
    return bench.seen


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


def refused(
    error: type[Exception], match: str, call: Callable[..., object], *arguments: Any
) -> Any:
    """Expect that a call is refused in one line; return the error."""
    with pytest.raises(error, match=match) as raised:
        call(*arguments)
    assert "\n" not in str(raised.value)
    return raised.value


@contextmanager
def interrupts() -> Iterator[Callable[[float], object]]:
    """Yield a function that lets Python be interrupted after a number of seconds."""

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        yield partial(signal.setitimer, signal.ITIMER_REAL)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
