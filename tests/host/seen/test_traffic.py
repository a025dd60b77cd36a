"""Bursts, stalls and commands, read off recordings that are drawn."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bitlane.links.recording import Recording
from bitlane.seen.traffic import (
    SeenBurst,
    SeenCommand,
    SeenPort,
    SeenStall,
    bursts,
    busy,
    ports,
    runs,
    stalls,
)
from support.host.recordings import drawn
from support.seeds import seeds

READ, WRITE = SeenPort("read", "ar", "r"), SeenPort("write", "aw", "w")
READ_A, READ_B = SeenPort("read A", "ar", "r"), SeenPort("read B", "ar_b", "r_b")


def together(recording: Recording) -> Recording:
    """Return the recording with equal consecutive entries merged, but for those with an address."""
    flags = [*recording.valid.values(), *recording.ready.values(), recording.started]
    flags += [recording.retired, recording.faulted, recording.doorbell]
    new = np.any([np.diff(flag, prepend=~flag[:1]) for flag in flags], axis=0)
    for name in recording.beats:
        new |= recording.valid[name] & recording.ready[name]

    def kept(table: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        return {name: values[new] for name, values in table.items()}

    return Recording(
        cycles=recording.cycles[new],
        end=recording.end,
        cut=recording.cut,
        valid=kept(recording.valid),
        ready=kept(recording.ready),
        addresses=kept(recording.addresses),
        beats=kept(recording.beats),
        doorbell=recording.doorbell[new],
        started=recording.started[new],
        retired=recording.retired[new],
        faulted=recording.faulted[new],
    )


def test_beats_belong_to_the_addresses_in_their_order() -> None:
    recording = drawn(
        {"ar": [(0x100, 3), (0x200, 1)], "aw": [(0x300, 2)]},
        ar="rxrxrrrrrr",
        r=".rrxxrrxxr",
        aw="rrrrrrrxrr",
        w="rrrrrxrrxr",
    )
    assert ports(recording) == [READ, WRITE]
    assert bursts(recording, READ) == [SeenBurst(0x100, 3, 1, 3, 7), SeenBurst(0x200, 1, 3, 8, 8)]
    # Data may come before its address.
    assert bursts(recording, WRITE) == [SeenBurst(0x300, 2, 7, 5, 8)]


def test_a_burst_that_is_not_all_there_is_left_out() -> None:
    recording = drawn({"ar": [(0x100, 2), (0x200, 2)]}, ar="xxrrr", r="rrxxx")
    assert bursts(recording, READ) == [SeenBurst(0x100, 2, 0, 2, 3)]


def test_two_ports_read_where_there_are_two() -> None:
    recording = drawn({"ar": [(0, 1)], "ar_b": [(64, 1)]}, ar="xr", r="rx", ar_b="xr", r_b="rx")
    assert ports(recording) == [READ_A, READ_B]


def test_a_read_port_waits_for_the_memory_or_the_circuit() -> None:
    recording = drawn({"ar": [(0x100, 4)]}, ar="vvxrrrrrrrrrrr", r="..rrrxxvvxrxrr")
    assert stalls(recording, READ) == [
        SeenStall("request not taken", 0, 2),
        SeenStall("read data awaited", 3, 5),
        SeenStall("read data not taken", 7, 9),
        SeenStall("read data awaited", 10, 11),
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
        SeenStall("write data awaited", 2, 4),
        SeenStall("write data awaited", 5, 6),
        SeenStall("write data not taken", 6, 8),
        SeenStall("response awaited", 9, 12),
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
    assert runs(recording) == [
        SeenCommand(0, 1, 6),
        SeenCommand(0, 3, 8),
        SeenCommand(4, 9, 11, faulted=True),
        SeenCommand(4, 12, -1),
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
    assert busy(recording) == [(1, 6), (6, 8), (8, 10)]
    recording = drawn({}, doorbell="x...x..", started=".x...x.", retired="..x...x")
    assert busy(recording) == [(1, 2), (5, 6)]


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
