"""Many systems at once that do a XOR each, on threads and on a GPU: timed, and every byte checked.

Measured are instance-cycles a second; needs no Amaranth, if a folder has the circuit. `apart`
measures in processes that share nothing, at the same time.
"""

import multiprocessing
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from time import perf_counter
from typing import Protocol
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from bitlane_rtl.abi import Op
from bitlane_sim.bench import BenchError
from bitlane_sim.campaigns import (
    HarnessCircuit,
    Observed,
    Verdict,
    Workload,
    draw,
    expect_answers,
    noise,
    packed,
    submit,
)
from bitlane_sim.campaigns.stimulus import stalls
from bitlane_sim.commands import move
from bitlane_sim.figures import printed, record, write_json
from cppsim.stored import Backend, Encoded, NoGpu, gpu_versions

RAM_BYTES = 1 << 16
"""Bytes of RAM of a circuit that executes a XOR."""

SIZE = 1 << 14
"""Bytes of a XOR."""
_A, _B, _Y = 0, SIZE, 2 * SIZE

TIMINGS = {"same": 0, "diverging": 128}
"""Chances in 256 that a channel of the memory does nothing in a cycle, with a seed for each."""

_LIMIT = 1 << 16
_SEED = 1


class Xors:
    """``instances`` of ``circuit`` on ``backend``, each with data that its number determines."""

    def __init__(self, circuit: HarnessCircuit, backend: Backend, instances: int) -> None:
        self.instances = instances
        self._circuit, self._backend = circuit, backend
        numbers = np.arange(instances)
        self._ram = np.zeros((instances, circuit.ram_bytes), np.uint8)
        self._ram[:, :_Y] = noise(_SEED, numbers, _Y)
        ports = circuit.design.both.description.ports
        self._programs: dict[str, Encoded] = {
            name: submit(xors(numbers, stall)).encoded(ports, instances)
            for name, stall in TIMINGS.items()
        }

    def rate(self, timing: str, ready: Callable[[], object] = lambda: None) -> float:
        """Cycles a second of all together, from power-on; ``ready`` is called before they begin.

        Raises ``BenchError`` if an instance did something wrong.
        """
        runner = self._circuit.runner(self.instances, self._backend)
        self._circuit.put_ram(runner, self._ram)
        ready()
        started = perf_counter()
        results = runner.run_encoded(self._programs[timing])
        seconds = perf_counter() - started
        _check(self._ram, Observed(results, self._circuit.ram(runner)))
        return int(runner.cycles.sum()) / seconds


def xors_on_one_thread(circuit: HarnessCircuit, instances: int) -> Xors:
    """Return ``instances`` of ``circuit``, which run on one thread."""
    return Xors(circuit, circuit.runner(1, "threads:1").compiled, instances)


def xors(numbers: NDArray[np.int64], stall: int) -> Workload:
    """One XOR for each of ``numbers``."""
    every = np.zeros(numbers.size, np.int64)
    records, used, counts = packed([[move(Op.XOR, SIZE, _A, _B, _Y)]])
    settings = stalls(lambda _: stall) | {"memory__seed": draw(_SEED, numbers, "seed", 1 << 32)}
    return Workload(records[every], used[every], counts[every], 1 << 12, _LIMIT, settings)


def _check(before: NDArray[np.uint8], found: Observed) -> None:
    """Every byte of every instance is NumPy's. Raises ``BenchError`` that names the first other."""
    verdict = Verdict(len(before))
    expect_answers(verdict, found)
    verdict.expect(found.results["came"] != 0, lambda _: f"no interrupt in {_LIMIT} cycles")
    verdict.expect(found.results["FAULT"] == 0, lambda _: "the engine stopped with a fault")
    wanted = before.copy()
    wanted[:, _Y : _Y + SIZE] = before[:, _A : _A + SIZE] ^ before[:, _B : _B + SIZE]
    verdict.expect_bytes(found.ram == wanted, found.ram, wanted)
    for instance, reason in verdict.reasons.items():
        wrong = f"{len(verdict.reasons)} of {len(before)} instances are wrong"
        raise BenchError(f"batch: {wrong}; instance {instance}: {reason}")


