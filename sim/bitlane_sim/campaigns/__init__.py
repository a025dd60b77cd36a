"""Campaigns: many runs of the simulated system, each with its own data, timing and faults.

`bitlane campaign` runs one circuit many times, with one difference each. `bitlane soak` runs random
commands, faults and stalls on random circuits. Every run follows from its number or seed, so that
a failure can be replayed alone, with waveforms.

    python -m bitlane_sim.campaigns

offers both subcommands where bitlane is not installed: NumPy is enough, with CuPy for a GPU.

harness             the circuit, and one instance of it with waveforms; needs Amaranth
folder              the circuit as text in a folder, so that another machine can run it
stimulus            the program of an instance: its commands and what disturbs them
arrays              types, counts and random numbers of many instances
contract            the results that the contract demands, for all instances at once
scoreboard          compares them with what the instances did
faults, records, stalls     the campaigns of `bitlane campaign`
trials, mixed, device_run   random cases of `bitlane soak`, many at once or through the driver

Each name is imported when it is first used: the words of a subcommand need argparse alone.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .arrays import draw, noise
    from .command import add_campaign, add_soak
    from .contract import Computation, execute
    from .device_run import Case, parse_case, random_case, run_case
    from .faults import FaultPlan
    from .folder import CircuitOptions, HarnessCircuit, geometry_of, make_circuit, open_circuit
    from .mixed import SoakPlan
    from .plan import Stage, run_plan
    from .records import RecordPlan
    from .scoreboard import Observed, Verdict, compare, expect_answers, expect_cleared
    from .stimulus import Workload, packed, recover, submit, traffic_of

__all__ = [
    "Case",
    "CircuitOptions",
    "Computation",
    "FaultPlan",
    "HarnessCircuit",
    "Observed",
    "RecordPlan",
    "SoakPlan",
    "Stage",
    "Verdict",
    "Workload",
    "add_campaign",
    "add_soak",
    "compare",
    "draw",
    "execute",
    "expect_answers",
    "expect_cleared",
    "geometry_of",
    "make_circuit",
    "noise",
    "open_circuit",
    "packed",
    "parse_case",
    "random_case",
    "recover",
    "run_case",
    "run_plan",
    "submit",
    "traffic_of",
]

_MODULES = {
    "Case": "device_run",
    "CircuitOptions": "folder",
    "Computation": "contract",
    "FaultPlan": "faults",
    "HarnessCircuit": "folder",
    "Observed": "scoreboard",
    "RecordPlan": "records",
    "SoakPlan": "mixed",
    "Stage": "plan",
    "Verdict": "scoreboard",
    "Workload": "stimulus",
    "add_campaign": "command",
    "add_soak": "command",
    "compare": "scoreboard",
    "draw": "arrays",
    "execute": "contract",
    "expect_answers": "scoreboard",
    "expect_cleared": "scoreboard",
    "geometry_of": "folder",
    "make_circuit": "folder",
    "noise": "arrays",
    "open_circuit": "folder",
    "packed": "stimulus",
    "parse_case": "device_run",
    "random_case": "device_run",
    "recover": "stimulus",
    "run_case": "device_run",
    "run_plan": "plan",
    "submit": "stimulus",
    "traffic_of": "stimulus",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_MODULES[name]}", __name__), name)
