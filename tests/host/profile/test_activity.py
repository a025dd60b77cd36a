"""Bursts, stalls and commands, read off recordings that are drawn, and the trace for Perfetto."""

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bitlane.driver import Command, LabelledCommands, Walk
from bitlane.errors import BitlaneError
from bitlane.links import Recording
from bitlane.profile import (
    RecordedBurst,
    RecordedCommand,
    RecordedPort,
    RecordedStall,
    RunProfile,
    bursts,
    busy_cycles,
    busy_spans,
    ports,
    recorded_commands,
    stalls,
    write_trace,
)
from bitlane.profile.report import write_report
from bitlane_rtl.abi import Lane, Op
from support.host.arrays import model
from support.seeds import seeds

_CHANNELS = ("aw", "w", "b", "ar", "r", "ar_b", "r_b")
_EVENTS = ("doorbell", "started", "retired", "faulted")


def drawn(
    asked: Mapping[str, list[tuple[int, int]]], *, cut: bool = False, **lines: str
) -> Recording:
    """Return a recording with a cycle for each character of ``lines``, and an entry per cycle.

    The letters of a channel: ``v`` valid alone, ``r`` ready alone, ``x`` both, ``.`` none. In
    ``doorbell``, ``started``, ``retired`` and ``faulted``, ``x`` marks the event. ``asked`` has
    address and beats of each handshake of an address channel, in order. Lines left out stay idle.
    """
    (length,) = {len(line) for line in lines.values()}
    marks = {name: np.array(list(line)) for name, line in lines.items()}
    never = np.full(length, ".")
    flags = {name: marks.get(name, never) for name in _CHANNELS}
    addresses, beats = {}, {}
    for name in ("aw", "ar", "ar_b"):
        addresses[name], beats[name] = (np.zeros(length, np.int64) for _ in range(2))
        for cycle, (address, count) in zip(
            np.flatnonzero(flags[name] == "x"), asked.get(name, []), strict=True
        ):
            addresses[name][cycle], beats[name][cycle] = address, count
    return Recording(
        cycles=np.arange(length),
        end=length,
        cut=cut,
        valid={name: np.isin(line, ["v", "x"]) for name, line in flags.items()},
        ready={name: np.isin(line, ["r", "x"]) for name, line in flags.items()},
        addresses=addresses,
        beats=beats,
        **{name: marks.get(name, never) == "x" for name in _EVENTS},
    )


READ, WRITE = RecordedPort("read", "ar", "r"), RecordedPort("write", "aw", "w")
READ_A, READ_B = RecordedPort("read A", "ar", "r"), RecordedPort("read B", "ar_b", "r_b")


def together(recording: Recording) -> Recording:
    """Return the recording with equal consecutive entries merged, but for those with an address."""
    flags = [*recording.valid.values(), *recording.ready.values(), recording.started]
    flags += [recording.retired, recording.faulted, recording.doorbell]
    new = np.any([np.diff(flag, prepend=~flag[:1]) for flag in flags], axis=0)
    for name in recording.beats:
        new |= recording.valid[name] & recording.ready[name]

    def kept(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: column[new] for name, column in value.items()}
        return value[new] if isinstance(value, np.ndarray) else value

    return Recording(**{x.name: kept(getattr(recording, x.name)) for x in fields(recording)})


def test_beats_belong_to_the_addresses_in_their_order() -> None:
    recording = drawn(
        {"ar": [(0x100, 3), (0x200, 1)], "aw": [(0x300, 2)]},
        ar="rxrxrrrrrr",
        r=".rrxxrrxxr",
        aw="rrrrrrrxrr",
        w="rrrrrxrrxr",
    )
    assert ports(recording) == [READ, WRITE]
    assert bursts(recording, READ) == [
        RecordedBurst(0x100, 3, 1, 3, 7),
        RecordedBurst(0x200, 1, 3, 8, 8),
    ]
    # Data may come before its address.
    assert bursts(recording, WRITE) == [RecordedBurst(0x300, 2, 7, 5, 8)]


def test_a_burst_that_is_not_all_there_is_left_out() -> None:
    recording = drawn({"ar": [(0x100, 2), (0x200, 2)]}, ar="xxrrr", r="rrxxx")
    assert bursts(recording, READ) == [RecordedBurst(0x100, 2, 0, 2, 3)]


def test_two_ports_read_where_there_are_two() -> None:
    recording = drawn({"ar": [(0, 1)], "ar_b": [(64, 1)]}, ar="xr", r="rx", ar_b="xr", r_b="rx")
    assert ports(recording) == [READ_A, READ_B]


def test_a_read_port_waits_for_the_memory_or_the_circuit() -> None:
    recording = drawn({"ar": [(0x100, 4)]}, ar="vvxrrrrrrrrrrr", r="..rrrxxvvxrxrr")
    assert stalls(recording, READ) == [
        RecordedStall("request not taken", 0, 2),
        RecordedStall("read data awaited", 3, 5),
        RecordedStall("read data not taken", 7, 9),
        RecordedStall("read data awaited", 10, 11),
    ]


