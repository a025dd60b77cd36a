"""The subcommand `campaign`: which one, on what circuit, where its table goes. Runs none itself.

Its words and help do without NumPy: what runs a campaign is imported when one is run.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bitlane.command_line.cli import CHECK_FAILED, DONE, Group, Subparsers, whole_number
from bitlane.errors import BitlaneError
from bitlane.files import expect_writable
from cppsim.errors import SimulationError

from .errors import JobFailed
from .options import Wanted, add_options, instance_count, report, run, stage_of

if TYPE_CHECKING:
    from .plan import CampaignPlan, Stage

__all__ = ["CAMPAIGNS", "Campaign", "add_campaign"]

_MEMORY = 4096
_SHORT_JOBS = Wanted("width=64&memory=4KiB", _MEMORY)


@dataclass(frozen=True, slots=True)
class Campaign:
    """A campaign: its help, its circuit, the option that says how many, and what runs it.

    ``default``: of that option; None: all there are. ``execute`` returns the exit code.
    """

    summary: str
    wanted: Wanted
    option: str
    meaning: str
    default: int | None
    execute: Callable[["Stage", argparse.Namespace], int]


def _faults(stage: "Stage", arguments: argparse.Namespace) -> int:
    from .faults import FaultPlan

    plan: FaultPlan = FaultPlan(stage, arguments.seeds)
    if arguments.replay is not None:
        return _replay(stage, plan, arguments)
    outcomes = run(stage, plan, None, "campaign faults")
    return report(stage, outcomes, plan.rows(), "campaign faults", arguments.json)


def _records(stage: "Stage", arguments: argparse.Namespace) -> int:
    from .records import RecordPlan

    plan: RecordPlan = RecordPlan(stage, arguments.instances)
    if arguments.replay is not None:
        return _replay(stage, plan, arguments)
    outcomes = run(stage, plan, plan.numbers().tolist(), "campaign records")
    return report(stage, outcomes, plan.rows(), "campaign records", arguments.json)


def _stalls(stage: "Stage", arguments: argparse.Namespace) -> int:
    from .stalls import StallPlan

    plan: StallPlan = StallPlan(stage, arguments.seeds)
    if arguments.replay is not None:
        return _replay(stage, plan, arguments)
    outcomes = run(stage, plan, None, "campaign stalls")
    return report(stage, outcomes, plan.rows(), "campaign stalls", arguments.json)


CAMPAIGNS = {
    "faults": Campaign(
        "reset, errors and silence at every cycle of short jobs, and CLEAR behind each",
        _SHORT_JOBS,
        "seeds",
        "timings of each job: the first without waits, others with random ones",
        1,
        _faults,
    ),
    "records": Campaign(
        "every bit and every pair of bits of sealed records wrong",
        _SHORT_JOBS,
        "instances",
        "run so many of them, spread evenly",
        None,
        _records,
    ),
    "stalls": Campaign(
        "cycles of the speed contract's jobs while half of all handshakes stall",
        Wanted("width=64", 1 << 22, 512),
        "seeds",
        "seeds of the stalls",
        1000,
        _stalls,
    ),
}
"""By name, as on the command line."""


def _replay(stage: "Stage", plan: "CampaignPlan", arguments: argparse.Namespace) -> int:
    """Run one instance alone."""
    from .plan import run_single

    if arguments.replay >= plan.instances:
        raise BitlaneError(
            f"--replay: {arguments.replay}; expected 0 to {plan.instances - 1}, the instances"
        )
    outcomes = run_single(stage, plan, arguments.replay, arguments.vcd)
    print("\n".join(outcomes.failures) or f"instance {arguments.replay}: no failure")
    return CHECK_FAILED if outcomes.failures else DONE


def add_campaign(subparsers: Subparsers) -> None:
    """Add the subcommand `campaign`, with one of its own for each campaign."""
    parser = subparsers.add_parser(
        "campaign",
        help="exhaustive faults, wrong records, seeds of stalls: thousands of circuits at once",
        description="Simulates thousands of instances of a circuit at once, on all cores or on a"
        " GPU, which differ in what goes wrong, and judges every byte and register of each."
        " A failure prints the line that replays it on one instance.",
        epilog="exit codes: 0 no failure, 1 a failure, 2 bad input or a missing tool",
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
        told = "all" if campaign.default is None else "%(default)s"
        kind.add_argument(
            f"--{campaign.option}",
            type=instance_count,
            default=campaign.default,
            metavar="N",
            help=f"{campaign.meaning} (default {told})",
        )
        kind.add_argument(
            "--config",
            metavar="CONFIG",
            help=f"the circuit: options of a simulator's URL (default '{campaign.wanted.options}')",
        )
        add_options(kind)
        kind.add_argument(
            "--replay", type=_number, metavar="NUMBER", help="run this one instance alone instead"
        )
        kind.add_argument(
            "--vcd", type=Path, metavar="FILE", help="waveforms of what --replay runs"
        )
        kind.set_defaults(run=_run, extra="sim", campaign=campaign)


def _number(text: str) -> int:
    number = whole_number(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"{text!r}: expected 0 or more")
    return number


def _run(arguments: argparse.Namespace) -> int:
    campaign: Campaign = arguments.campaign
    if arguments.vcd and arguments.replay is None:
        raise BitlaneError("--vcd: goes only with --replay, which runs one instance")
    if arguments.vcd:
        expect_writable("--vcd", arguments.vcd)
    stage = stage_of(arguments, campaign.wanted)
    try:
        return DONE if stage is None else campaign.execute(stage, arguments)
    except JobFailed as failure:
        print(failure)
        return CHECK_FAILED
    except SimulationError as error:
        raise BitlaneError(str(error)) from error
