"""Batches of counters and queues compute the right values, and refuse bad requests in one line."""

import json
import sys
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from amaranth.hdl import ClockDomain, Module, Signal
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.memory import Memory

from cppsim import Batch, BatchError, Program
from cppsim.batch import cuda, open_folder
from cppsim.batch.__main__ import main
from cppsim.testing import RandomDesign, random_machine
from support.batches import export_batch
from support.carriers import RULES, expect_rule, streamed
from support.processes import run, succeed
from support.seeds import slow
from support.small import loop, refused
from support.zoo import Counter


@pytest.mark.parametrize("name", RULES)
def test_the_contract_of_all_that_run_a_design(backend: str, name: str) -> None:
    expect_rule(name, backend)


def test_each_instance_goes_its_own_way(backend: str) -> None:
    batch = Batch(Counter(), 4, backend)
    batch.set("by", np.array([1, 2, 3, 0]))
    batch.set("limit", np.array([[6, 0], [6, 0], [6, 0], [6, 1]], np.uint64))
    assert batch.until("high", 9).tolist() == [True, True, True, False]
    assert batch.cycles.tolist() == [7, 4, 3, 9]
    assert batch.get("count").tolist() == [7, 8, 9, 0]
    assert batch.get("limit").tolist() == [[6, 0], [6, 0], [6, 0], [6, 1]]


def test_a_program_repeats_with_values_of_its_own_each_time(backend: str) -> None:
    steps = np.arange(12).reshape(2, 3, 2)
    program = Program()
    with program.repeat(3):
        with program.repeat(2):
            program.set("by", steps).step().get("count")
        program.get("count", "after two").until("high", 1, "never")
    program.set("by", 0).step(2).get("$cycles")
    batch = Batch(Counter(), 2, backend)
    batch.set("limit", np.array([[127, 0], [0, 1]], np.uint64))
    results = batch.run(program)
    # The wait takes a cycle, too, in which the last step counts again.
    expected = np.zeros((2, 3, 2), int)
    for instance in range(2):
        count = 0
        for k in range(3):
            for j in range(2):
                count += steps[instance, k, j]
                expected[instance, k, j] = count
            count += steps[instance, k, 1]
    assert results["count"].tolist() == (expected % 128).tolist()
    assert results["after two"].tolist() == (expected[..., 1] % 128).tolist()
    assert not results["never"].any()
    assert results["$cycles"].tolist() == [11, 11]


def test_what_is_counted_is_waited_for_like_a_port(backend: str) -> None:
    batch = Batch(Counter(), 2, backend)
    batch.set("by", np.array([50, 0]))
    assert batch.until("$failed", 9).tolist() == [True, False]
    # A check fails at one edge; the next edge is the first that `until` can stop at.
    assert batch.cycles.tolist() == [batch.failures()[0][1] + 2, 9]
    again = Batch(Counter(), 2, backend)
    assert again.until("$cycles", 9).all()
    assert again.cycles.tolist() == [2, 2]


def test_memories_are_arrays(backend: str) -> None:
    batch = Batch(SyncFIFO(width=70, depth=4), 3, backend)
    rows = np.arange(24, dtype=np.uint64).reshape(3, 4, 2)
    batch.set_memory("storage", rows)
    batch.set("w_en", np.array([0, 1, 1]))
    batch.set("w_data", np.array([[1, 1], [2, 2], [3, 3]]))
    batch.step()
    rows[1:, 0] = [[2, 2], [3, 3]]
    assert (batch.memory("storage") == rows).all()
    assert batch.get("r_data").tolist() == [[0, 1], [2, 2], [3, 3]]
    batch.set_memory("storage", rows[0])
    assert (batch.memory("storage") == rows[0]).all()
    batch.reset()
    assert not batch.memory("storage").any()


