"""Executors side by side, in `cppsim.check` and `cppsim.testing`: what differs is named, and where.

A check finds bugs in compiled code and in Amaranth's simulator. Designs at random are the same for
the same seed.
"""

import re
from collections.abc import Callable
from operator import methodcaller
from pathlib import Path
from typing import Any

import pytest
from amaranth import hdl
from amaranth.hdl import Assert, C, ClockDomain, ClockSignal, Format, Module, Print, Signal, signed
from amaranth.lib.memory import Memory
from amaranth.sim import Simulator

import cppsim
from cppsim.checking import CheckedState, Shadow
from cppsim.cpp import edge, words
from cppsim.errors import SimulationError
from cppsim.running import LogicSlot, SignalSlot
from cppsim.testing import (
    EXECUTORS,
    KINDS,
    Bench,
    delay,
    random_clocks,
    random_design,
    random_testbench,
    same_on,
    ticks,
    trace,
    waveforms,
)
from support.small import counter, foreign, refused

reads = Bench(EXECUTORS["check"]).reads
"""A testbench of single ticks: Amaranth's `repeat` complains if a run ends before it."""


def line_of(signal: Any) -> str:
    filename, line = signal.src_loc
    return f"{filename}:{line}"


def differs(text: str, *design: Any, **options: Any) -> None:
    """Expect that a check of ``design`` finds a difference, and says so in one line."""
    refused(cppsim.Difference, text, lambda: cppsim.check(*design, **options))


# --- bugs that are planted in the code generator --------------------------------------------------


def test_a_constant_of_too_few_bits_is_found(change: Callable[..., None]) -> None:
    m, given, mixed, other = Module(), Signal(40), Signal(40, name="mixed"), Signal(41)
    m.d.comb += [mixed.eq(given ^ C(5 << 32, 40)), other.eq(mixed + 1)]

    work = Bench(EXECUTORS["check"]).sets(given, [value << 32 for value in range(8)])
    cppsim.check(m, work)
    change(words, "literal", lambda value: f"{value & 0xFFFFFFFF:#x}ull")
    text = rf"^mixed and 1 more \({line_of(mixed)}\) is .*, and 0x500000000 in Amaranth's simulator"
    differs(text, m, work)


def unextended(operand: str, width: int) -> str:
    return f"int64_t({operand})"


def test_a_sign_that_is_not_extended_is_found(change: Callable[..., None]) -> None:
    m, given, below = Module(), Signal(signed(8), init=3), Signal(name="below")
    m.d.sync += [given.eq(given - 1), below.eq(given < 1)]
    cppsim.check(m, reads(10), clocks=1e-6)
    change(words, "sign_extended", unextended)
    text = rf"below \({line_of(below)}\) is 0, and 1 in .*, at 4.5e-06 s, cycle 5 of clk"
    differs(text, m, reads(10), clocks=1e-6)


def test_a_write_enable_that_is_dropped_is_found(change: Callable[..., None]) -> None:
    m = Module()
    m.submodules.memory = memory = Memory(shape=16, depth=4, init=[0x1234] * 4)
    port = memory.write_port(granularity=8)

    async def work(ctx: Any) -> None:
        ctx.set(port.addr, 2)
        ctx.set(port.data, 0xABCD)
        ctx.set(port.en, 0b10)
        for _ in range(2):
            await ctx.tick()

    cppsim.check(m, work, clocks={"sync": 1e-6})
    change(edge, "_merge", lambda target, data, mask: data)
    text = r"row 2 of memory \(.*:\d+\) is 43981, and 43828 in Amaranth's simulator, at 5e-07 s"
    differs(text, m, work, clocks={"sync": 1e-6})


# --- what is compared, and what is not ------------------------------------------------------------


