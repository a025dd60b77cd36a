"""Processes that share a command's work, on this computer or on a Dask cluster.

Arguments and results must be picklable, because they are sent between processes.
"""

import argparse
import os
import signal
from collections.abc import Collection, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Any, TypeVar

from ..errors import BitlaneError
from ..installation import how_to_install
from .cli import whole_number

_Result = TypeVar("_Result")

_MOST = 1024


def add_workers(parser: argparse.ArgumentParser) -> None:
    """Add the options ``--workers`` and ``--cluster``, of which one may be given."""
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--workers",
        type=_count,
        metavar="N",
        help="processes on this computer (default: one for each of its processors)",
    )
    where.add_argument(
        "--cluster",
        metavar="ADDRESS",
        help="the scheduler of a cluster of Dask's, like tcp://host:8786, instead",
    )


def _count(text: str) -> int:
    count = whole_number(text)
    if not 1 <= count <= _MOST:
        raise argparse.ArgumentTypeError(f"{text!r}: expected 1 to {_MOST}")
    return count


def first_done(running: Collection[Future[_Result]], seconds: float) -> Collection[Future[_Result]]:
    """Return the first of ``running`` that end. Raises ``BitlaneError`` after ``seconds``."""
    done, _ = wait(running, seconds, FIRST_COMPLETED)
    if not done:
        raise BitlaneError(f"workers: none has done anything within {seconds:g} s; are there any?")
    return done


@contextmanager
def shared_by(arguments: argparse.Namespace) -> Iterator[tuple[Executor, int]]:
    """Open the executor of the options; yield it and its number of workers.

    Calls that have not begun when the block ends are cancelled. Raises ``BitlaneError`` if the
    cluster does not exist or has no workers.
    """
    if arguments.cluster is not None:
        with _cluster(arguments.cluster) as shared:
            yield shared
        return
    workers = arguments.workers or os.cpu_count() or 1
    executor = ProcessPoolExecutor(workers, get_context("spawn"), _ignore_interrupts)
    try:
        yield executor, workers
    finally:
        executor.shutdown(cancel_futures=True)


def _ignore_interrupts() -> None:
    """Leave Ctrl-C to the command, which stops its workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def _cluster(address: str) -> Iterator[tuple[Executor, int]]:
    try:
        # Imports hundreds of modules, which only a cluster needs.
        from ..dask import connect
    except ModuleNotFoundError as error:
        raise BitlaneError(
            f"--cluster needs the Python package {error.name}, which is not installed:"
            f" {how_to_install('dask')} brings it"
        ) from error
    with connect(address, devices=False) as client:
        threads: Any = client.nthreads()
        if not threads:
            raise BitlaneError(f"cluster {address!r}: it has no workers; start some first")
        executor: Executor = client.get_executor(pure=False)
        try:
            yield executor, sum(threads.values())
        finally:
            executor.shutdown(wait=False)
