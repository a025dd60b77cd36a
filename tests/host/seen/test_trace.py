"""`bitlane run --trace` writes a trace for Perfetto, and marks a cut recording."""

import json
from pathlib import Path
from typing import Any

import pytest

from bitlane.driver.commands import Command, Walk
from bitlane.errors import BitlaneError
from bitlane.seen.lowered import Dispatched
from bitlane.seen.trace import write_trace
from bitlane.seen.watch import NO_WATCH, Watch
from bitlane_rtl.abi import Lane, Op
from support.host.recordings import drawn

COMMAND = Command(Op.NOT, Lane.BITS_8, Lane.BITS_8, 24, Walk(0x100, 0x117), None, Walk(0, 0x17))
DISPATCHES = [Dispatched("first", (COMMAND,)), Dispatched("second", (COMMAND,))]


def written(path: Path, *, cut: bool = False) -> dict[str, Any]:
    recording = drawn(
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
    write_trace(path, recording, DISPATCHES, "a device")
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


def test_a_device_is_asked_to_record_only_if_something_is_to_be_written(tmp_path: Path) -> None:
    watch = Watch(trace=tmp_path / "t.json")
    assert NO_WATCH.url("serial:x") == "serial:x"
    assert watch.url("sim") == "sim?record=200000"
    assert watch.url("sim:pysim?width=32") == "sim:pysim?width=32&record=200000"
    assert watch.url("sim?record=5&width=32") == "sim?record=5&width=32"
    with pytest.raises(BitlaneError, match="--trace: serial:x is no simulated device"):
        watch.url("serial:x")
    for path, wanted in (
        (tmp_path / "no" / "t.json", "a folder that is there"),
        (tmp_path, "a file, not a folder"),
        (Path("/proc/t.json"), "a folder that can be written to"),
    ):
        with pytest.raises(BitlaneError, match=f"--trace: {path}; expected {wanted}"):
            Watch(trace=path).url("sim")
