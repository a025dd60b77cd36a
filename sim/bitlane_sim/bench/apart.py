"""What a machine's cores give when nothing is shared: processes of one thread, started together."""

import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection

from ..campaigns.folder import StandCircuit
from .record import BenchError
from .xors import Xors

__all__ = ["Apart", "apart"]


_ENDED = "--batch: a process of one thread has ended; take fewer --instances"


class Apart:
    """Processes that wait to be told of a timing; each has a `Xors` of its own."""

    def __init__(self, lines: list[Connection]) -> None:
        self._lines = lines

    def rate(self, timing: str) -> float:
        """Cycles a second of all processes, which begin at once: the sum of what each reaches.

        Raises ``BenchError`` if one ended, and what one raises.
        """
        for _ in ("prepare", "begin"):
            for line in self._lines:
                _tell(line, timing)
            answers = [_answer(line) for line in self._lines]
        return sum(answers)


@contextmanager
def apart(circuit: StandCircuit, instances: int, processes: int) -> Iterator[Apart]:
    """So many ``processes``, each with ``instances`` of ``circuit`` on one thread."""
    context = multiprocessing.get_context("spawn")
    lines = []
    running = []
    try:
        for _ in range(processes):
            here, there = context.Pipe()
            process = context.Process(target=_serve, args=(there, circuit, instances), daemon=True)
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


def _tell(line: Connection, timing: str) -> None:
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


def _serve(line: Connection, circuit: StandCircuit, instances: int) -> None:
    """Measure whenever ``line`` says a timing, from when it says it again; to the end of it."""

    def ready() -> None:
        line.send(0.0)
        line.recv()

    try:
        systems = Xors(circuit, circuit.runner(1, "threads", 1).compiled, instances)
        while True:
            line.send(systems.rate(line.recv(), ready))
    except (EOFError, OSError):
        return
    except Exception as error:  # noqa: BLE001, whatever it is, whoever asked is told
        text = " ".join(str(error).split())
        line.send(text if isinstance(error, BenchError) else f"{type(error).__name__}: {text}")