def test_a_write_port_waits_for_data_for_the_memory_and_for_the_response() -> None:
    recording = drawn(
        {"aw": [(0x100, 2)]},
        started="..x...........",
        aw="rrrrxrrrrrrrrr",
        w="rrrrxrvvxrrrrr",
        retired="............x.",
    )
    assert stalls(recording, WRITE) == [
        RecordedStall("write data awaited", 2, 4),
        RecordedStall("write data awaited", 5, 6),
        RecordedStall("write data not taken", 6, 8),
        RecordedStall("response awaited", 9, 12),
    ]


def test_a_port_at_rest_is_not_stalled() -> None:
    recording = drawn({}, ar="rrr", r="rrr", aw="rrr", w="rrr")
    assert ports(recording) == []
    assert stalls(recording, READ) == stalls(recording, WRITE) == []


def test_commands_overlap_end_in_order_and_may_fail() -> None:
    recording = drawn(
        {},
        doorbell="x...x.........",
        started=".x.x.....x..x.",
        retired="......x.x.....",
        faulted="...........x..",
    )
    assert recorded_commands(recording) == [
        RecordedCommand(0, 1, 6),
        RecordedCommand(0, 3, 8),
        RecordedCommand(4, 9, 11, faulted=True),
        RecordedCommand(4, 12, -1),
    ]


def test_a_cycle_counts_for_the_oldest_command_that_has_not_ended() -> None:
    recording = drawn(
        {},
        #         0123456789abcdef
        doorbell="x...x......x....",
        started=".x.x.....x...x..",
        retired="......x.x.x.....",
    )
    # The second was submitted with the first, the third while the second was at work; then the
    # circuit had nothing to do, and the fourth has not ended.
    assert busy_spans(recording) == [(1, 6), (6, 8), (8, 10)]
    assert busy_cycles(recording) == 5 + 2 + 2 + 4
    recording = drawn({}, doorbell="x...x..", started=".x...x.", retired="..x...x")
    assert busy_spans(recording) == [(1, 2), (5, 6)]
    assert busy_cycles(recording) == 2


@pytest.mark.parametrize("seed", seeds(1, 5))
def test_long_entries_say_what_single_cycles_do(seed: int) -> None:
    """A recording joins cycles that are alike; nothing that is read off it may change by that."""
    random = np.random.default_rng(seed)
    length = 60
    single = drawn(
        {"ar": [(0, 7)], "aw": [(0, 9)]},
        ar="rx" + "r" * (length - 2),
        r="..r" + "".join(np.repeat(random.choice(list("xvr"), 19), 3)),
        aw="rx" + "r" * (length - 2),
        w="..r" + "".join(np.repeat(random.choice(list("xvr"), 19), 3)),
        started="x" + "." * (length - 1),
        retired="." * (length - 1) + "x",
    )
    joined = together(single)
    assert len(joined.cycles) < length
    for port in (READ, WRITE):
        assert bursts(joined, port) == bursts(single, port), f"seed {seed}"
        assert stalls(joined, port) == stalls(single, port), f"seed {seed}"
        causes = Counter(stall.cause for stall in stalls(single, port))
        assert causes, f"seed {seed}"


# --- the trace of `bitlane run --trace` -----------------------------------------------------------

COMMAND = Command(Op.NOT, Lane.BITS_8, Lane.BITS_8, 24, Walk(0x100, 0x117), None, Walk(0, 0x17))
DISPATCHES = [LabelledCommands("first", [COMMAND]), LabelledCommands("second", [COMMAND])]


def recorded(*, cut: bool = False) -> Recording:
    return drawn(
        {"ar": [(0x100, 3)], "aw": [(0, 3)]},
        cut=cut,
        doorbell="x............",
        started=".x.x.........",
        ar="rrxrrrrrrrrrr",
        r="...rxxrxrrrrr",
        aw="rrrrrxrrrrrrr",
        w="rrrrrxxrvxrrr",
        retired="..........x..",
    )


def written(path: Path, *, cut: bool = False) -> dict[str, Any]:
    write_trace(path, recorded(cut=cut), DISPATCHES, "a device")
    trace: dict[str, Any] = json.loads(path.read_text())
    return trace


def spans(trace: dict[str, Any]) -> dict[str, list[tuple[str, int, int]]]:
    """Return name, first cycle and cycles of each span, by the name of its track."""
    events = trace["traceEvents"]
    tracks = {x["tid"]: x["args"]["name"] for x in events if x["name"] == "thread_name"}
    found: dict[str, list[tuple[str, int, int]]] = {name: [] for name in tracks.values()}
    for x in events:
        if x["ph"] == "X":
            found[tracks[x["tid"]]].append((x["name"], x["ts"], x["dur"]))
    return found