def test_fields_and_expressions_for_them_are_ports(backend: str) -> None:
    dut = streamed()
    batch, payload = Batch(dut, 2, backend), dut.i.payload
    for low, pair, second in (
        ("i__payload.low", "i__payload.pair", "i__payload.pair.1"),
        (payload.low, payload.pair, payload.pair[1]),
    ):
        batch.reset()
        batch.set(low, np.array([1, 7]))
        batch.set(second, [-8, 3])
        batch.set(pair, batch.get(pair))
        assert batch.get("i__payload").tolist() == [0b1000_0000_001, 0b0011_0000_111]
        program = Program().get(second).set(low, 2).step().get("total")
        results = batch.run(program.replaced("i__payload.low", 3))
        assert results["i__payload.pair.1"].tolist() == [-8, 3]
        assert results["total"].tolist() == batch.get(dut.total).tolist() == [-5, 6]
    batch.set("i__payload", 0b0000_1111_000)
    assert batch.get("i__payload.pair.0").tolist() == [-1, -1]
    assert batch.until(dut.total, 3).all()
    fields = "i__payload.low, i__payload.pair, i__payload.pair.0, i__payload.pair.1"
    refusals: tuple[tuple[Any, int, str], ...] = (
        ("i__payload.low", 8, r"port 'i__payload\.low': 8 does not fit 3 bits"),
        ("i.payload", 1, r"no port 'i\.payload'; did you mean 'i__payload'"),
        (payload.low[0], 1, rf"is not a field of 'i__payload'; there are: {fields}$"),
        (payload.as_value()[4:], 1, rf"is not a field of 'i__payload'; there are: {fields}$"),
        (streamed().total, 1, r"is not a port; there are: .*i__payload"),
        (streamed().i.payload.low, 1, rf"is not a port; .* i__payload, {fields}, i__ready, "),
        ("i__payload.high", 1, rf"no port 'i__payload.high'; .* i__payload, {fields}, i__ready, "),
        (dut.i, 1, "port: an interface; expected a port of it: payload, valid, ready"),
    )
    for key, value, answer in refusals:
        with pytest.raises(BatchError, match=answer) as error:
            batch.set(key, value)
        assert "clk" not in str(error.value)


def test_values_are_replaced_however_a_port_is_called(backend: str) -> None:
    dut = streamed()
    batch = Batch(dut, 2, backend)
    program = Program().set("i__payload", 1).step().get("total", "first")
    with program.repeat(1):
        program.set(dut.i.payload, 2).step().get("total", "second")
    for port in ("i__payload", dut.i.payload):
        other = program.replaced(port, [[3, 4], [5, 6]]).set("i__payload", 7).step().get("total")
        for again, second in ((other, 4), (other.replaced(dut.i.payload, 1), 1)):
            results = batch.run(again)
            assert results["second"].tolist() == [[second], [second + 2 * (second == 4)]]
            assert results["total"].tolist() == [7 if again is other else 1] * 2
    first = Program().set(dut.i.valid, 0).set(dut.i.payload, 1).get("i__valid").step().get("total")
    results = batch.run(first.replaced(dut.i.valid, 1).replaced(dut.i.payload, 3))
    assert [x.tolist() for x in results.values()] == [[1, 1], [3, 3]], "both are replaced"
    with pytest.raises(BatchError, match=r"'i__payload' is set 2 times: .*, 2\), not \(2,\)"):
        batch.run(program.replaced(dut.i.payload, [1, 2]))
    with pytest.raises(BatchError, match="no port 'total' is set; set are: i__payload"):
        batch.run(program.replaced(dut.total, 1))

    async def testbench(ctx: Any) -> None:
        ctx.set(dut.i.payload.low, 5)
        await ctx.tick()
        ctx.get(dut.total)

    recorded = batch.record(testbench).program
    for port in ("i__payload", dut.i.payload):
        assert batch.run(recorded.replaced(port, [1, 2]))["total"].tolist() == [1, 2]


def test_a_reset_of_a_read_port_and_a_clock_that_the_design_makes(backend: str) -> None:
    """The made clock is high at power-on, and for two cycles of four: it has one edge in them."""
    m, count = Module(), Signal(2, reset_less=True)
    shown, made, one = (Signal(8, name=name) for name in ("shown", "made", "one"))
    m.domains.sync = domain = ClockDomain()
    m.domains.half = half = ClockDomain(reset_less=True)
    half.clk = Signal(init=1, reset_less=True)
    m.submodules.memory = memory = Memory(shape=8, depth=4, init=[9])
    port, read = memory.read_port(), Signal(init=1)
    m.d.comb += [shown.eq(port.data), port.en.eq(read), one.eq(1)]
    m.d.sync += [count.eq(count + 1), half.clk.eq(count[1])]
    m.d.half += made.eq(made + 1)
    batch = Batch(m, 2, backend, expose=["shown", "made", "one"])
    assert batch.get("one").tolist() == [1, 1]  # before anything settles
    batch.step()
    batch.set(domain.rst, [0, 1])
    batch.set("read", 0)
    program = Program()
    with program.repeat(8):
        program.step().get("made").get("shown")
    results = batch.run(program)
    assert results["shown"].tolist() == [[9] * 8, [0] * 8]
    assert results["made"].tolist() == [[0, 1, 1, 1, 1, 2, 2, 2]] * 2


