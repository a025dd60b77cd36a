"""The realigner assembles a reader's words into output beats, each in its cycle."""

import random
import re
from itertools import pairwise
from typing import Any

import pytest
from amaranth.hdl import Value

from bitlane_rtl.abi import Lane
from bitlane_rtl.configuration import Configuration
from bitlane_rtl.datapath import placement
from bitlane_rtl.datapath.realigner import Realigner
from bitlane_rtl.streams import ForwardRegister, Wire
from support.rtl.records import join
from support.rtl.streams import NO_STALLS, Source, Stalls, compiled, from_bits, simulate
from support.seeds import slow

STAGES: dict[str, tuple[Any, int, bool]] = {
    "wire": (Wire, 0, False),
    "register": (ForwardRegister, 1, False),
    "wire, dual": (Wire, 0, True),
    "register, dual": (ForwardRegister, 1, True),
}
"""Stage behind the byte network, its latency, and whether two beats can leave in a cycle."""
SINGLE = [name for name, (_, _, dual) in STAGES.items() if not dual]
DUAL = [name for name, (_, _, dual) in STAGES.items() if dual]
KINDS = ("prime", "flush", "merge", "repeat", "extra", "last", "end")
NUMBERS = ("split", "odd", "even", "slot", "final")
EDGE = ("last", "end", "error", "slot", "final")


def word(data: int, split: int, *flags: str, error: int = 0, **placement: int) -> dict[str, Any]:
    """Return a reader's word; ``flags`` are 1 in its placement, which also gets other values."""
    fields = {name: int(name in flags) for name in KINDS}
    return {"data": data, "error": error, "placement": {"split": split, **fields, **placement}}


def run(
    width: int, words: list[dict[str, Any]], stalls: Stalls = NO_STALLS, stage: str = "wire"
) -> tuple[list[int], list[tuple[int, Any]]]:
    """Send ``words``; return the cycle of each word, and the output beats with their cycles."""
    register, _, dual = STAGES[stage]
    dut = compiled(Realigner, Configuration(data_width=width), register, dual=dual)
    source = Source(dut.i, words, stalls)
    shape = dut.o[0].payload.shape()
    outputs = [signal for o in dut.o for signal in (o.valid, Value.cast(o.payload))]
    beats: list[tuple[int, Any]] = []

    async def watch(ctx: Any) -> None:
        cycle = 0
        while not source.cycles[len(words) - 1 :] or cycle < source.cycles[-1] + 8:
            _, _, *sampled = await ctx.tick().sample(*outputs)
            left = dict(enumerate(zip(sampled[::2], sampled[1::2], strict=True)))
            # A beat leaves at the port that is next in turn; a second beat leaves at the other.
            while left and left[turn := len(beats) % len(dut.o)][0]:
                beats.append((cycle, from_bits(shape, left[turn][1])))
                left[turn] = (0, 0)
            assert not any(valid for valid, _ in left.values()), f"out of turn: {left}"
            cycle += 1

    simulate(dut, source, watch)
    return source.cycles, beats


def moved(data: int, size: int, odd: int, even: int) -> list[int]:
    """Move a word's bytes as the byte network does, in steps of 1, 2, 4, ... bytes."""
    result = []
    for place in range(size):
        source = place
        for step in range(size.bit_length() - 1):
            if (odd if source >> step & 1 else even) >> step & 1:
                source = (source - (1 << step)) % size
        result.append(data >> 8 * source & 0xFF)
    return result


def expected(
    size: int, words: list[dict[str, Any]], taken: list[int], latency: int
) -> list[tuple[int, list[int | None], dict[str, int]]]:
    """Return the beats of words that were accepted in the cycles ``taken``: cycle, bytes and flags.

    A byte of None is unknown.
    """
    beats: list[tuple[int, list[int | None], dict[str, int]]] = []
    behind: list[int | None] = [None] * size
    spoiled = 0
    for each, cycle in zip(words, taken, strict=True):
        placement = {name: each["placement"].get(name, 0) for name in (*KINDS, *NUMBERS)}
        own = moved(each["data"], size, placement["odd"], placement["even"])
        joined = [own[at] if at >= placement["split"] else behind[at] for at in range(size)]
        spoiled |= each["error"]
        says = {"error": spoiled, "slot": placement["slot"], "final": placement["final"]}
        ends = {"last": placement["last"], "end": placement["end"]}
        if not placement["prime"]:
            repeat = (
                {"repeat": 1, "extra": placement["extra"]} if placement["repeat"] else {"repeat": 0}
            )
            edge = dict.fromkeys(ends, 0) if placement["flush"] else ends
            beats.append((cycle + latency, joined, says | edge | repeat))
        behind = joined if placement["merge"] else [*own]
        if placement["flush"]:
            beats.append((cycle + latency + 1, behind, says | ends | {"repeat": 0}))
    return beats


