"""Waveforms of a VCD file as a viewer shows them, to compare simulators. No tests here."""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial, wraps
from io import StringIO
from itertools import groupby
from operator import itemgetter
from typing import Any

from amaranth.hdl import ClockDomain, Module, Signal

import cppsim
from cppsim.mode import Mode
from support.amaranth import Simulator

KINDS = ("pysim", "engine", "simulator")
"""Amaranth's simulator, the same with `cppsim.Engine`, and `cppsim.Simulator`."""

Waveform = list[tuple[int, str]]
"""A variable's value from each time on at which it changes, without glitches."""


def seen(text: str) -> dict[str, Waveform]:
    """Return each variable's waveform by path and kind.

    Raises ``ValueError`` for bad lines, and if time 0 is there twice.
    """
    header, body = text.split("$enddefinitions $end\n")
    codes = dict(_declared(header))
    found: dict[str, dict[int, str]] = {code: {} for code in codes.values()}
    now = -1
    for line in body.splitlines():
        if line.startswith("#"):
            if int(line[1:]) < now or (line == "#0" and not now):
                raise ValueError(f"{line} comes after #{now}")
            now = int(line[1:])
        elif not line.startswith("$"):
            value, code = _change(line)
            found[code][now] = value
    return {path: _without_repeats(found[code].items()) for path, code in codes.items()}


def _declared(header: str) -> Iterable[tuple[str, str]]:
    scopes: list[str] = []
    for line in header.splitlines():
        match line.split():
            case ["$scope", _, name, "$end"]:
                scopes.append(name)
            case ["$upscope", "$end"]:
                scopes.pop()
            case ["$var", kind, size, code, name, *_, "$end"]:
                yield f"{'.'.join([*scopes, name])}: {kind} {size}", code


def _change(line: str) -> tuple[str, str]:
    """Return the value and the code of a line."""
    if match := re.fullmatch(r"([01])(\S+)|[bs](\S*) (\S+)", line):
        scalar, scalar_code, value, code = match.groups()
        return (value, code) if scalar is None else (scalar, scalar_code)
    raise ValueError(f"{line!r} is not a change of a value")


def _without_repeats(changes: Iterable[tuple[int, str]]) -> Waveform:
    return [next(same) for _, same in groupby(changes, key=itemgetter(1))]


class Traced:
    """A module, its clocks, its testbenches, and the additional signals to trace."""

    def __init__(
        self,
        module: Module,
        work: Callable[[Any], Any],
        *,
        clocks: dict[str, float] | None = None,
        traces: Sequence[Any] = (),
    ) -> None:
        self.module, self.work, self.traces = module, work, traces
        self.clocks = {"sync": 1e-6} if clocks is None else clocks

    def simulator(self, kind: str = "simulator") -> Any:
        made: Any
        if kind == "simulator":
            made = cppsim.Simulator(self.module, mode=Mode.ALWAYS)
        else:
            engine = cppsim.Engine if kind == "engine" else kind
            made = Simulator(self.module, engine=engine)
        assert not getattr(made._engine, "reason", "")
        for number, (domain, period) in enumerate(self.clocks.items()):
            made.add_clock(period, phase=period * (number + 1) / 8, domain=domain)
        made.add_testbench(self.work)
        return made

    def waveforms(self, kind: str) -> dict[str, Waveform]:
        file, made = StringIO(), self.simulator(kind)
        with made.write_vcd(file, traces=self.traces):
            made.run()
        return seen(file.getvalue())


def expect_same(design: Callable[[], Traced]) -> dict[str, Waveform]:
    """Expect the same waveforms from all kinds of simulators, and return them."""
    slow, *others = (design().waveforms(kind) for kind in KINDS)
    assert any(len(waveform) > 2 for waveform in slow.values())
    for fast in others:
        assert fast.keys() == slow.keys()
        for path, waveform in slow.items():
            assert fast[path] == waveform, path
    return slow


def same_waveforms(test: Callable[..., Traced]) -> Callable[..., None]:
    """Return a test of the design that ``test`` returns, by `expect_same`."""

    @wraps(test)
    def compare(**parameters: Any) -> None:
        expect_same(partial(test, **parameters))

    return compare


@cache
def _registers() -> Module:
    m, registers = Module(), [Signal(64, name=f"register{k}", init=k) for k in range(64)]
    m.domains.sync = ClockDomain()  # a missing one is made anew for each simulation
    for before, register in zip(registers[-1:] + registers, registers, strict=False):
        m.d.sync += register.eq((before << 3) ^ (register >> 1) ^ ~before)
    return m


def many_registers(cycles: int) -> Traced:
    """Return a cached design that adds about four kilobytes per cycle to a waveform file."""

    async def work(ctx: Any) -> None:
        for _ in range(cycles):
            await ctx.tick()

    return Traced(_registers(), work)


def compiled_text(design: Traced) -> str:
    file, made = StringIO(), design.simulator()
    with made.write_vcd(file):
        made.run()
    return file.getvalue()


def body(text: str) -> str:
    """Return ``text`` without the header, which has the date."""
    return text.split("$enddefinitions $end\n")[1]