def test_ports_have_a_track_for_bursts_and_one_for_stalls(tmp_path: Path) -> None:
    trace = written(tmp_path / "t.json")
    assert spans(trace) == {
        "commands": [],
        "read": [("3 beats", 4, 4)],
        "read stalls": [("read data awaited", 3, 1), ("read data awaited", 6, 1)],
        "write": [("3 beats", 5, 5)],
        "write stalls": [
            ("write data awaited", 1, 4),
            ("write data awaited", 7, 1),
            ("write data not taken", 8, 1),
            ("write data awaited", 10, 3),
        ],
    }
    assert trace["otherData"] == {"device": "a device", "time": "1 us is 1 clock cycle"}
    bursts = [x["args"] for x in trace["traceEvents"] if x["name"] == "3 beats"]
    assert bursts == [
        {"address": "0x00000100", "beats": 3, "asked": 2},
        {"address": "0x00000000", "beats": 3, "asked": 5},
    ]


def test_commands_may_overlap_and_say_whose_they_are(tmp_path: Path) -> None:
    events = written(tmp_path / "t.json")["traceEvents"]
    commands = [(x["ph"], x["id"], x["ts"]) for x in events if x.get("cat") == "command"]
    assert commands == [("b", 0, 1), ("e", 0, 10), ("b", 1, 3), ("e", 1, 13)]
    about = [x["args"] for x in events if x["ph"] == "b"]
    assert [x["dispatch"] for x in about] == ["first", "second"]
    assert [x["submitted"] for x in about] == [0, 0]
    assert about[1]["text"].startswith("  1 NOT, 8 bits, run 24\n    A DENSE   0x00000100")


def test_a_cut_is_told_in_the_trace(tmp_path: Path) -> None:
    trace = written(tmp_path / "t.json", cut=True)
    text = "cut: the recording had no room for what came after cycle 12"
    assert trace["otherData"]["cut"] == text
    assert [(x["ts"], x["s"]) for x in trace["traceEvents"] if x["name"] == text] == [(12, "g")]


def test_a_profile_makes_the_device_record_unless_it_does(tmp_path: Path) -> None:
    profile = RunProfile(trace=tmp_path / "t.json")
    assert profile.recording_url("sim") == "sim?record=200000"
    assert profile.recording_url("sim:pysim?width=32") == "sim:pysim?width=32&record=200000"
    assert profile.recording_url("sim?record=5&width=32") == "sim?record=5&width=32"
    with pytest.raises(BitlaneError, match="--trace: serial:x is not a simulated device"):
        profile.recording_url("serial:x")
    for path, wanted in (
        (tmp_path / "no" / "t.json", "a folder that is there"),
        (tmp_path, "a file, not a folder"),
        (Path("/proc/t.json"), "a folder that can be written to"),
    ):
        with pytest.raises(BitlaneError, match=f"--trace: {path}; expected {wanted}"):
            RunProfile(trace=path).recording_url("sim")


# --- the page of `bitlane run --report` -----------------------------------------------------------


def page(path: Path, *, cut: bool = False) -> str:
    geometry = model(data_bytes=8).driver.geometry
    write_report(path, recorded(cut=cut), DISPATCHES, geometry, ("a <model>", "a device"))
    return path.read_text(encoding="utf-8")


def cells(table: str) -> list[list[str]]:
    """Return the texts of the rows of a table."""
    rows = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in table.split("<tr>")]
    return [[re.sub(r"<[^>]*>", "", cell) for cell in row] for row in rows if row]


def test_the_page_has_the_cycles_of_each_dispatch_and_the_causes_of_stalls(tmp_path: Path) -> None:
    text = page(tmp_path / "report.html")
    summary, rest = text.partition('<section id="summary">')[2].split("</section>", 1)
    # The second command has not ended.
    assert cells(summary) == [
        ["first", "1", "9", "3", "0.333", "show"],
        ["second", "1", "-", "-", "-", "-"],
    ]
    assert "Beats of 64 bits carried: read 3, write 3." in rest
    why = rest.partition("Why ports stood still")[2].partition("Commands, and how")[0]
    assert [row[:4] for row in cells(why)] == [
        ["read", "read data awaited", "2", "16.7%"],
        ["write", "write data awaited", "8", "66.7%"],
        ["write", "write data not taken", "1", "8.3%"],
    ]
    assert "<h1>a &lt;model&gt;</h1><p class=soft>on a device</p>" in text
    drawn_walks = re.findall(r"<figcaption>(\d) [^<]*?\b([AY]): ", text)
    assert drawn_walks == [("0", "A"), ("0", "Y"), ("1", "A"), ("1", "Y")]


def test_a_cut_is_told_on_the_page(tmp_path: Path) -> None:
    told = '<p class="cut">cut: the recording had no room for what came after cycle 12</p>'
    assert told in page(tmp_path / "report.html", cut=True)
    assert told not in page(tmp_path / "report.html")
