"""Instance-cycles a second of many systems at once, on threads and on a GPU, every byte checked.

Needs no Amaranth, if a folder has the circuit.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from time import perf_counter
from uuid import uuid4

import numpy as np

from bitlane_sim.campaigns.folder import HarnessCircuit
from bitlane_sim.figures import printed, record, write_json
from cppsim.stored import Backend, NoGpu, gpu_versions
from simulators.xors import TIMINGS, Xors, apart, xors_on_one_thread

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
