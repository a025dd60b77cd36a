"""A design that is interpreted shows what it shows compiled, also from the middle of a run on."""

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from amaranth.hdl import (
    Cat,
    ClockDomain,
    ClockSignal,
    Const,
    Cover,
    Format,
    Module,
    Mux,
    Print,
    ResetSignal,
    Signal,
)
from amaranth.lib.memory import Memory

from cppsim import FallbackWarning, designs
from cppsim.compiling import Builder, CacheWarning
from cppsim.errors import SimulationError
from cppsim.native import interpreted
from cppsim.running import Stops
from cppsim.testing import (
    EXECUTORS,
    Bench,
    RandomDesign,
    random_circuit,
    random_clocked,
    random_counters,
    random_machine,
    random_system,
    trace,
    waveforms,
)
from cppsim.testing.values import narrow_values
from support.fuzz import FIRST_SEED, fuzz
from support.seeds import seeds, slow
from support.small import counter, followed, text_of

ALWAYS = str(10**15)
"""Instructions that no test executes."""

WIDTHS = (3, 8, 16, 24, 64, 70)
"""Bits of rows, in elements of all sizes."""


Interpret = Callable[[str], Path]


@pytest.fixture
def interpret(monkeypatch: pytest.MonkeyPatch, fresh_cache: Path) -> Interpret:
    """Return a function that sets when designs are compiled, and returns the empty cache."""

    def chosen(instructions: str) -> Path:
        monkeypatch.setenv("CPPSIM_INTERPRET", instructions)
        return fresh_cache

    return chosen


