"""Instance-cycles a second of many systems at once, on threads and on a GPU, every byte checked.

    python -m bitlane_sim.bench.batch FOLDER --json FILE

measures the circuit of a folder that `bitlane bench --batch --export FOLDER` has written, and needs
no Amaranth.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from bitlane.driver.commands import encode
from bitlane.errors import BitlaneError
from bitlane.files import expect_writable
from bitlane_rtl.abi import RECORD_WORDS, Op
from cppsim.batch.cuda import NoGpu, gpu_versions
from cppsim.batch.runner import Backend

from ..evaluator import SimulationError
from ..stand.circuit import StandCircuit, open_circuit
from ..stand.command import count
from ..stand.draws import draw, noise
from ..stand.judge import Observed, Verdict, expect_answers
from ..stand.workload import Workload, submit
from .job import move
from .record import BenchError, record, write_json

__all__ = ["HEADER", "OPTIONS", "RAM_BYTES", "BatchRow", "line", "main", "measure_batches", "tools"]

OPTIONS = ""
"""Of the circuit: the full 64-bit system."""
RAM_BYTES = 1 << 16
_SIZE = 1 << 14
"""Bytes of a XOR."""
_A, _B, _Y = 0, _SIZE, 2 * _SIZE

TIMINGS = {"same": 0, "diverging": 128}
"""Chances in 256 that a channel of the memory does nothing in a cycle, with a seed for each."""

_INSTANCES = {"threads": 512, "cuda": 1 << 16}
_LIMIT = 1 << 16
_ROUNDS = 2
_SEED = 1


@dataclass(frozen=True, slots=True)
class BatchRow:
    """Cycles a second of all ``instances`` together, by timing; None: why stands in ``note``."""

    what: str
    instances: int | None
    rates: Mapping[str, float] | None
    note: str = ""

    def as_dict(self) -> dict[str, object]:
        """For JSON."""
        return asdict(self)


HEADER = f"{'':28} {'instances':>9} " + " ".join(f"{name:>10}" for name in TIMINGS)


def line(row: BatchRow) -> str:
    """The row as a line of a table, in million cycles a second."""
    instances = f"{row.instances:,}" if row.instances else ""
    rates = row.rates
    cells = [f"{rates[name] / 1e6:10.3f}" for name in TIMINGS] if rates else ["missing"]
    note = f"  {row.note}" if row.note else ""
    return f"{row.what:28} {instances:>9} {' '.join(cells)}{note}"


def tools(*, gpu: bool) -> dict[str, str]:
    """Versions of what ran, for `record`."""
    return {"NumPy": np.__version__, **(gpu_versions() if gpu else {})}


def measure_batches(
    circuit: StandCircuit, backend: str, instances: int | None, progress: Callable[[str], None]
) -> Iterator[BatchRow]:
    """One core, all cores and the GPU, or what ``backend`` says; ``auto``: a GPU if there is one.

    Raises ``BenchError`` if an instance did something wrong, ``SimulationError`` without compiler
    or backend.
    """
    rates: dict[int, Mapping[str, float]] = {}
    cores = os.cpu_count() or 1
    if backend != "cuda":
        for threads in dict.fromkeys((1, cores)):
            progress(f"threads, {_cores(threads)}")
            own, _ = _compiled(circuit, "threads", threads)
            number = instances or _INSTANCES["threads"] * threads
            rates[threads] = _rates(circuit, own, number)
            note = ""
            if threads > 1:
                shares = [rates[threads][x] / (threads * rates[1][x]) for x in TIMINGS]
                note = f"{', '.join(f'{x:.2f}' for x in shares)} of {threads} times one core"
            yield BatchRow(f"threads, {_cores(threads)}", number, rates[threads], note)
    if backend != "threads":
        progress("cuda")
        try:
            own, seconds = _compiled(circuit, "cuda", None)
        except NoGpu as error:
            if backend == "cuda":
                raise
            yield BatchRow("GPU", None, None, str(error))
            return
        number = instances or _INSTANCES["cuda"]
        yield BatchRow("GPU", number, _rates(circuit, own, number), f"compiled in {seconds:.1f} s")


def _cores(count: int) -> str:
    return f"{count} core{'s' if count > 1 else ''}"


def _compiled(circuit: StandCircuit, name: str, threads: int | None) -> tuple[Backend, float]:
    """The backend ``name``, and the seconds that it took; of a GPU's, nothing is kept before."""
    started = perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        before = os.environ.get("CUPY_CACHE_DIR")
        os.environ["CUPY_CACHE_DIR"] = folder
        try:
            backend = circuit.runner(1, name, threads).backend
        finally:
            os.environ.pop("CUPY_CACHE_DIR")
            if before is not None:
                os.environ["CUPY_CACHE_DIR"] = before
    return backend, perf_counter() - started


