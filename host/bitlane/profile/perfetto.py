"""A recording as trace events, which Perfetto and Chrome's own viewer draw.

Source of the format: "Trace Event Format" of the Chromium project. Its times are microseconds; here
one stands for one clock cycle.
"""

import json
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Final, TypeAlias

from ..driver import LabelledCommands
from ..links import Recording
from .activity import CAUSES, bursts, ports, recorded_commands, stalls
from .disassembly import command_text

CUT: Final = "cut: the recording had no room for what came after cycle {}"

_Event: TypeAlias = dict[str, Any]
_PROCESS: Final = 1
_COMMANDS: Final = 1
"""Number of the commands' track; each port has a track of bursts and a track of stalls."""


def write_trace(
    path: Path, recording: Recording, dispatches: Sequence[LabelledCommands], device: str
) -> None:
    """Write the events of ``recording``, one a line. Raises ``OSError``.

    ``dispatches`` have the commands in the order of their submission.
    """
    about = {"device": device, "time": "1 us is 1 clock cycle"}
    if recording.cut:
        about["cut"] = CUT.format(recording.end - 1)
    events = chain(
        _commands(recording, dispatches), _ports(recording), _end(recording), _names(recording)
    )
    with path.open("w", encoding="utf-8") as file:
        file.write(f'{{"otherData": {json.dumps(about)}, "traceEvents": [')
        for number, event in enumerate(events):
            file.write(f"{',' if number else ''}\n{json.dumps({'pid': _PROCESS, **event})}")
        file.write("\n]}\n")


def _names(recording: Recording) -> Iterator[_Event]:
    """Yield the names of the tracks, and their order."""
    tracks = [
        "commands",
        *(name for x in ports(recording) for name in (x.name, f"{x.name} stalls")),
    ]
    yield {"ph": "M", "name": "process_name", "args": {"name": "bitlane, 1 us a clock cycle"}}
    for number, name in enumerate(tracks, _COMMANDS):
        yield {"ph": "M", "name": "thread_name", "tid": number, "args": {"name": name}}
        yield {
            "ph": "M",
            "name": "thread_sort_index",
            "tid": number,
            "args": {"sort_index": number},
        }


def _commands(recording: Recording, dispatches: Sequence[LabelledCommands]) -> Iterator[_Event]:
    """Yield each command from start to retirement, also where commands overlap."""
    owners = [(each.label, command) for each in dispatches for command in each.commands]
    for number, (run, (name, command)) in enumerate(
        zip(recorded_commands(recording), owners, strict=False)
    ):
        end = recording.end if run.end < 0 else run.end
        common = {"cat": "command", "id": number, "tid": _COMMANDS, "name": command.title}
        about = {
            "dispatch": name,
            "submitted": run.submitted,
            "text": command_text(command, number),
            "faulted": run.faulted,
        }
        yield {**common, "ph": "b", "ts": run.started, "args": about}
        yield {**common, "ph": "e", "ts": end}


def _ports(recording: Recording) -> Iterator[_Event]:
    for number, port in enumerate(ports(recording)):
        track = _COMMANDS + 1 + 2 * number
        for burst in bursts(recording, port):
            about = {
                "address": f"{burst.address:#010x}",
                "beats": burst.beats,
                "asked": burst.asked,
            }
            name = f"{burst.beats} beat{'s' * (burst.beats != 1)}"
            yield _span(track, name, burst.first, burst.last + 1, about)
        for stall in stalls(recording, port):
            why = {"why": CAUSES[stall.cause]}
            yield _span(track + 1, stall.cause, stall.first, stall.end, why)


def _span(track: int, name: str, first: int, end: int, about: _Event) -> _Event:
    span = {"ph": "X", "tid": track, "name": name, "ts": first, "dur": end - first}
    return {**span, "args": about}


def _end(recording: Recording) -> Iterator[_Event]:
    if recording.cut:
        cycle = recording.end - 1
        yield {"ph": "i", "s": "g", "tid": _COMMANDS, "name": CUT.format(cycle), "ts": cycle}
