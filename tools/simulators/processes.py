"""Processes that share nothing and measure at the same time."""

import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Protocol

from bitlane_sim.bench import BenchError

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
