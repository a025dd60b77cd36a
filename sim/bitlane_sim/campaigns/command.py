"""The subcommands `campaign` and `soak`: options, the circuit, and what runs. Runs none itself.

Words and help need neither NumPy nor Amaranth: the modules that run instances are imported when
instances run, and Amaranth when a circuit is made.
"""

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from time import monotonic
from typing import TYPE_CHECKING

from bitlane.command_line import CHECK_FAILED, DONE, Group, Subparsers, whole_number
from bitlane.command_line.workers import add_workers, shared_by
from bitlane.errors import BitlaneError
from bitlane.files import expect_writable
from bitlane.terminal import show

if TYPE_CHECKING:
    from .device_run import Case
    from .folder import CircuitOptions
    from .plan import CampaignPlan, Stage

_MOST_INSTANCES = 100_000_000
"""Most instances of a run; the number of each takes memory."""

_MOST_RAM = 16 << 20
"""Bytes of RAM of an instance. A core runs 512 at once."""

_BACKENDS = ("auto", "threads", "cuda")
_MODELS = ("auto", "numpy", "cupy")
_EXIT_CODES = "exit codes: 0 no failure, 1 a failure, 2 bad input or a missing tool"

_STEPS = 1000
"""Steps of a case of a soak."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A circuit: ``options`` as in a simulator's URL, and at least ``memory`` bytes of memory.

    ``ram_bytes``: size of its RAM if it is smaller than the memory.
    """

    options: str
    memory: int
    ram_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Campaign:
    """A campaign: its help, its circuit, the option with the amount of work, and its plan.

    ``default``: of that option; None means all instances. ``plan`` names a class, which takes
    a `Stage` and the option's value.
    """

    summary: str
    wanted: Wanted
    option: str
    meaning: str
    default: int | None
    plan: str


_SHORT_JOBS = Wanted("width=64&memory=4KiB", 4096)

CAMPAIGNS = {
    "faults": Campaign(
        "reset, errors and silence at every cycle of short jobs, and CLEAR behind each",
        _SHORT_JOBS,
        "seeds",
        "timings of each job: the first without waits, others with random ones",
        1,
        "bitlane_sim.campaigns.faults:FaultPlan",
    ),
    "records": Campaign(
        "every bit and every pair of bits of sealed records wrong",
        _SHORT_JOBS,
        "instances",
        "run N of them, spread evenly",
        None,
        "bitlane_sim.campaigns.records:RecordPlan",
    ),
    "stalls": Campaign(
        "cycles of the speed contract's jobs while half of all handshakes stall",
        Wanted("width=64", 1 << 22, 512),
        "seeds",
        "seeds of the stalls",
        1000,
        "bitlane_sim.campaigns.stalls:StallPlan",
    ),
}
"""By name, as on the command line."""

_MANY = Wanted("width=64&memory=16KiB", 16 << 10)
"""The circuit of a soak of many instances."""

_OF_MANY = ("backend", "model", "circuit", "json")
"""Options of a soak that need many instances."""


# --- types of options -------------------------------------------------------------------------


def _number_from(least: int, most: int | None = None) -> Callable[[str], int]:
    """Return the ``type`` of an option that takes a whole number from ``least`` to ``most``."""

    def number(text: str) -> int:
        value = whole_number(text)
        if value < least:
            raise argparse.ArgumentTypeError(f"{text!r}: expected {least} or more")
        if most is not None and value > most:
            raise argparse.ArgumentTypeError(f"{text!r}: expected {most:,} or less")
        return value

    return number


count = _number_from(1)
"""The ``type`` of an option that takes a whole number from 1 on."""

_instances = _number_from(1, _MOST_INSTANCES)
_natural = _number_from(0)


def _minutes(text: str) -> float:
    try:
        minutes = float(text)
    except ValueError:
        minutes = math.nan
    if not 0 < minutes <= 1_000_000:
        raise argparse.ArgumentTypeError(f"{text!r}: expected minutes, more than 0")
    return minutes


# --- options ----------------------------------------------------------------------------------