_ENDED = "batch: a process of one thread has ended; take fewer --instances"


class Measured(Protocol):
    """Something that is measured in a process."""

    def rate(self, timing: str, ready: Callable[[], object]) -> float:
        """Return cycles a second; call ``ready`` before the first cycle."""
        ...


class Apart:
    """Processes, each with a `Measured`, at the other end of ``lines``."""

    def __init__(self, lines: list[Connection]) -> None:
        self._lines = lines

    def rate(self, timing: str) -> float:
        """Return cycles a second of all processes, which begin at once: the sum of their rates.

        Raises ``BenchError`` if a process ends or its measurement raises.
        """
        for _ in ("prepare", "begin"):
            for line in self._lines:
                _send(line, timing)
            answers = [_answer(line) for line in self._lines]
        return sum(answers)


@contextmanager
def apart(processes: int, make: Callable[..., Measured], *arguments: object) -> Iterator[Apart]:
    """Start ``processes``, each of which measures what ``make`` returns for ``arguments``."""
    context = multiprocessing.get_context("spawn")
    lines = []
    running = []
    try:
        for _ in range(processes):
            here, there = context.Pipe()
            process = context.Process(target=_serve, args=(there, make, arguments), daemon=True)
            process.start()
            there.close()
            lines.append(here)
            running.append(process)
        yield Apart(lines)
    finally:
        for line in lines:
            line.close()
        for process in running:
            process.join()


def _send(line: Connection, timing: str) -> None:
    try:
        line.send(timing)
    except OSError as error:
        raise BenchError(_ENDED) from error


def _answer(line: Connection) -> float:
    try:
        answer = line.recv()
    except (EOFError, OSError) as error:
        raise BenchError(_ENDED) from error
    if isinstance(answer, str):
        raise BenchError(answer)
    return float(answer)


def _serve(line: Connection, make: Callable[..., Measured], arguments: tuple[object, ...]) -> None:
    """Measure each timing that arrives, from its second arrival on, until ``line`` closes."""

    def ready() -> None:
        line.send(0.0)
        line.recv()

    try:
        measured = make(*arguments)
        while True:
            line.send(measured.rate(line.recv(), ready))
    except (EOFError, OSError):
        return
    except Exception as error:  # noqa: BLE001, the parent raises every error
        text = " ".join(str(error).split())
        line.send(text if isinstance(error, BenchError) else f"{type(error).__name__}: {text}")


OPTIONS = ""
"""Options of the circuit: the full 64-bit system."""

_INSTANCES = {"threads": 512, "cuda": 1 << 16}
_SHARES = 4
"""Times ``_INSTANCES`` for each thread of many: a slow core takes fewer of them than a fast one."""

ROUNDS = 3
"""Measurements of each timing; the best one counts."""


@dataclass(frozen=True, slots=True)
class BatchRow:
    """Cycles a second of all ``instances`` together, by timing; None: ``note`` has the reason."""

    what: str
    instances: int | None
    rates: Mapping[str, float] | None
    note: str = ""


_LINE = "{:28} {:>9} {}"
HEADER = _LINE.format("", "instances", " ".join(f"{name:>10}" for name in TIMINGS))


def line(row: BatchRow) -> str:
    """The row as a line of a table, in million cycles a second."""
    instances = f"{row.instances:,}" if row.instances else ""
    rates = row.rates
    cells = [f"{rates[name] / 1e6:10.3f}" for name in TIMINGS] if rates else ["missing"]
    note = f"  {row.note}" if row.note else ""
    return _LINE.format(row.what, instances, " ".join(cells) + note)