def test_what_is_printed_is_compared(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    m, count = counter()
    m.d.sync += [Print(Format("count {}", count)), Assert(count < 20)]
    cppsim.check(m, reads(3), clocks=1e-6)
    assert capsys.readouterr().out == "count 0\ncount 1\ncount 2\n"
    monkeypatch.setattr("cppsim.checking.message_text", lambda cell, values: "nonsense")
    differs(r"compiled code says \['nonsense'\], .*count 0", m, reads(3), clocks=1e-6)


def test_a_design_that_cannot_be_compiled_is_not_taken_for_checked() -> None:
    text = "nothing to compare: Instance is not known"
    with pytest.warns(cppsim.FallbackWarning), pytest.raises(SimulationError, match=text):
        cppsim.check(foreign())


def test_the_cause_is_named_and_not_what_follows(change: Callable[..., None]) -> None:
    m, given = Module(), Signal(signed(8), init=-3)
    last, middle, first = Signal(4), Signal(4), Signal(4, name="first")
    m.d.comb += [last.eq(middle + 1), middle.eq(first + 1), first.eq(given < 1)]
    change(words, "sign_extended", unextended)
    differs("^first and 2 more", m, delay(1e-6))


@pytest.mark.parametrize("run", [("advance",), ("run",), ("run_until", 1e-6)], ids=lambda x: x[0])
def test_simulators_check_on_request(run: tuple[Any, ...], change: Callable[..., None]) -> None:
    m, given, below = Module(), Signal(signed(8), init=-3), Signal(name="below")
    m.d.comb += below.eq(given < 1)
    change(words, "sign_extended", unextended)
    with pytest.raises(cppsim.Difference, match=r"^below .* is 0, and 1 in Amaranth's simulator"):
        methodcaller(*run)(cppsim.Simulator(m, mode="check"))


# --- known differences, with the change that avoids them ------------------------------------------


@pytest.mark.parametrize(
    ("shape", "seen"),
    [(4, lambda x: ~x), (4, methodcaller("as_signed")), (signed(4), methodcaller("as_unsigned"))],
    ids=["inverted", "signed", "unsigned"],
)
@pytest.mark.parametrize("clocked", [False, True])
def test_a_part_select_past_a_value_comes_with_its_cure(
    shape: Any, seen: Any, *, clocked: bool
) -> None:
    def design(*, by_signal: bool) -> Module:
        m, offset = Module(), Signal(3, init=2)
        x, chosen = Signal(shape, init=C(0b1001, shape).value), Signal(4, name="chosen")
        whole = Signal(seen(x).shape())
        m.d.comb += whole.eq(seen(x))
        selected = (whole if by_signal else seen(x)).bit_select(offset, 4)
        m.d["sync" if clocked else "comb"] += chosen.eq(selected)
        return m

    clocks = 1e-6 if clocked else None
    cppsim.check(design(by_signal=True), delay(3e-6), clocks=clocks)
    text = r"^chosen .*; past an inverted or reinterpreted value, a part-select differs "
    differs(text, design(by_signal=False), delay(3e-6), clocks=clocks)


@pytest.mark.parametrize("shared", [True, False])
def test_a_row_of_two_domains_comes_with_another_cure(
    monkeypatch: pytest.MonkeyPatch, *, shared: bool
) -> None:
    m = Module()
    m.domains += ClockDomain("a", reset_less=True), ClockDomain("b", reset_less=True)
    m.submodules.memory = memory = Memory(shape=8, depth=2, init=[])
    for number, domain in enumerate("ab" if shared else "aa", start=1):
        port = memory.write_port(domain=domain)
        m.d.comb += [port.en.eq(1), port.data.eq(number), port.addr.eq(0)]
    # Amaranth's simulator takes writes of several domains in any order.
    monkeypatch.setattr(Shadow, "rows", lambda _, memory: [7] * memory.depth)
    work = reads(1, domain="a")
    with pytest.raises(cppsim.Difference, match=r"^row 0 of memory ") as raised:
        cppsim.check(m, work, clocks=dict.fromkeys("ab" if shared else "a", 1e-6))
    assert ("; a row that several domains write" in str(raised.value)) is shared


def test_registers_behind_a_made_clock_come_with_a_cure() -> None:
    def design(assignments: int) -> Module:
        m, count = counter(4)
        loaded = Signal(4, name="loaded")
        m.domains += ClockDomain("sync"), ClockDomain("half", reset_less=True)
        m.d.comb += ClockSignal("half").eq(count[0])
        value = count
        for number in range(assignments):
            m.d.comb += (above := Signal(4, name=f"above{number}")).eq(value + 1)
            value = above
        m.d.half += loaded.eq(value)
        return m

    for assignments in (0, 1):
        cppsim.check(design(assignments), reads(4), clocks=1e-6)
    text = r"^loaded \(.*\) is 3, and 2 in .*; registers behind a clock that the design makes load"
    differs(text, design(2), reads(4), clocks=1e-6)


PAGE = (Path(__file__).parents[1] / "docs" / "differs.md").read_text(encoding="utf-8")
ENTRIES = re.findall(
    r"^\*\*([^*]+)\*\*.*?```python\n(.*?)```",
    PAGE.partition("\n## What differs\n")[2].partition("\n## ")[0],
    flags=re.MULTILINE | re.DOTALL,
)
"""The paragraphs of "What differs": the beginning, and the example."""

BY_CHANCE = "A row of a memory written from two domains at one edge"
"""An entry whose example differs in some runs; `test_a_row_of_two_domains…` makes it differ."""

NO_DIFFERENCE = {
    "Logic has no glitches.": "its wait has a delay, and is not compared",
    "Statements beside a failed `Assert` take effect": "the run that continues is not compared",
}


@pytest.mark.parametrize(
    ("entry", "code"), [x for x in ENTRIES if x[0] != BY_CHANCE], ids=lambda x: x[:30]
)
def test_each_entry_of_what_differs_has_a_cure(entry: str, code: str) -> None:
    def both(m: Module, testbench: Any, *domains: str) -> None:
        async def run(ctx: Any) -> None:
            await testbench(ctx)

        cppsim.check(m, run, clocks=dict.fromkeys(domains, 1e-6))

    lines = (line for line in code.splitlines() if line.startswith((">>>", "...")))
    source = "\n".join(line[4:] for line in lines).replace('("off", "always")', '("check",)')
    # Amaranth's `repeat` complains if the run ends before it.
    source = re.sub(r"await (.*)\.repeat\((.)\)", r"for _ in range(\2): await \1", source)
    names = {**vars(hdl), "cppsim": cppsim, "both": both}
    if entry in NO_DIFFERENCE:
        exec(source, names)
        return
    text = r"in Amaranth's simulator, at .*; .*: \w+"
    refused(cppsim.Difference, text, exec, source, names)


def test_messages_at_an_asynchronous_reset_come_with_a_cure() -> None:
    m = Module()
    m.domains += (domain := ClockDomain("sync", async_reset=True))
    m.d.sync += Print("printed")

    async def work(ctx: Any) -> None:
        await ctx.tick()
        ctx.set(domain.rst, 1)
        await ctx.delay(1e-7)

    differs("; an asynchronous reset does not clock registers", m, work, clocks=1e-6)


# --- wake-ups -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["process", "testbench"])
def test_a_process_that_hears_of_a_glitch_comes_with_a_cure(kind: str) -> None:
    m, count = counter(4)
    above, one = Signal(4), Signal(4)
    # It is 1, but for a glitch in Amaranth's simulator: its paths differ.
    m.d.comb += [above.eq(count + 1), one.eq(above - count)]

    async def watch(ctx: Any) -> None:
        async for _ in ctx.changed(one).sample(count):
            pass

    processes, testbenches = ([watch], []) if kind == "process" else ([], [watch])
    text = (
        r"^process .*watch does not wake up, and wakes up with .* at 5e-07 .*; signals have no gl"
    )
    differs(text, m, reads(4), *testbenches, clocks=1e-6, processes=processes)


@pytest.mark.parametrize("fault", ["history", "early"])
def test_a_sample_of_another_delta_cycle_is_found(
    fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    m, count = counter(4)
    m.d.comb += (above := Signal(4)).eq(count + 1)
    seen = list[Any]()

    async def watch(ctx: Any) -> None:
        async for values in ctx.changed(count).sample(above):
            seen.append(values)

    cppsim.check(m, reads(3), clocks=1e-6, processes=[watch])
    assert seen == [(0, 0), (1, 1), (2, 2), (3, 3)]
    if fault == "history":
        monkeypatch.setattr(LogicSlot, "curr", SignalSlot.curr)
        monkeypatch.setattr(CheckedState, "settle", lambda state: state.model.settle())
    else:
        monkeypatch.setattr(CheckedState, "is_triggered", lambda _: False)
        monkeypatch.setattr(CheckedState, "sampled", lambda state, x: state.readers.read(x) + 1)
    differs(r"^process .*watch wakes up with", m, reads(3), clocks=1e-6, processes=[watch])


class Late(Simulator):
    """A simulator that is wrong: its clocks begin later."""

    def add_clock(self, period: Any, *, phase: Any = None, **options: Any) -> None:
        super().add_clock(period, phase=(phase or 0) + period / 3, **options)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, r"entry 0 is .*, expected \(500000000, "),
        ({"traces": ()}, r"entry 0 has at 'bench\.top\.clk: wire 1' .*, expected "),
    ],
)
def test_an_executor_that_differs_is_named(options: dict[str, Any], text: str) -> None:
    @same_on("always", Late)
    def compare(sim: Bench) -> None:
        m, count = counter()
        work = ticks(3) if options else sim.awaits(3, lambda ctx: ctx.tick(), count)
        sim.run(m, work, **options)

    refused(AssertionError, rf"^<class '.*Late'>: {text}", compare)