def add_campaign(subparsers: Subparsers) -> None:
    """Add the subcommand `campaign`, which has a subcommand for each campaign."""
    parser = subparsers.add_parser(
        "campaign",
        help="exhaustive faults, wrong records, seeds of stalls: thousands of circuits at once",
        description="Simulates thousands of instances of a circuit at once, on all cores or on a"
        " GPU, which differ in what goes wrong, and judges every byte and register of each."
        " A failure prints the line that replays it on one instance.",
        epilog=_EXIT_CODES,
    )
    parser.set_defaults(group=Group.MEASURE)
    kinds = parser.add_subparsers(title="campaigns", metavar="NAME", required=True)
    for name, campaign in CAMPAIGNS.items():
        kind = kinds.add_parser(
            name,
            allow_abbrev=False,
            help=campaign.summary,
            description=f"{campaign.summary[0].upper()}{campaign.summary[1:]}.",
        )
        default = "all" if campaign.default is None else "%(default)s"
        kind.add_argument(
            f"--{campaign.option}",
            type=_instances,
            default=campaign.default,
            metavar="N",
            help=f"{campaign.meaning} (default {default})",
        )
        kind.add_argument(
            "--config",
            metavar="CONFIG",
            help=f"the circuit: options of a simulator's URL (default '{campaign.wanted.options}')",
        )
        _add_options(kind)
        kind.add_argument(
            "--replay", type=_natural, metavar="NUMBER", help="run this one instance alone instead"
        )
        kind.add_argument(
            "--vcd", type=Path, metavar="FILE", help="waveforms of what --replay runs"
        )
        kind.set_defaults(run=_campaign, extra="sim", campaign=name)


def add_soak(subparsers: Subparsers) -> None:
    """Add the subcommand `soak`."""
    parser = subparsers.add_parser(
        "soak",
        help="random commands and faults on random circuits, against the NumPy model",
        description="Simulates random circuits with random commands, while their memory stalls,"
        " fails and hangs, and compares every byte with the NumPy model. A failure prints the line"
        " that replays it.",
        epilog=_EXIT_CODES,
    )
    parser.add_argument(
        "--minutes",
        type=_minutes,
        default=1.0,
        metavar="N",
        help="how long cases are begun (default 1)",
    )
    parser.add_argument(
        "--seed", type=_natural, default=1, metavar="S", help="of the first case (default 1)"
    )
    parser.add_argument(
        "--steps", type=count, default=_STEPS, metavar="N", help="of a case (default %(default)s)"
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
        type=_instances,
        metavar="N",
        help="run N, each with a seed of its own",
    )
    _add_options(many)
    parser.set_defaults(run=_soak, group=Group.MEASURE, extra="sim")