def test_a_check_that_fails_is_reported_of_its_instance_alone_with_its_values(backend: str) -> None:
    batch = Batch(Counter(), 4, backend)
    batch.set("by", np.array([1, 60, 35, 0]))
    batch.step(3)
    first = {1: ("Assertion violated: 120 is too far", 2)}
    assert batch.failures() == first
    batch.step(2)  # it fails again in instance 1
    assert batch.failures() == first | {2: ("Assertion violated: 105 is too far", 3)}
    assert batch.get("count").tolist() == [5, 300 % 128, 175 % 128, 0]


def test_a_folder_runs_without_amaranth(tmp_path: Path) -> None:
    batch = Batch(Counter(), 50, "threads")
    program = Program().set("by", np.arange(50)).step(3).get("count")
    batch.export(tmp_path / "there", program)
    expected = batch.run(program)["count"]
    code = "import os, sys, runpy; sys.modules['amaranth'] = None; sys.argv[0] = 'cppsim.batch';"
    # The folder's own modules run, not the installed ones.
    code += "import cppsim.batch.folder as own; assert own.__file__.startswith(os.getcwd());"
    code += "runpy.run_module('cppsim.batch', run_name='__main__')"
    there = tmp_path / "there"
    command = (sys.executable, "-c", code, ".", "--backend", "threads")
    output = succeed(*command, cwd=there, PYTHONPATH=str(there))
    assert json.loads(output)["instance_cycles"] == 150
    with np.load(there / "results.npz") as results:
        assert (results["count"] == expected).all()
    about = there / "batch.json"
    about.write_text(about.read_text().replace('"instances": 50', '"instances": 70'))
    with pytest.raises(BatchError, match="it has not the data of 70 instances; export it again"):
        open_folder(there, "threads")
    (there / "data.npz").write_bytes(b"no")
    done = run(*command, cwd=there, PYTHONPATH=str(there))
    assert done.returncode == 2
    assert done.stderr.startswith("error: . is not a complete batch:")
    with pytest.raises(BatchError, match="export before anything runs"):
        batch.export(tmp_path / "late", program)


def _counting(**options: Any) -> Batch:
    return Batch(Counter(), 1, "threads", **options)


def _repeated(times: int) -> Program:
    program = Program()
    with program.repeat(times):
        for number in range(1 << 12):
            program.get("count", str(number))
    return program


def _nested(*times: int) -> Program:
    program = Program()
    with ExitStack() as stack:
        for count in times:
            stack.enter_context(program.repeat(count))
        program.step()
    return program


