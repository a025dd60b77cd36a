"""Bursts, beats and stalls of a device's ports, from a recording; does not run a device."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ..links import Recording

CAUSES: Final = {
    "request not taken": "address valid, not ready: the memory takes no request yet",
    "read data awaited": "asked for and not valid: the memory has not answered yet",
    "read data not taken": "valid, not ready: the circuit has no room for more",
    "write data not taken": "valid, not ready: the memory takes no data yet",
    "write data awaited": "ready, not valid: the circuit has nothing to write yet",
    "response awaited": "all is written: the memory has not confirmed it yet",
}
"""Causes of a stall, and the side that waits."""


@dataclass(frozen=True, slots=True)
class RecordedPort:
    """A port of the memory, by its channels."""

    name: str
    address: str
    data: str

    @property
    def writes(self) -> bool:
        return self.data == "w"


@dataclass(frozen=True, slots=True)
class RecordedBurst:
    """Beats of one address, in cycles."""

    address: int
    beats: int
    asked: int
    """Cycle in which the address was accepted."""
    first: int
    last: int
    """Its first and its last beat."""


@dataclass(frozen=True, slots=True)
class RecordedStall:
    """Cycles ``first`` to ``end - 1``, in which a port stalled for one of `CAUSES`."""

    cause: str
    first: int
    end: int


@dataclass(frozen=True, slots=True)
class RecordedCommand:
    """A command at work, in cycles; ``end`` is -1 if it has not ended."""

    submitted: int
    started: int
    end: int
    faulted: bool = False


def ports(recording: Recording) -> list[RecordedPort]:
    """Return the ports that carried anything."""
    reads = "read A" if recording.valid["ar_b"].any() else "read"
    known = (
        RecordedPort(reads, "ar", "r"),
        RecordedPort("read B", "ar_b", "r_b"),
        RecordedPort("write", "aw", "w"),
    )
    return [port for port in known if recording.valid[port.address].any()]


def recorded_commands(recording: Recording) -> list[RecordedCommand]:
    """Return all commands, in their order."""
    cycles = recording.cycles
    rung, started = cycles[recording.doorbell], cycles[recording.started]
    ended = cycles[recording.retired | recording.faulted].tolist()
    faulted = recording.faulted[recording.retired | recording.faulted].tolist()
    submitted = rung[np.maximum(np.searchsorted(rung, started, "right") - 1, 0)].tolist()
    missing = len(submitted) - len(ended)
    return [
        RecordedCommand(*each)
        for each in zip(
            submitted,
            started.tolist(),
            ended + [-1] * missing,
            faulted + [False] * missing,
            strict=False,
        )
    ]


def busy_spans(recording: Recording) -> list[tuple[int, int]]:
    """Return the first cycle and the end of each command that ended, in order.

    The circuit is busy, and BUSY_CYCLES counts, from the cycle after a doorbell until all
    submitted commands have ended. A cycle counts for the oldest command that has not ended.
    """
    return [(first, run.end) for first, run in _busy_from(recording) if run.end >= 0]


def busy_cycles(recording: Recording) -> int:
    """Return the number of cycles in which a submitted command had not ended."""
    spans = _busy_from(recording)
    return sum((recording.end if run.end < 0 else run.end) - first for first, run in spans)


def _busy_from(recording: Recording) -> list[tuple[int, RecordedCommand]]:
    """Return the first busy cycle of each command, up to the first one that has not ended."""
    rung = recording.cycles[recording.doorbell]
    result: list[tuple[int, RecordedCommand]] = []
    before = 0
    for run in recorded_commands(recording):
        # Without a doorbell between the last end and its start, the command was submitted before.
        place = int(np.searchsorted(rung, before))
        idle = place < len(rung) and int(rung[place]) < run.started
        result.append((int(rung[place]) + 1 if idle else before, run))
        if run.end < 0:
            break
        before = run.end
    return result


def beats_carried(recording: Recording, channel: str) -> NDArray[np.int64]:
    """Return the beats that ``channel`` had carried before each entry, and at the end."""
    fires = recording.valid[channel] & recording.ready[channel]
    return np.concatenate([[0], np.cumsum(fires * _lengths(recording))])


def bursts(recording: Recording, port: RecordedPort) -> list[RecordedBurst]:
    """Return the bursts of a port, in order; one that was cut off is left out."""
    asked = recording.valid[port.address] & recording.ready[port.address]
    beats = recording.beats[port.address][asked]
    carried = beats_carried(recording, port.data)
    ends = np.cumsum(beats)
    whole = ends <= carried[-1]
    first = _cycles_of(recording, carried, (ends - beats)[whole])
    last = _cycles_of(recording, carried, ends[whole] - 1)
    columns = (
        recording.addresses[port.address][asked][whole],
        beats[whole],
        recording.cycles[asked][whole],
        first,
        last,
    )
    return [RecordedBurst(*each) for each in zip(*(x.tolist() for x in columns), strict=True)]


def stalls(recording: Recording, port: RecordedPort) -> list[RecordedStall]:
    """Return the stalls of a port while a command was at work, with their causes."""
    causes = _write_causes(recording) if port.writes else _read_causes(recording, port)
    names = list(CAUSES)
    return [
        RecordedStall(names[cause], first, end)
        for cause, first, end in _join(causes, recording)
        if cause >= 0
    ]


def _lengths(recording: Recording) -> NDArray[np.int64]:
    """Return the number of cycles of each entry."""
    return np.diff(recording.cycles, append=recording.end)


def _cycles_of(
    recording: Recording, carried: NDArray[np.int64], beats: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the cycles of numbered ``beats``; ``carried`` is the result of `beats_carried`."""
    entries = np.searchsorted(carried, beats, "right") - 1
    result: NDArray[np.int64] = recording.cycles[entries] + beats - carried[entries]
    return result


