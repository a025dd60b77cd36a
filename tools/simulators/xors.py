"""Many systems at once that do a XOR each, of data of their own: timed, and every byte checked.

`apart` measures in processes that share nothing, at the same time.
"""

import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from time import perf_counter
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bitlane_rtl.abi import Op
from bitlane_sim.bench import BenchError
from bitlane_sim.campaigns.arrays import draw, noise
from bitlane_sim.campaigns.commands import move
from bitlane_sim.campaigns.folder import HarnessCircuit
from bitlane_sim.campaigns.scoreboard import Observed, Verdict, expect_answers
from bitlane_sim.campaigns.stimulus import Workload, packed, stalls, submit
from cppsim.stored import Backend, Encoded

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