@pytest.mark.parametrize(
    ("ask", "answer"),
    [
        (lambda x: x.set("by", [1, 2]), r"'by' takes an array of shape \(3,\), not \(2,\)"),
        (lambda x: x.set("limit", [1, 2]), r"of shape \(3, 2\) or \(3,\), not \(2,\)"),
        (lambda x: x.until("high", 0), "limit: 0; expected a whole number from 1 on"),
        (lambda x: x.step(-1), "cycles: -1; expected a whole number from 0 on"),
        (lambda x: x.memory("rows"), "no memory 'rows'; there are: none"),
        (lambda x: x.set("by", [[1], [1, 2], []]), "'by' takes an array, not rows of different"),
        (lambda x: x.step(1 << 64), "cycles: 18446744073709551616 is more than"),
        (lambda x: x.run(_repeated(1 << 33)), "times: 8589934592 is more than 4294967296"),
        (lambda x: x.run(_repeated(1 << 32)), "result of the program takes more memory than there"),
        (lambda x: x.run(_nested(1 << 32, 2)), "another: 8589934592 is more than 4294967296"),
        (lambda x: x.run(_nested(*[1 << 32] * 3)), "another: 18446744073709551616 is more than 4"),
        (lambda x: x.run(None), "run takes a Program, not None"),  # type: ignore[arg-type]
        (lambda x: x.get(3), "port: 3; expected a string"),  # type: ignore[arg-type]
        (lambda x: x.run(Program().get("by", 3)), "name of a result: 3; expected a string"),  # type: ignore[arg-type]
        (lambda x: x.run(Program().get("by").get("by")), "two results are called 'by'"),
        (lambda x: x.export("folder", None), "export takes a Program, not None"),  # type: ignore[arg-type]
        (
            lambda _: Batch(SyncFIFO(width=70, depth=4), 1, "threads").set_memory(
                "storage", [[1], [1, 2]]
            ),
            "not rows of different lengths",
        ),
        (lambda x: Batch(Counter(), 1, "threads:0"), "threads: 0; expected a whole"),
        (lambda x: Batch(Counter(), 1, "threads:"), "no backend 'threads:'; there are: auto"),
        (lambda x: Batch(Counter(), 1, "threads:-2"), "no backend 'threads:-2'; there are: auto"),
        (lambda x: Batch(Counter(), 0), "instances: 0; expected a whole number from 1 on"),
        (lambda x: Batch(Counter(), 1, "gpu"), "'gpu'; there are: auto, threads, threads:NUMBER"),
        (lambda x: Batch(Counter(), 1 << 50, "threads"), r"instances take .*: run \d+ at a time"),
        (lambda _: _counting(expose=["a.b"]), "no signal 'a.b'"),
        (lambda _: _counting(clocks=["fast"]), "no clock domain 'fast'; there are: sync"),
        (lambda _: _counting(expose="count"), "expose: 'count'; expected a list of nam"),
        (lambda _: _counting(clocks="sync"), "clocks: 'sync'; expected a list of names"),
        (lambda _: Batch(loop(), 1, "threads"), "[Cc]ombinational"),
    ],
)
def test_a_wrong_request_is_an_error_of_one_line(
    ask: Callable[[Batch], object], answer: str
) -> None:
    refused(BatchError, answer, ask, Batch(Counter(), 3, "threads"))


def counters() -> RandomDesign:
    m, by, wide = Module(), Signal(7, name="by"), Signal(70, name="wide")
    m.domains.sync = ClockDomain()
    count = Signal(7, name="count")
    m.d.sync += [count.eq(count + by), wide.eq((wide << 9) ^ ~count)]
    return RandomDesign(m, [by], [count, wide], {"sync": 1e-6}, ("sync",))


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize(
    ("make", "least"),
    [(counters, 2), slow(partial(random_machine, 1), 11)],
    ids=["counters", "machine"],
)
def test_a_folder_is_compared_on_both_backends(
    make: Callable[[], RandomDesign],
    least: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """``least`` is the number of outputs that the design has at least."""
    export_batch(make(), tmp_path, seed=1, instances=5, rounds=3, alone=2)
    assert main(["--gpu", "--compare", str(tmp_path)]) == 0
    gpu, compared = map(json.loads, capsys.readouterr().out.splitlines())
    assert gpu["GPU"] == "Stand-in"
    assert compared["same"] >= 5 * 3 * least
    assert compared["as alone"] >= 2 * 3 * least
    with np.load(tmp_path / "expected.npz") as data:
        wrong = {name: data[name] for name in data.files}
    name = next(x for x in wrong if x.startswith("2 "))
    wrong[name][1, ...] ^= 1
    np.savez(tmp_path / "expected.npz", **wrong)  # type: ignore[arg-type]
    assert main(["--compare", str(tmp_path)]) == 1
    output = capsys.readouterr().err
    assert output.startswith(f"error: {tmp_path}: {name!r} differs, at [1")
    assert output.endswith("of the single simulator\n")
    run = cuda.Cuda.run

    def spoil(self: cuda.Cuda, instances: Any, program: Any, output: Any) -> None:
        run(self, instances, program, output)
        output ^= np.uint64(4)

    monkeypatch.setattr(cuda.Cuda, "run", spoil)
    assert main(["--compare", str(tmp_path)]) == 1
    assert capsys.readouterr().err.endswith("of threads\n")
    (tmp_path / "results.npz").mkdir()
    assert main([str(tmp_path), "--backend", "threads"]) == 2
    assert "results.npz cannot be written: " in capsys.readouterr().err