def test_fewer_entries_are_a_difference() -> None:
    @same_on("always")
    def compare(sim: Bench) -> None:
        sim.run(counter()[0], ticks(1))
        sim.seen += [1, 2][: 2 - sim.compiled]

    with pytest.raises(AssertionError, match=r"^always: 1 entries, expected 2: "):
        compare()


def test_a_test_that_sees_nothing_fails() -> None:
    with pytest.raises(AssertionError, match=r"^the test has to see something"):
        same_on()(lambda sim: sim.run(counter()[0], ticks(1)))()


@pytest.mark.filterwarnings("ignore::cppsim.FallbackWarning")
def test_a_design_that_is_left_to_amaranth_is_not_compared() -> None:
    @same_on("always")
    def compare(sim: Bench) -> None:
        sim.simulator(foreign(), clocks=None)
        sim.seen.append("seen")

    with pytest.raises(AssertionError, match=r"^left to Amaranth's simulator: Instance is not"):
        compare()


@pytest.mark.parametrize("kind", KINDS)
def test_random_designs_of_all_kinds(kind: str) -> None:
    # Others are compiled by cpp/test_fuzz and running/test_changes.
    make = EXECUTORS["always" if kind == "circuit" else "pysim"]
    sim, design = Bench(make), random_design(1, kind)
    work = random_testbench(design, 1, sim.seen.append, steps=9)
    sim.run(design.module, work, clocks=random_clocks(design, 1))
    assert trace({1: random_design(1, kind)}, "pysim", steps=9)[1] == sim.seen[:9]


def test_an_unknown_kind_names_the_kinds() -> None:
    with pytest.raises(ValueError, match=r"^'fast' is not a kind of design; expected expr"):
        random_design(1, "fast")


@pytest.mark.parametrize(
    ("body", "text"), [("#0\n#0\n", "#0 comes after #0"), ("x!\n", "'x!' is not a change")]
)
def test_bad_waveforms_are_refused(body: str, text: str) -> None:
    header = "$scope module top $end\n$var wire 1 ! clk $end\n$upscope $end\n"
    with pytest.raises(ValueError, match=f"^{text}"):
        waveforms(f"{header}$enddefinitions $end\n{body}")