def check(
    width: int, words: list[dict[str, Any]], stalls: Stalls = NO_STALLS, stage: str = "wire"
) -> tuple[list[int], list[int]]:
    """Compare every beat and its cycle; return the beats' data and the cycles of the words."""
    taken, beats = run(width, words, stalls, stage)
    wanted = expected(width // 8, words, taken, STAGES[stage][1])
    assert [cycle for cycle, _ in beats] == [cycle for cycle, _, _ in wanted], f"{words} {stalls}"
    of = f"{words}, {stalls}"
    for number, ((_, got), (_, data, says)) in enumerate(zip(beats, wanted, strict=True)):
        found = int(got.data).to_bytes(width // 8, "little")
        assert all(want in (None, byte) for want, byte in zip(data, found, strict=True)), (
            number,
            of,
        )
        edge = {name: got.edge[name] if name in EDGE else got[name] for name in says}
        assert edge == says, (number, of)
    return [int(beat.data) for _, beat in beats], taken


def random_word(generator: random.Random, size: int) -> dict[str, Any]:
    flags = [name for name in KINDS if generator.random() < 0.4]
    moves = generator.randrange(size)
    odd = moves if generator.random() < 0.5 else generator.randrange(size)
    return word(
        generator.getrandbits(8 * size),
        generator.randrange(size),
        *flags,
        error=int(generator.random() < 0.01),
        odd=odd,
        even=moves,
        slot=generator.randrange(8),
        final=generator.randrange(4),
    )


@pytest.mark.parametrize(
    ("width", "stage"),
    [
        *((32, stage) for stage in STAGES),
        *((64, "wire"), slow(64, "register"), slow(64, "wire, dual"), (64, "register, dual")),
    ],
)
def test_words_of_every_kind_give_their_beats(width: int, stage: str, stalls: Stalls) -> None:
    generator = random.Random(f"{width} {stage} {stalls.seed}")
    words = [random_word(generator, width // 8) for _ in range(300)]
    _, taken = check(width, words, stalls, stage)
    if stalls == NO_STALLS:
        # A word waits while the flush before it emits its beat; a prime does not wait.
        waits = [
            before["placement"]["flush"] and not after["placement"]["prime"] and stage in SINGLE
            for before, after in pairwise(words)
        ]
        assert [after - before for before, after in pairwise(taken)] == [1 + wait for wait in waits]


@pytest.mark.parametrize("lane", Lane)
def test_an_element_fills_its_beat(lane: Lane) -> None:
    """Each step of the network doubles the part of the beat that is filled with the element."""
    elements = [0x1122334455667788 >> lane.bits * at for at in range(64 // lane.bits)]
    words = []
    for at in range(len(elements)):
        source = at * lane.bytes
        wide = [step for step in range(3) if 1 << step >= lane.bytes]
        odd = sum((~source >> step & 1) << step for step in wide)
        even = sum((source >> step & 1) << step for step in wide)
        placement = {"odd": odd, "even": even}
        words.append(word(0x1122334455667788, 0, "repeat", "last", **placement))
    data, _ = check(64, words)
    ones = (1 << lane.bits) - 1
    assert data == [join([each & ones] * len(elements), lane.bits) for each in elements]


@pytest.mark.parametrize("stage", STAGES)
def test_words_behind_a_flush(stage: str) -> None:
    """A prime costs no cycle and its error is not the flush's; any other word waits a cycle.

    No word waits if two beats can leave.
    """
    words = [
        word(0x44332211, 2, "prime"),
        word(0x88776655, 2, "flush", "last"),
        word(0x04030201, 0),
        word(0x11111111, 0, "flush", "last"),
        word(0x22222222, 2, "prime", error=1),
        word(0x33333333, 2, "last", "end"),
    ]
    data, taken = check(32, words, stage=stage)
    assert data == [0x88772211, 0x88776655, 0x04030201, 0x11111111, 0x11111111, 0x33332222]
    assert taken == ([0, 1, 2, 3, 4, 5] if stage in DUAL else [0, 1, 3, 4, 5, 6])


def drawn() -> list[dict[str, list[str]]]:
    """Return the rows of each drawing in the docstring of `placement`, as lists of beats."""
    rows = re.findall(r"(?m)^    (words|rotated|output beats) +(.*)", str(placement.__doc__))
    beats = [(name, re.findall(r"[a-z.]{8}", row.replace("(prime)", ""))) for name, row in rows]
    return [dict(beats[at : at + 3]) for at in range(0, len(beats), 3)]


@pytest.mark.parametrize("drawing", drawn(), ids=["two beats", "three beats"])
def test_the_drawing_of_a_placement_is_true(drawing: dict[str, list[str]]) -> None:
    """``.`` stands for a byte outside the span, which is undefined in the output."""
    words = []
    for number, text in enumerate(drawing["words"]):
        is_last = number == len(drawing["words"]) - 1
        has_flush = is_last and len(drawing["output beats"]) == len(drawing["words"])
        flags = (["prime"] if number == 0 else []) + (["flush"] if has_flush else [])
        data = int.from_bytes(text.encode(), "little")
        words.append(word(data, 5, *flags, odd=2 - 5 & 7, even=2 - 5 & 7))
        assert bytes(moved(data, 8, 2 - 5 & 7, 2 - 5 & 7)).decode() == drawing["rotated"][number]
    data, _ = check(64, words)
    beats = [beat.to_bytes(8, "little").decode() for beat in data]
    for beat, drawn_beat in zip(beats, drawing["output beats"], strict=True):
        assert all(want in (".", byte) for byte, want in zip(beat, drawn_beat, strict=True)), beats