def _add_options(parser: "argparse._ActionsContainer") -> None:
    """Add the options that choose where instances run, and their circuit."""
    parser.add_argument(
        "--backend",
        choices=_BACKENDS,
        help="what runs the instances: all cores, or a GPU (default: a GPU where CuPy finds one)",
    )
    parser.add_argument(
        "--model", choices=_MODELS, help="what computes the right bytes (default: as the backend)"
    )
    parser.add_argument(
        "--circuit",
        type=Path,
        metavar="FOLDER",
        help="run the circuit that --export has written there, without Amaranth",
    )
    parser.add_argument(
        "--export", type=Path, metavar="FOLDER", help="write the circuit there, and run nothing"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")


# --- the circuit and its instances ------------------------------------------------------------


def _stage_of(arguments: argparse.Namespace, wanted: Wanted) -> "Stage | None":
    """Return the stage for ``wanted``, or None after its circuit has been exported.

    Raises ``BitlaneError``.
    """
    from cppsim.errors import SimulationError

    from .folder import circuit_of, make_circuit, open_circuit
    from .plan import Stage

    if arguments.circuit and arguments.config is not None:
        raise BitlaneError("--config: goes only without --circuit, whose folder says what it is")
    if arguments.json:
        expect_writable("--json", arguments.json)
    try:
        if arguments.circuit:
            circuit = open_circuit(arguments.circuit)
        else:
            options = wanted.options if arguments.config is None else arguments.config
            _expect_fit(circuit_of(options, wanted.ram_bytes), wanted)
            circuit = make_circuit(options, wanted.ram_bytes)
        _expect_fit(circuit, wanted)
        if arguments.export:
            circuit.write(arguments.export)
            print(f"wrote {arguments.export}: run it with --circuit {arguments.export}")
            return None
        stage = Stage(circuit, arguments.backend or "auto", arguments.model or "auto")
        # A missing backend or model is an error before anything is printed.
        stage.expect_ready()
    except SimulationError as error:
        raise BitlaneError(str(error)) from error
    return stage


def _expect_fit(circuit: "CircuitOptions", wanted: Wanted) -> None:
    """Raise ``BitlaneError`` if many instances of ``circuit`` cannot do the work of ``wanted``."""
    configuration = circuit.configuration
    if configuration.memory_bytes < wanted.memory:
        raise BitlaneError(
            f"circuit: {circuit.options!r} has {configuration.memory_bytes:,} bytes of memory;"
            f" expected {wanted.memory:,} or more, as of {wanted.options!r}"
        )
    size = configuration.memory_bytes if wanted.ram_bytes is None else wanted.ram_bytes
    if circuit.ram_bytes != size:
        raise BitlaneError(
            f"circuit: {circuit.options!r} has {circuit.ram_bytes:,} bytes of RAM; expected"
            f" {size:,}: export it for this campaign"
        )
    if size > _MOST_RAM:
        raise BitlaneError(
            f"circuit: {circuit.options!r} has {size:,} bytes of memory in each instance; expected"
            f" {_MOST_RAM:,} at most, as of 'memory={_MOST_RAM >> 20}MiB'"
        )
    if configuration.search:
        raise BitlaneError(f"circuit: {circuit.options!r} has a search array; expected none")


def _run_many(stage: "Stage", plan: "CampaignPlan", name: str, file: Path | None) -> int:
    """Run the instances of ``plan``, print the results, and return the exit code."""
    from .plan import report, run_plan

    numbers = plan.numbers()
    try:
        outcomes = run_plan(
            stage, plan, numbers, lambda done: show(f"{name}: {done:,} of {len(numbers):,}")
        )
    finally:
        show("")
    return report(stage, outcomes, plan.rows(), name, file)


def _run_one(
    stage: "Stage", plan: "CampaignPlan", number: int, vcd: Path | None, passed: Callable[[], str]
) -> int:
    """Run one instance alone, print its failure or ``passed``, and return the exit code."""
    from .plan import run_single

    outcomes = run_single(stage, plan, number, vcd)
    print("\n".join(outcomes.failures) or passed())
    return CHECK_FAILED if outcomes.failures else DONE


# --- bitlane campaign -------------------------------------------------------------------------


def _campaign(arguments: argparse.Namespace) -> int:
    campaign, number = CAMPAIGNS[arguments.campaign], arguments.replay
    if arguments.vcd and number is None:
        raise BitlaneError("--vcd: goes only with --replay, which runs one instance")
    if arguments.vcd:
        expect_writable("--vcd", arguments.vcd)
    stage = _stage_of(arguments, campaign.wanted)
    if stage is None:
        return DONE
    from cppsim.errors import SimulationError

    from .plan import JobFailed

    try:
        plan: CampaignPlan = resolve_name(campaign.plan)(stage, getattr(arguments, campaign.option))
        if number is None:
            return _run_many(stage, plan, f"campaign {arguments.campaign}", arguments.json)
        if number >= plan.instances:
            raise BitlaneError(
                f"--replay: {number}; expected 0 to {plan.instances - 1}, the instances"
            )
        return _run_one(
            stage, plan, number, arguments.vcd, lambda: f"instance {number}: no failure"
        )
    except JobFailed as failure:
        print(failure)
        return CHECK_FAILED
    except SimulationError as error:
        raise BitlaneError(str(error)) from error


# --- bitlane soak -----------------------------------------------------------------------------


def _soak(arguments: argparse.Namespace) -> int:
    if arguments.replay is not None:
        return _replay_case(arguments)
    if arguments.vcd:
        raise BitlaneError("--vcd: goes only with --replay, which runs one case")
    if arguments.instances is not None or arguments.export:
        return _soak_many(arguments)
    for option in _OF_MANY:
        if getattr(arguments, option) is not None:
            raise BitlaneError(f"--{option}: goes only with --instances")
    started = monotonic()
    with shared_by(arguments) as (executor, workers):
        from .device_run import run_cases, summary

        deadline = started + 60 * arguments.minutes
        first, steps, config = arguments.seed, arguments.steps, arguments.config
        outcomes = run_cases(executor, workers, deadline, (first, steps, config))
    show("")
    print(summary(outcomes, (monotonic() - started) / 60))
    failures = [outcome for outcome in outcomes if outcome.failure]
    for failure in failures:
        print(failure)
    return CHECK_FAILED if failures else DONE


def _replay_case(arguments: argparse.Namespace) -> int:
    """Run one case, or one of many instances alone."""
    for option in ("config", "workers", "cluster", "instances", *_OF_MANY):
        if getattr(arguments, option) is not None:
            raise BitlaneError(f"--{option}: goes only without --replay, which runs a case here")
    if arguments.vcd:
        expect_writable("--vcd", arguments.vcd)
    from .device_run import parse_case, run_case

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
    from .plan import Stage

    if instance >= _MOST_INSTANCES:
        raise BitlaneError(f"--replay: instance {instance}; expected less than {_MOST_INSTANCES:,}")
    circuit = circuit_of(case.configuration)
    _expect_fit(circuit, _MANY)
    plan = SoakPlan(circuit, instance + 1, case.seed)
    stage = Stage(circuit, model="numpy")
    return _run_one(stage, plan, instance, vcd, lambda: f"{plan.commands:,} commands: no failure")


def _soak_many(arguments: argparse.Namespace) -> int:
    """Run many instances of one circuit at once."""
    for option in ("workers", "cluster"):
        if getattr(arguments, option) is not None:
            raise BitlaneError(f"--{option}: goes only without --instances; --backend says where")
    stage = _stage_of(arguments, _MANY)
    if stage is None:
        return DONE
    from .mixed import SoakPlan

    plan = SoakPlan(stage.circuit, arguments.instances, arguments.seed)
    return _run_many(stage, plan, "soak", arguments.json)