def busy(ticks: int, executor: str = "always") -> tuple[Any, list[Any]]:
    """Return a simulator of a design with everything, and what its testbench will have seen.

    The design has memories, made clocks, resets, messages, and registers of all widths.
    """
    m, count = counter(40, step=(given := Signal(8)))
    wide, made, fallen, shown = Signal(200, init=1), Signal(init=1), Signal(9), Signal(3)
    m.domains += [ClockDomain("sync"), ClockDomain("made", async_reset=True)]
    m.domains += ClockDomain("fall", clk_edge="neg", reset_less=True)
    m.d.comb += [
        ClockSignal("made").eq(made & (count[:2] != 3)),
        ResetSignal("sync").eq(given == 99),
        ResetSignal("made").eq(given == 5),
        ClockSignal("fall").eq(count[1] ^ made),
    ]
    m.d.sync += [made.eq(~made), wide.eq(wide << 3 ^ count)]
    m.d.fall += fallen.eq(fallen + count)
    m.d.made += shown.eq(shown + 1)
    with m.If(count[:3] == 5):
        m.d.sync += Print(Format("{:d} {:x}", count, wide))
    m.d.comb += Cover(count == 7, Format("seven {:x} {}", Cat(count, wide), count[:9]))
    values, memories = [count, wide, fallen, shown, Mux(made, count, 5)], []
    for number, width in enumerate(WIDTHS):
        memory = Memory(shape=width, depth=5, init=[number, 1, 2])
        m.submodules[f"memory_{number}"] = memory
        memories.append(memory)
        write = memory.write_port(granularity=None if width % 2 else width // 2)
        read, port = Signal(width), memory.read_port(domain="comb")
        m.d.comb += [write.addr.eq(count), write.data.eq(count * 0x10301), read.eq(port.data)]
        m.d.comb += [write.en.eq(count[1:3]), port.addr.eq(given)]
        values.append(read)
    sim = Bench(EXECUTORS[executor])

    async def work(ctx: Any) -> None:
        for number in range(ticks):
            ctx.set(given, number * 37 & 255)
            memory = memories[number % len(WIDTHS)]
            ctx.set(memory.data[number % 4], number << 62 | number)
            sim.seen.append(await ctx.tick().sample(*values))
            sim.seen.append([ctx.get(value) for value in values])
        await ctx.tick().repeat(ticks)
        sim.seen.append([ctx.get(value) for value in values])

    return sim.simulator(m, work), sim.seen


def run_busy(ticks: int, executor: str = "always") -> tuple[list[Any], bool]:
    """Return what the testbench sees, and whether compiled code was the last to run it."""
    simulator, seen = busy(ticks, executor)
    simulator.run()
    return seen, is_compiled(simulator)


def is_compiled(simulator: Any) -> bool:
    state = simulator._engine._state
    return hasattr(state, "model") and state.model._interpreter is None


def libraries(cache: Path) -> int:
    return len(list(cache.glob("cppsim/*/library.so")))


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Interpret also what the cache has; look after each stop whether compiling pays."""
    narrow_values(monkeypatch.setattr)
    monkeypatch.setattr(Builder, "known", lambda *_: None)
    monkeypatch.setattr(Stops, "period", 1)


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("make", [slow(random_circuit), random_machine, random_system])
@pytest.mark.parametrize("seed", seeds(1, 60))
def test_random_designs(
    make: Callable[[int], RandomDesign], seed: int, interpret: Interpret
) -> None:
    found = -1
    for each in range(10 * seed, 10 * seed + 10):
        cache, found = interpret(ALWAYS), found + 1
        expected = trace({each: make(each)}, "pysim", steps=12)
        assert trace({each: make(each)}, "engine", steps=12) == expected
        if libraries(cache) == found:
            break  # else it has a wide operation: 1 of 5
    else:
        pytest.fail("none was interpreted")
    for instructions in (1, Random(each).randrange(2, 3000)):
        interpret(str(instructions))
        assert trace({each: make(each)}, "engine", steps=12) == expected
    assert libraries(cache) == found + 1


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("seed", seeds(1, 30))
def test_random_testbenches(seed: int, interpret: Interpret) -> None:
    make = (random_counters, random_clocked)[seed % 2]
    expected = followed("pysim", make(seed), seed=seed)
    for instructions in ("1", str(Random(seed).randrange(1, 9000)), ALWAYS):
        interpret(instructions)
        assert followed("always", make(seed), seed=seed) == expected


@pytest.mark.slow
@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("instructions", [ALWAYS, "20000"])
@pytest.mark.parametrize("seed", seeds(2, 30))
def test_random_systems_checked(instructions: str, seed: int, interpret: Interpret) -> None:
    interpret(instructions)
    assert fuzz(random_system, [FIRST_SEED + seed], steps=200) > 0


@pytest.mark.parametrize("instructions", [*map(slow, ("0", "1", "300")), "5000", ALWAYS])
def test_everything_in_one_design(
    instructions: str, interpret: Interpret, capsys: pytest.CaptureFixture[str]
) -> None:
    """Values, messages and waveforms, and both again after a reset."""
    cache, shown = interpret(instructions), []
    for executor in ("pysim", "always"):
        simulator, seen = busy(150, executor)
        waves = waveforms(text_of(simulator))
        simulator.reset()
        simulator.run()
        assert seen[: len(seen) // 2] == seen[len(seen) // 2 :]
        shown.append((seen, waves, capsys.readouterr().out))
    assert shown[0] == shown[1]
    assert shown[0][2].count("\n") > 40
    assert is_compiled(simulator) == (instructions != ALWAYS) == bool(libraries(cache))


def test_a_compiled_design_is_not_interpreted_again(interpret: Interpret) -> None:
    cache = interpret("5000")
    first, _ = run_busy(150)
    interpret(ALWAYS)
    assert run_busy(150) == (first, True)
    assert libraries(cache) == 1


def test_two_instances_are_compiled_apart(interpret: Interpret) -> None:
    interpret("5000")
    both = [busy(100) for _ in range(2)]
    (first, seen), (other, _) = both
    first.run()
    assert (is_compiled(first), is_compiled(other)) == (True, False)
    other.run()
    assert seen == both[1][1] == run_busy(100, "pysim")[0]


def test_a_testbench_that_never_waits(interpret: Interpret) -> None:
    cache = interpret("2000")
    m, inputs = Module(), [Signal(8, name=f"x{k}") for k in range(40)]
    total: Any = sum((x * x for x in inputs), Const(0))
    shown = Signal(22)
    m.d.comb += shown.eq(total)

    async def work(ctx: Any) -> None:
        for value in range(50):
            ctx.set(inputs[value % 40], value)
            assert ctx.get(shown) == sum(x * x for x in range(max(0, value - 39), value + 1))

    simulator = Bench(EXECUTORS["always"]).run(m, work, clocks=None)
    assert (is_compiled(simulator), libraries(cache)) == (True, 1)


def test_a_run_that_is_interrupted_while_it_compiles(
    interpret: Interpret, monkeypatch: pytest.MonkeyPatch
) -> None:
    interpret("1000")
    m, count = counter(16, step=3)
    sim = Bench(EXECUTORS["always"])
    simulator = sim.simulator(m, sim.reads(300, count))
    with monkeypatch.context() as patched:
        patched.setattr(Builder, "compile_text", interrupted)
        with pytest.raises(KeyboardInterrupt):
            simulator.run()
    assert not is_compiled(simulator)
    simulator.run()
    assert is_compiled(simulator)
    assert sim.seen == [[3 * k] for k in range(1, 301)]


def interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_cache_that_cannot_be_written(
    interpret: Interpret, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interpret("5000")
    (tmp_path / "file").touch()
    monkeypatch.setenv("CPPSIM_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.warns(CacheWarning, match="is used until Python ends"):
        first, _ = run_busy(150)
    interpret(ALWAYS)
    assert run_busy(150) == (first, True)


def test_wide_operations_are_compiled_at_once(interpret: Interpret) -> None:
    cache = interpret(ALWAYS)
    m, a, b = Module(), Signal(65, init=3), Signal(65)
    m.d.comb += b.eq(a * a)
    sim = Bench(EXECUTORS["always"])
    sim.run(m, sim.sets(a, (3,), b), clocks=None)
    assert sim.seen == [[9]]
    assert libraries(cache) == 1


def failing(*_: object) -> None:
    raise SimulationError("no space is left")


def test_a_failed_compilation_warns(interpret: Interpret, monkeypatch: pytest.MonkeyPatch) -> None:
    interpret("5000")
    expected, _ = run_busy(100, "pysim")
    monkeypatch.setattr(Builder, "compile_text", failing)
    with pytest.warns(FallbackWarning, match="interpreted, not compiled: no space is left"):
        shown, _ = run_busy(100)
    assert shown == expected


def test_without_a_compiler(interpret: Interpret, monkeypatch: pytest.MonkeyPatch) -> None:
    interpret(ALWAYS)
    monkeypatch.setenv("CPPSIM_CXX", "/no/such/compiler")
    with pytest.warns(FallbackWarning, match="left to Amaranth's simulator: "):
        shown, _ = run_busy(20)
    assert shown == run_busy(20, "pysim")[0]


def test_another_layout_of_the_compiled_design_is_found(
    interpret: Interpret, monkeypatch: pytest.MonkeyPatch
) -> None:
    interpret("5000")
    monkeypatch.setattr(interpreted, "element_bits", lambda _: 64)
    monkeypatch.setattr(designs, "CODE_DIGEST", "another layout")
    with pytest.warns(FallbackWarning, match="memory 0 is at byte .* expected it at byte"):
        run_busy(100)


def test_a_variable_that_is_not_a_number(interpret: Interpret) -> None:
    interpret("soon")
    with pytest.warns(FallbackWarning, match="CPPSIM_INTERPRET: 'soon' is not a number"):
        run_busy(2)