def report(measured: Iterable[BatchRow], file: Path | None, compiler: Mapping[str, str]) -> None:
    """Print the rows as they are measured, and write them to ``file``, if there is one."""
    print(HEADER)
    rows = printed(measured, line)
    if file:
        gpu = any(row.what == "GPU" and row.rates for row in rows)
        tools = {**compiler, "NumPy": np.__version__, **(gpu_versions() if gpu else {})}
        write_json(file, record("batch", list(map(asdict, rows)), (), tools))


def measure_batches(
    circuit: HarnessCircuit, backend: str, instances: int | None, progress: Callable[[str], None]
) -> Iterator[BatchRow]:
    """One core, all cores, apart and together, and the GPU, or what ``backend`` says.

    ``auto``: a GPU if there is one.
    Raises ``BenchError`` if an instance did something wrong, ``SimulationError`` without compiler
    or backend.
    """
    if backend != "cuda":
        yield from _on_cores(circuit, instances, progress)
    if backend != "threads":
        progress("cuda")
        try:
            own, seconds = _gpu(circuit)
        except NoGpu as error:
            if backend == "cuda":
                raise
            yield BatchRow("GPU", None, None, str(error))
            return
        systems = Xors(circuit, own, instances or _INSTANCES["cuda"])
        rates = best({"GPU": systems.rate}, progress)["GPU"]
        yield BatchRow("GPU", systems.instances, rates, f"compiled in {seconds:.1f} s")


def _on_cores(
    circuit: HarnessCircuit, instances: int | None, progress: Callable[[str], None]
) -> Iterator[BatchRow]:
    """One core, and all: processes apart, whose sum is what the machine gives, and threads.

    They take turns, as machines are not equally fast all the time.
    """
    cores = os.cpu_count() or 1
    each = instances or _INSTANCES["threads"]
    one, many = f"threads, {_cores(1)}", f"threads, {_cores(cores)}"
    single = xors_on_one_thread(circuit, each)
    if cores == 1:
        yield BatchRow(one, each, best({one: single.rate}, progress)[one])
        return
    number = instances or _SHARES * each * cores
    together = Xors(circuit, circuit.runner(1, f"threads:{cores}").compiled, number)
    processes = f"{cores} processes, {_cores(1)} each"
    with apart(cores, xors_on_one_thread, circuit, each) as others:
        ways = {one: single.rate, processes: others.rate, many: together.rate}
        rates = best(ways, progress)
    yield BatchRow(one, each, rates[one])
    yield BatchRow(processes, each * cores, rates[processes], _share(rates, processes, one, cores))
    notes = _share(rates, many, processes, 1), _share(rates, many, one, cores)
    yield BatchRow(many, number, rates[many], "; ".join(notes))


def best(
    ways: Mapping[str, Callable[[str], float]], progress: Callable[[str], None]
) -> dict[str, dict[str, float]]:
    """Return the best rate of each way by timing, of `ROUNDS` rounds in which each has its turn."""
    found = {what: dict.fromkeys(TIMINGS, 0.0) for what in ways}
    for name in TIMINGS:
        for _ in range(ROUNDS):
            for what, rate in ways.items():
                progress(f"{what}, {name}")
                found[what][name] = max(found[what][name], rate(name))
    return found


def _share(rates: Mapping[str, Mapping[str, float]], what: str, of: str, times: int) -> str:
    shares = ", ".join(f"{rates[what][x] / (times * rates[of][x]):.2f}" for x in TIMINGS)
    return f"{shares} of {f'{times} times {_cores(1)}' if times > 1 else of.partition(',')[0]}"


def _cores(count: int) -> str:
    return f"{count} core{'s' if count > 1 else ''}"


def _gpu(circuit: HarnessCircuit) -> tuple[Backend, float]:
    """The GPU's backend, and the seconds that its compiler took; the text is new to its cache."""
    started = perf_counter()
    source = circuit.design.both
    design = replace(circuit.design, both=replace(source, text=f"{source.text}\n// {uuid4()}\n"))
    backend = replace(circuit, design=design).runner(1, "cuda").compiled
    return backend, perf_counter() - started