def _join(causes: NDArray[np.int64], recording: Recording) -> Iterator[tuple[int, int, int]]:
    """Join neighbouring entries of one cause; yield cause, first cycle and end."""
    changes = np.flatnonzero(np.diff(causes, prepend=-2))
    firsts = recording.cycles[changes]
    ends = np.append(firsts[1:], recording.end)
    yield from zip(causes[changes].tolist(), firsts.tolist(), ends.tolist(), strict=True)


def _cause(name: str) -> int:
    return list(CAUSES).index(name)


def _read_causes(recording: Recording, port: RecordedPort) -> NDArray[np.int64]:
    """Return the number of the cause of each entry; -1 where the port does not stall."""
    valid, ready = recording.valid, recording.ready
    asked = valid[port.address] & ready[port.address]
    total = np.cumsum(np.where(asked, recording.beats[port.address], 0))
    due = np.concatenate([[0], total[:-1]]) - beats_carried(recording, port.data)[:-1]
    return np.select(
        [
            valid[port.data] & ready[port.data],
            valid[port.data],
            due > 0,
            valid[port.address] & ~ready[port.address],
        ],
        [
            -1,
            _cause("read data not taken"),
            _cause("read data awaited"),
            _cause("request not taken"),
        ],
        -1,
    )


def _write_causes(recording: Recording) -> NDArray[np.int64]:
    """Return the causes as `_read_causes` does, for the port that writes."""
    valid, ready = recording.valid, recording.ready
    ended = recording.retired | recording.faulted
    working: NDArray[np.int64] = np.cumsum(recording.started) - np.cumsum(ended)
    fires = valid["w"] & ready["w"]
    # A lone command that ends before any further beat has written all of its data.
    written = (_next(ended) < _next(fires)) & (working == 1)
    return np.select(
        [
            fires,
            valid["w"],
            valid["aw"] & ~ready["aw"],
            (working > 0) & written,
            working > 0,
        ],
        [
            -1,
            _cause("write data not taken"),
            _cause("request not taken"),
            _cause("response awaited"),
            _cause("write data awaited"),
        ],
        -1,
    )


def _next(happens: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the next entry in which ``happens`` is true, for each; their number if none."""
    places = np.flatnonzero(happens)
    padded = np.append(places, len(happens))
    result: NDArray[np.int64] = padded[np.searchsorted(places, np.arange(len(happens)), "right")]
    return result
