"""All instances of a recorded program do the same as the testbench did, cycle for cycle."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from amaranth.hdl import (
    Assert,
    Cat,
    ClockDomain,
    ClockSignal,
    Format,
    Module,
    Mux,
    Print,
    Signal,
    signed,
)
from amaranth.lib import data, stream
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.sim import DomainReset

from cppsim import Batch, BatchError, Program
from cppsim.batch import cached, emit
from cppsim.testing import RandomDesign, random_circuit, random_machine, random_system
from support.batches import batch_of, compare_recording, on_backend
from support.carriers import Part, RandomProgram, sampler
from support.fuzz import write_once
from support.host_gpu import host_gpu
from support.seeds import seeds, slow
from support.small import refused

pytestmark = pytest.mark.usefixtures("gpu")

BACKENDS = ("threads", "cuda")


@pytest.mark.parametrize("make", [slow(random_circuit), random_machine, slow(random_system)])
@pytest.mark.parametrize("seed", seeds(1, 3))
def test_random_testbenches_on_random_designs(
    make: Callable[[int], RandomDesign], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_once(monkeypatch.setattr)
    assert compare_recording(make(seed + 1), BACKENDS, seed=seed + 1) > 50


def test_each_instance_gets_data_of_its_own(backend: str) -> None:
    fifo = SyncFIFO(width=70, depth=4)

    async def testbench(ctx: Any) -> None:
        ctx.set(fifo.w_en, 1)
        for word in (1, 1 << 69, 3):
            ctx.set(fifo.w_data, word)
            await ctx.tick()
        ctx.set(fifo.w_en, 0)
        ctx.set(fifo.r_en, 1)
        async for _, _, full, word in ctx.tick().sample(fifo.r_rdy, fifo.r_data):
            if not full:
                break
            assert word in (1, 1 << 69, 3)

    batch = Batch(fifo, 5, backend)
    recording = batch.record(testbench)
    data = np.random.default_rng(1).integers(0, 1 << 6, (5, 3, 2), np.uint64)
    results = batch.run(recording.program.replaced("w_data", data).get("$cycles"))
    assert recording.results["r_data 2"].tolist() == [0, 1 << 5]
    for number, name in enumerate(("r_data", "r_data 2", "r_data 3")):
        assert (results[name] == data[:, number]).all()
    assert results["$cycles"].tolist() == [7] * 5
    data[:2] = [[1, 0], [0, 1 << 5], [3, 0]]
    again = Batch(fifo, 5, backend).run(recording.program.replaced("w_data", data))
    assert recording.differing(again).tolist() == [False, False, True, True, True]


def delay_circuit() -> Any:
    """Return a delay: ``done`` is 1 once, ``wait`` cycles after ``go``; ``pair`` is added up."""
    pair = data.StructLayout({"low": 4, "high": signed(4)})

    def build(m: Module, x: Any) -> None:
        x.left = Signal(8, name="left")
        m.submodules.rows = x.rows = Memory(shape=4, depth=4, init=[])
        m.d.comb += x.sum.eq(x.pair.low + x.pair.high)
        m.d.sync += [x.done.eq(x.left == 1), x.left.eq(Mux(x.go, x.wait, x.left - x.left.bool()))]

    members = {"go": In(1), "wait": In(8), "pair": In(pair), "sum": Out(signed(6)), "done": Out(1)}
    return Part(members, build=build)


def test_every_instance_waits_for_as_long_as_it_takes(backend: str) -> None:
    delay = delay_circuit()

    async def testbench(ctx: Any) -> None:
        ctx.set(delay.go, 1)
        ctx.set(delay.wait, 9)
        await ctx.tick()
        ctx.set(delay.go, 0)
        await ctx.tick().until(delay.done)
        ctx.set(delay.pair.high, -5)
        assert ctx.get(delay.sum) == -5

    batch = Batch(delay, 4, backend)
    recording = batch.record(testbench, limit=40)
    waits = np.array([1, 9, 30, 60])
    results = batch.run(recording.program.replaced("wait", waits))
    assert {name: int(x) for name, x in recording.results.items()} == {"until done": 10, "sum": -5}
    assert results["until done"].tolist() == [2, 10, 31, 0]
    assert results["sum"].tolist() == [-5] * 4


def test_one_instance_alone_prints_and_writes_waveforms(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    layout = data.StructLayout({"low": 4, "high": signed(4)})
    dut: Any = Part(
        {"i": In(stream.Signature(layout)), "total": Out(8)},
        sync=lambda x: [
            x.total.eq(x.total + x.i.payload.low - x.i.payload.high),
            Print("total is", x.total),
            Assert(x.total < 100, Format("{} is {:#x}", x.i.payload.low, x.total)),
        ],
    )
    batch = Batch(dut, 3, "threads")
    program = Program().set("i__payload.high", np.array([0, -8, -1]))
    with program.repeat(3):
        program.set("i__payload.low", np.arange(9).reshape(3, 3)).step().get(dut.total)
    program.until("total", 5, "waited").get("$cycles")
    results = batch.run(program)
    for instance in range(3):
        vcd = tmp_path / f"{instance}.vcd"
        alone = batch.alone(instance, program, vcd=vcd)
        assert {name: np.asarray(x).tolist() for name, x in alone.items()} == {
            name: values[instance].tolist() for name, values in results.items()
        }
        printed = capsys.readouterr().out.splitlines()
        totals = [0, *results["total"][instance].tolist()]
        assert printed == [f"total is {x}" for x in totals]
        assert "total" in vcd.read_text()
    assert batch.cycles.tolist() == [4, 4, 4]
    long = Program().set("i__payload.low", 15).step(9)
    batch.reset()
    batch.run(long)
    assert batch.failures() == dict.fromkeys(range(3), ("Assertion violated: 15 is 0x69", 7))
    with pytest.raises(AssertionError, match="15 is 0x69"):
        batch.alone(1, long)
    with pytest.raises(BatchError, match="instance: 3 is more than 2"):
        batch.alone(3, program)


def test_one_instance_alone_has_results_of_the_shape_of_a_run() -> None:
    batch, program = Batch(sampler(), 2, "threads"), Program()
    with program.repeat(3):
        program.set("number100", [-5, -1 << 68]).step().until("above100", 3, "waited")
        with program.repeat(2):
            program.step().get("above100").get("$cycles")
    program.get("above100", "whole")
    results = batch.run(program)
    for instance in range(2):
        alone = batch.alone(instance, program)
        assert alone.pop("whole") == (-4, 1 - (1 << 68))[instance]
        assert alone["above100"].shape == (3, 2, 2)
        assert {name: (x.dtype, x.tolist()) for name, x in alone.items()} == {
            name: (results[name].dtype, results[name][instance].tolist()) for name in alone
        }


_SAYS: list[tuple[Callable[[Any, Any], Any], str]] = [
    (lambda _, ctx: ctx.delay(1e-6), "^delay: a program has no word for it"),
    (lambda dut, ctx: ctx.changed(dut.done), "^changed: a program has no word"),
    (lambda dut, ctx: ctx.posedge(dut.done), "^posedge: a program has no word"),
    (lambda dut, ctx: ctx.set(dut.done, 1), "set 'delay.done': the design drives it; only inputs"),
    (lambda dut, ctx: ctx.set(Cat(dut.go, dut.wait), 1), "set .*: a program sets one port at a"),
    (lambda dut, ctx: ctx.set(dut.rows.data[0], 1), "set .*: .*; rows are Batch.memory's"),
    (lambda dut, ctx: ctx.get(dut.rows.data[0]), "get .*: .*; rows are Batch.memory's"),
    (lambda dut, ctx: ctx.get(dut.left), r"get 'left': .* batch with expose=\['delay.left'\]"),
    (lambda dut, ctx: ctx.get(Signal(name="other")), "get 'other': it is not a port .* the design"),
    (lambda dut, ctx: ctx.tick("made"), "tick of 'made': a cycle of the batch clocks sync, and"),
    (lambda dut, ctx: ctx.tick("later"), "tick of 'later': a cycle of the batch clocks sync, and"),
    (lambda dut, ctx: ctx.tick().until(~dut.done), "until .*: a program waits for a port that is"),
    (lambda dut, ctx: ctx.tick().until(dut.done), "'delay.done': 0 for 30 cycles; say a higher"),
    (lambda dut, ctx: ctx.tick().sample(dut.done).until(dut.done), "until with sample"),
]


@pytest.mark.parametrize(("ask", "answer"), _SAYS)
def test_what_a_program_cannot_say_is_named(ask: Callable[[Any, Any], Any], answer: str) -> None:
    m, delay, half = Module(), delay_circuit(), Signal()
    m.submodules.delay = delay
    m.domains.made, m.domains.later, m.domains.sync = map(ClockDomain, ("made", "later", "sync"))
    m.d.sync += half.eq(~half)
    m.d.comb += ClockSignal("made").eq(half)
    m.d.made += Signal().eq(1)
    m.d.later += Signal().eq(1)

    async def testbench(ctx: Any) -> None:
        await ask(delay, ctx)

    expose = ["delay.go", "delay.wait", "delay.done"]
    batch = Batch(m, 1, "threads", expose=expose, clocks=("sync",))
    refused(BatchError, answer, lambda: batch.record(testbench, limit=30))


@pytest.mark.parametrize("testbench", [None, [1, 2], lambda ctx: None])
def test_one_async_function_is_recorded(testbench: Any) -> None:
    with pytest.raises(BatchError, match="record takes one async function of a context, not"):
        Batch(SyncFIFO(width=8, depth=4), 1, "threads").record(testbench)


def two_edges() -> tuple[Module, Any]:
    """Return counts of rising edges, of those without resets, and of those before falling ones."""
    m = Module()
    go, rose, fell = Signal(), Signal(4), Signal(4)
    count = Signal(8, reset_less=True)
    m.domains.sync = sync = ClockDomain()
    m.domains.fall = ClockDomain(clk_edge="neg")
    m.d.sync += [count.eq(count + 1), rose.eq(rose + go)]
    m.d.fall += fell.eq(rose)
    return m, SimpleNamespace(rst=sync.rst, go=go, count=count, rose=rose, fell=fell)


def test_a_reset_ends_a_wait_after_the_cycles_that_passed(backend: str) -> None:
    m, x = two_edges()
    count = x.count

    async def testbench(ctx: Any) -> None:
        await ctx.tick().repeat(2)
        ctx.set(x.rst, 1)
        with pytest.raises(DomainReset):
            await ctx.tick().repeat(5)
        assert ctx.get(count) == 3
        assert await ctx.tick().sample(count) == (True, True, 3)
        with pytest.raises(BatchError, match="a reset during until: a program has no word"):
            await ctx.tick().until(count)

    batch = Batch(m, 2, backend)
    recording = batch.record(testbench)
    results = batch.run(recording.program)
    assert {x: values.tolist() for x, values in results.items()} == {
        "count": [3] * 2,
        "count 2": [3] * 2,
    }
    assert batch.cycles.tolist() == [4, 4]


def test_falling_edges_are_over_before_the_testbench_goes_on(backend: str) -> None:
    m, x = two_edges()

    async def testbench(ctx: Any) -> None:
        ctx.set(x.go, 1)
        await ctx.tick("fall")
        await ctx.tick()
        assert (ctx.get(x.rose), ctx.get(x.fell)) == (2, 2)
        with pytest.raises(BatchError, match="sample at a falling edge"):
            ctx.tick("fall").sample(x.rose)

    batch = Batch(m, 2, backend)
    recording = batch.record(testbench)
    assert not recording.differing(batch.run(recording.program)).any()
    assert batch.cycles.tolist() == [2, 2]


# --- random programs ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Layout:
    """A tile's layout: its lanes, use of shared memory for its words, and use of short indices."""

    lanes: int
    shared: bool = True
    short: bool = True


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "seed", "instances", "layout"),
    [
        (random_circuit, 0, 129, Layout(128)),
        (random_machine, 1, 65, Layout(64)),
        (random_system, 2, 33, Layout(32)),
        (random_circuit, 3, 31, Layout(128, short=False)),
        (random_system, 4, 130, Layout(128, shared=False)),
    ],
)
def test_random_programs(
    make: Any, seed: int, instances: int, layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not layout.short:
        monkeypatch.setattr(emit, "SHORT_BITS", 0)
        monkeypatch.setattr(cached, "CODE_DIGEST", f"{cached.CODE_DIGEST}, with long programs only")
    design = make(seed)
    on_threads = batch_of(design, instances, "threads")
    size = on_threads.written.source("cuda").description.instance_bytes
    gpu = host_gpu(2 * size * (2 * layout.lanes - 1), 4 << 16 if layout.shared else 0)
    monkeypatch.setitem(sys.modules, "cupy", gpu)
    on_gpu = on_backend(on_threads, "cuda")
    assert on_gpu.compiled.together == layout.lanes
    ports, compared = list(on_threads.description.ports.values()), 0
    for number in range(2):
        program = RandomProgram(ports, 2 * seed + number, instances, 25).of()
        expected, found = on_threads.run(program), on_gpu.run(program)
        different = [name for name in expected if (expected[name] != found[name]).any()]
        assert not different, f"seed {seed}: {different[0]}"
        rows = on_threads.all_rows()
        assert (rows == on_gpu.all_rows()).all(), f"seed {seed}: memories"
        compared += len(expected)
    assert compared > 1