def _rates(circuit: StandCircuit, backend: Backend, instances: int) -> dict[str, float]:
    best = dict.fromkeys(TIMINGS, 0.0)
    numbers = np.arange(instances)
    ram = np.zeros((instances, circuit.ram_bytes), np.uint8)
    ram[:, :_Y] = noise(_SEED, numbers, _Y)
    for name, stall in TIMINGS.items():
        work = _work(numbers, stall)
        program = submit(work).program()
        for _ in range(_ROUNDS):
            runner = circuit.runner(instances, backend)
            circuit.put_ram(runner, ram)
            encoded = program.encoded(circuit.description, instances)
            started = perf_counter()
            results = runner.run_encoded(encoded)
            seconds = perf_counter() - started
            _check(ram, Observed(results, circuit.ram(runner)))
            best[name] = max(best[name], runner.cycles() / seconds)
    return best


def _work(numbers: NDArray[np.int64], stall: int) -> Workload:
    """One XOR for each of ``numbers``."""
    words = encode(move(Op.XOR, _SIZE, _A, _B, _Y), interrupt=True)
    records = np.zeros((numbers.size, 1, RECORD_WORDS), np.uint32)
    records[:, 0, : words.size] = words
    settings = {f"memory__stall_{name}": stall for name in ("ar", "r", "aw", "w", "b")}
    used = np.full((numbers.size, 1), words.size)
    seeds = draw(_SEED, numbers, "seed", 1 << 32)
    counts = np.ones(numbers.size, np.int64)
    return Workload(records, used, counts, 1 << 12, _LIMIT, {**settings, "memory__seed": seeds})


def _check(before: NDArray[np.uint8], found: Observed) -> None:
    """Every byte of every instance is NumPy's. Raises ``BenchError`` that names the first other."""
    verdict = Verdict(len(before))
    expect_answers(verdict, found)
    verdict.expect(found.results["came"] != 0, lambda _: f"no interrupt in {_LIMIT} cycles")
    verdict.expect(found.results["FAULT"] == 0, lambda _: "the engine stopped with a fault")
    wanted = before.copy()
    wanted[:, _Y : _Y + _SIZE] = before[:, _A : _A + _SIZE] ^ before[:, _B : _B + _SIZE]
    verdict.expect_bytes(found.ram == wanted, found.ram, wanted)
    for instance, reason in verdict.reasons.items():
        wrong = f"{len(verdict.reasons)} of {len(before)} instances are wrong"
        raise BenchError(f"--batch: {wrong}; instance {instance}: {reason}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the circuit of a folder, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m bitlane_sim.bench.batch", description=__doc__)
    parser.add_argument("folder", type=Path, help="what bitlane bench --batch --export has written")
    parser.add_argument("--backend", choices=("auto", "threads", "cuda"), default="auto")
    parser.add_argument("--instances", type=count, metavar="N")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    chosen = parser.parse_args(arguments)
    try:
        if chosen.json:
            expect_writable("--json", chosen.json)
        circuit, rows = open_circuit(chosen.folder), []
        print(HEADER)
        for row in measure_batches(circuit, chosen.backend, chosen.instances, lambda _: None):
            rows.append(row)
            print(line(row), flush=True)
        if chosen.json:
            gpu = any(row.what == "GPU" and row.rates for row in rows)
            figures = [row.as_dict() for row in rows]
            write_json(chosen.json, record("batch", figures, (), tools(gpu=gpu)))
    except (BitlaneError, SimulationError) as error:
        print(f"bitlane_sim.bench.batch: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
