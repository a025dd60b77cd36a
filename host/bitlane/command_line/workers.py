"""Processes that share a command's work: here, or those of a cluster of Dask's. Does none itself.

What they are given and what they return is sent: it can be pickled.
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
    """Those of ``running`` that are done first. Raises ``BitlaneError`` if none is in time."""
    done, _ = wait(running, seconds, FIRST_COMPLETED)
    if not done:
        raise BitlaneError(f"workers: none has done anything within {seconds:g} s; are there any?")
    return done


@contextmanager
def shared_by(arguments: argparse.Namespace) -> Iterator[tuple[Executor, int]]:
    """What the options ask for, and how many calls it does at a time.

    What has not begun when the block ends is not done. Raises ``BitlaneError`` if there is no
    such cluster, or it has no workers.
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
    """Ctrl-C is for the command, which stops its workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def _cluster(address: str) -> Iterator[tuple[Executor, int]]:
    try:
        # Hundreds of modules, for those alone who have a cluster.
        from ..dask import connect
    except ModuleNotFoundError as error:
        raise BitlaneError(
            f"--cluster needs the Python package {error.name}, which is not installed: pip install"
            " 'bitlane[dask]' brings it"
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
