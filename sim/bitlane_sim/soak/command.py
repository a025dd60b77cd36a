"""The subcommand `soak`: shares cases among processes until the time is over. Runs none itself.

Its words and help do without NumPy: what runs cases is imported when some are run.
"""

import argparse
import math
from concurrent.futures import Executor, Future
from itertools import count
from time import monotonic
from typing import TYPE_CHECKING

from bitlane.command_line.cli import CHECK_FAILED, DONE, Subparsers, whole_number
from bitlane.command_line.workers import add_workers, first_done, shared_by
from bitlane.errors import BitlaneError
from bitlane.terminal import show

if TYPE_CHECKING:
    from .case import Case
    from .run import Outcome

__all__ = ["add_soak"]

_STEPS = 1000

_PATIENCE = 1800.0
"""Seconds that a case may take."""


def add_soak(subparsers: Subparsers) -> None:
    """Add the subcommand `soak`."""
    parser = subparsers.add_parser(
        "soak",
        help="random commands and faults on random circuits, against the NumPy model",
        description="Simulates random circuits with random commands, while their memory stalls,"
        " fails and hangs, and compares every byte with the NumPy model. A failure prints the line"
        " that replays it.",
        epilog="exit codes: 0 no failure, 1 a failure, 2 bad input or a missing tool",
    )
    parser.add_argument(
        "--minutes",
        type=_minutes,
        default=1.0,
        metavar="N",
        help="how long cases are begun (default 1)",
    )
    parser.add_argument(
        "--seed", type=_seed, default=1, metavar="S", help="of the first case (default 1)"
    )
    parser.add_argument(
        "--steps", type=_steps, default=_STEPS, metavar="N", help="of a case (default %(default)s)"
    )
    parser.add_argument(
        "--config",
        metavar="CONFIG",
        help="always this circuit: options of a simulator's URL, like 'width=32&ports=1'",
    )
    parser.add_argument("--replay", metavar="SEED:CONFIG", help="run this one case here instead")
    add_workers(parser)
    parser.set_defaults(run=_run, extra="sim")


def _seed(text: str) -> int:
    seed = whole_number(text)
    if seed < 0:
        raise argparse.ArgumentTypeError(f"{text!r}: expected 0 or more")
    return seed


def _steps(text: str) -> int:
    steps = whole_number(text)
    if steps < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: expected 1 or more")
    return steps


def _minutes(text: str) -> float:
    try:
        minutes = float(text)
    except ValueError:
        minutes = math.nan
    if not 0 < minutes <= 1_000_000:
        raise argparse.ArgumentTypeError(f"{text!r}: expected minutes, more than 0")
    return minutes


def _run(arguments: argparse.Namespace) -> int:
    if arguments.replay is not None:
        for option in ("config", "workers", "cluster"):
            if getattr(arguments, option) is not None:
                raise BitlaneError(
                    f"--{option}: goes only without --replay, which runs a case here"
                )
        return _replay(arguments.replay, arguments.steps)
    started = monotonic()
    with shared_by(arguments) as (executor, workers):
        outcomes = _soak(executor, workers, started + 60 * arguments.minutes, arguments)
    show("")
    print(_summary(outcomes, (monotonic() - started) / 60))
    failures = [outcome for outcome in outcomes if outcome.failure]
    for failure in failures:
        print(failure)
    return CHECK_FAILED if failures else DONE


def _replay(text: str, steps: int) -> int:
    from .case import parse_case
    from .run import run_case

    outcome = run_case(parse_case(text), steps)
    print(outcome if outcome.failure else f"{outcome.commands:,} commands: no failure")
    return CHECK_FAILED if outcome.failure else DONE


def _soak(
    executor: Executor, workers: int, deadline: float, arguments: argparse.Namespace
) -> "list[Outcome]":
    """What became of the cases that were begun before ``deadline``, until one failed."""
    from .case import Case, random_case
    from .run import run_apart, run_case

    outcomes: list[Outcome] = []
    running: dict[Future[Outcome], Case] = {}
    seeds = count(arguments.seed)
    while True:
        more = monotonic() < deadline and not any(outcome.failure for outcome in outcomes)
        while more and len(running) < workers:
            seed = next(seeds)
            kept = arguments.config is not None
            case = Case(seed, arguments.config) if kept else random_case(seed)
            work = run_case if kept else run_apart
            running[executor.submit(work, case, arguments.steps)] = case
        if not running:
            return outcomes
        done = first_done(running, _PATIENCE)
        outcomes += [_outcome(each, running.pop(each)) for each in done]
        left = max(0.0, deadline - monotonic()) / 60
        show(f"soak: {sum(x.commands for x in outcomes):,} commands, {left:.1f} minutes left")


def _outcome(done: "Future[Outcome]", case: "Case") -> "Outcome":
    """What came of ``case``; a process that has ended is a failure, too."""
    from .run import Outcome

    try:
        return done.result()
    except BitlaneError:
        raise
    except Exception as error:  # noqa: BLE001, whatever it is, it is to be replayed
        return Outcome(case, failure=f"{type(error).__name__}: {' '.join(str(error).split())}")


def _summary(outcomes: "list[Outcome]", minutes: float) -> str:
    circuits = len({outcome.case.configuration for outcome in outcomes})
    commands, steps, faults = (
        sum(getattr(outcome, name) for outcome in outcomes)
        for name in ("commands", "steps", "faults")
    )
    return (
        f"{circuits:,} configurations, {steps:,} steps, {faults:,} faults, {commands:,} commands"
        f" in {minutes:.1f} minutes, {commands / minutes:,.0f} a minute"
    )
