"""The subcommand `soak`: shares cases among processes until the time is over. Runs none itself.

Its words and help do without NumPy: what runs cases is imported when some are run.
"""

import argparse
import math
from concurrent.futures import Executor, Future
from itertools import count
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from bitlane.command_line.cli import CHECK_FAILED, DONE, Group, Subparsers, whole_number
from bitlane.command_line.workers import add_workers, first_done, shared_by
from bitlane.errors import BitlaneError
from bitlane.files import expect_writable
from bitlane.terminal import show

from .options import (
    MOST_INSTANCES,
    Wanted,
    add_options,
    expect_fit,
    instance_count,
    report,
    run,
    stage_of,
)

if TYPE_CHECKING:
    from .cases import Case
    from .device_run import Outcome

__all__ = ["add_soak"]

_STEPS = 1000

_MANY = Wanted("width=64&memory=16KiB", 16 << 10)
"""The circuit of many instances."""

_OF_MANY = ("backend", "model", "circuit", "json")
"""Options that go with many instances alone."""

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
    parser.add_argument(
        "--vcd", type=Path, metavar="FILE", help="waveforms of the case that --replay runs"
    )
    add_workers(parser)
    many = parser.add_argument_group("many instances of one circuit at once, instead of minutes")
    many.add_argument(
        "--instances",
        type=instance_count,
        metavar="N",
        help="run so many, each by a seed of its own",
    )
    add_options(many)
    parser.set_defaults(run=_run, group=Group.MEASURE, extra="sim")


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
        return _replay(arguments)
    if arguments.vcd:
        raise BitlaneError("--vcd: goes only with --replay, which runs one case")
    if arguments.instances is not None or arguments.export:
        return _run_many(arguments)
    for option in _OF_MANY:
        if getattr(arguments, option) is not None:
            raise BitlaneError(f"--{option}: goes only with --instances")
    started = monotonic()
    with shared_by(arguments) as (executor, workers):
        outcomes = _soak(executor, workers, started + 60 * arguments.minutes, arguments)
    show("")
    print(_summary(outcomes, (monotonic() - started) / 60))
    failures = [outcome for outcome in outcomes if outcome.failure]
    for failure in failures:
        print(failure)
    return CHECK_FAILED if failures else DONE


def _replay(arguments: argparse.Namespace) -> int:
    """Run one case, or one instance."""
    for option in ("config", "workers", "cluster", "instances", *_OF_MANY):
        if getattr(arguments, option) is not None:
            raise BitlaneError(f"--{option}: goes only without --replay, which runs a case here")
    if arguments.vcd:
        expect_writable("--vcd", arguments.vcd)
    from .cases import parse_case
    from .device_run import run_case

    case = parse_case(arguments.replay)
    if case.instance is not None:
        return _replay_instance(case, case.instance, arguments.vcd)
    outcome = run_case(case, arguments.steps, arguments.vcd)
    print(outcome if outcome.failure else f"{outcome.commands:,} commands: no failure")
    return CHECK_FAILED if outcome.failure else DONE


def _replay_instance(case: "Case", instance: int, vcd: Path | None) -> int:
    """Run one of many instances alone."""
    from .folder import circuit_of
    from .mixed import SoakPlan
    from .plan import Stage, run_single

    if instance >= MOST_INSTANCES:
        raise BitlaneError(f"--replay: instance {instance}; expected less than {MOST_INSTANCES:,}")
    circuit = circuit_of(case.configuration)
    expect_fit(circuit, _MANY)
    plan = SoakPlan(circuit, instance + 1, case.seed)
    outcomes = run_single(Stage(circuit, model="numpy"), plan, instance, vcd)
    print("\n".join(outcomes.failures) or f"{plan.commands:,} commands: no failure")
    return CHECK_FAILED if outcomes.failures else DONE


def _run_many(arguments: argparse.Namespace) -> int:
    """Run many instances of one circuit at once."""
    for option in ("workers", "cluster"):
        if getattr(arguments, option) is not None:
            raise BitlaneError(f"--{option}: goes only without --instances; --backend says where")
    stage = stage_of(arguments, _MANY)
    if stage is None:
        return DONE
    from .mixed import SoakPlan

    plan = SoakPlan(stage.circuit, arguments.instances, arguments.seed)
    outcomes = run(stage, plan, None, "soak")
    row: dict[str, object] = {
        "instances": outcomes.instances,
        "commands": plan.commands,
        "told of a fault": plan.faults,
        "failures": len(outcomes.failures),
    }
    return report(stage, outcomes, [row], "soak", arguments.json)


def _soak(
    executor: Executor, workers: int, deadline: float, arguments: argparse.Namespace
) -> "list[Outcome]":
    """What became of the cases that were begun before ``deadline``, until one failed.

    One for each worker is begun in any case.
    """
    from .cases import Case, random_case
    from .device_run import run_apart, run_case

    outcomes: list[Outcome] = []
    running: dict[Future[Outcome], Case] = {}
    seeds = count(arguments.seed)
    while True:
        begun = bool(running or outcomes)
        in_time = monotonic() < deadline and not any(outcome.failure for outcome in outcomes)
        more = in_time or not begun
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
    from .device_run import Outcome

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
