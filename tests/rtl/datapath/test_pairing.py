"""Operands are realigned into beats, each in its cycle, and pairing joins those of A and of B.

A beat is repeated as needed, and nothing else is emitted. In the last beat of a summed run pairing
marks the bytes that belong to the run. The watchdog expires after exactly ``bound`` waiting cycles.
"""

import random
import re
from dataclasses import dataclass, field
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from amaranth.hdl import Cat, Mux, Value
from amaranth.lib import data

from bitlane_rtl.abi import Lane, Mode, Op, Port
from bitlane_rtl.configuration import Configuration
from bitlane_rtl.datapath import Pairing, Realigner, Watchdog, placement
from bitlane_rtl.streams import ForwardRegister, Wire
from support.rtl.records import fields_of, join, random_edge
from support.rtl.streams import (
    NO_STALLS,
    Sink,
    Source,
    Stalls,
    clocked,
    compiled,
    from_bits,
    simulate,
)
from support.seeds import seeds, slow

DENSE = frozenset({Mode.DENSE})
CONFIGURATIONS = {
    "all": Configuration(),
    "32 bits": Configuration(data_width=32),
    "dense runs": Configuration(modes=DENSE),
    "XOR alone": Configuration(ops=frozenset({Op.XOR})),
    "XOR alone, dense runs": Configuration(ops=frozenset({Op.XOR}), modes=DENSE),
    "NOT alone": Configuration(ops=frozenset({Op.NOT})),
    "NOT alone, dense runs": Configuration(ops=frozenset({Op.NOT}), modes=DENSE),
}


@dataclass
class Traffic:
    """Commands, the beats of both operands, and the expected pairs."""

    configuration: Configuration
    generator: random.Random
    errors: float = 0.0
    work: list[dict[str, Any]] = field(default_factory=list)
    a: list[dict[str, Any]] = field(default_factory=list)
    b: list[dict[str, Any]] = field(default_factory=list)
    expected: list[dict[str, Any]] = field(default_factory=list)
    bad: list[Port] = field(default_factory=list)
    """The operand in error of each bad pair; A if both operands are in error."""

    def command(self, runs: int, from_byte_0: int, repeat_a: bool, repeat_b: bool) -> None:
        """Add a command; ``from_byte_0`` is the number of beats of a run that begins at byte 0."""
        config, generator = self.configuration, self.generator
        op = generator.choice(sorted(config.ops))
        has_b = op.reads_b
        operation = {"op": op, "lane": generator.randrange(4), "out_lane": generator.randrange(4)}
        repeats = Mode.REPEAT in config.modes
        beats = {"beats": from_byte_0 - 2} if repeats else {}
        size = config.data_bytes
        rest = generator.randrange(size) if Mode.SUM in config.modes else size - 1
        told = {"rest": rest} if Mode.SUM in config.modes else {}
        self.work.append({"operation": operation, "reads_b": has_b, **beats, **told})
        for run in range(runs):
            extra = generator.random() < 0.5
            end = run == runs - 1
            length = from_byte_0 + extra
            a = self._run(length, end, repeat_a and repeats, extra)
            b = self._run(length, end, repeat_b and repeats, generator.random() < 0.5)
            self.a += [beat for beat, _ in a if beat]
            self.b += [beat for beat, _ in b if beat and has_b]
            for index in range(length):
                (_, one), (_, two) = a[index], b[index]
                ends = {"last": index == length - 1, "end": end and index == length - 1}
                error = one["edge"]["error"] or (has_b and two["edge"]["error"])
                edge = {**one["edge"], **ends, "error": error}
                inside = (2 << (rest if ends["last"] else size - 1)) - 1
                pair = {"a": one["data"], "inside": inside, "edge": edge, "operation": operation}
                self.expected.append({**pair, "b": two["data"]} if has_b else pair)
                if error:
                    self.bad.append(Port.READ_A if one["edge"]["error"] else Port.READ_B)

    def _run(
        self, length: int, end: bool, repeat: bool, extra: bool
    ) -> list[tuple[dict[str, Any] | None, dict[str, Any]]]:
        """Return for each pair of a run the beat that arrives, or None, and the pair's own beat."""
        generator = self.generator
        result: list[tuple[dict[str, Any] | None, dict[str, Any]]] = []
        for index in range(length):
            if repeat and index:
                result.append((None, result[0][1]))
                continue
            last = index == length - 1  # in a repeated beat, 1 only if it is the run's only beat
            error = generator.random() < self.errors
            edge = random_edge(generator, last, end=end and (repeat or last), error=error)
            beat = {"data": generator.getrandbits(self.configuration.data_width), "edge": edge}
            if Mode.REPEAT in self.configuration.modes:
                beat |= {"repeat": repeat, "extra": extra}
            result.append((beat, beat))
        return result


def defined(dut: Pairing) -> Any:
    """Return the output with ``b`` masked where B is unused, as it may change during a wait."""
    pair, layout = dut.o.p, dut.o.payload.shape()
    reads_b = dut.work.p.reads_b if dut.has_work else 1
    fields = Cat(pair.a, Mux(reads_b, pair.b, 0), pair.inside, pair.operation, pair.edge)
    payload = data.View(layout, fields)
    return SimpleNamespace(valid=dut.o.valid, ready=dut.o.ready, payload=payload)


def check(traffic: Traffic, stalls: Stalls = NO_STALLS) -> tuple[list[int], list[int], Port]:
    """Compare every pair; return the cycles of A's beats and of the pairs, and ``bad_port``."""
    dut = compiled(Pairing, traffic.configuration)
    sources = {"a": Source(dut.a, traffic.a, stalls, "a")}
    if traffic.configuration.has_b:
        sources["b"] = Source(dut.b, traffic.b, stalls, "b")
    if dut.has_work:
        sources["work"] = Source(dut.work, traffic.work, stalls, "work")
    sink = Sink(defined(dut), len(traffic.expected), stalls)
    rooms = random.Random(f"room {stalls.seed}")
    bad: list[int] = []

    async def room(ctx: Any) -> None:
        """Draw ``room`` anew while it is 0 and after each pair that is sent."""
        ctx.set(dut.room, 1)
        has_room = True
        while True:
            _, _, valid, ready, port = await ctx.tick().sample(
                dut.o.valid, dut.o.ready, dut.bad_port
            )
            assert has_room or not valid, str(stalls)
            bad.append(port)
            if stalls != NO_STALLS and (not has_room or (valid and ready)):
                has_room = rooms.random() < 0.6
            ctx.set(dut.room, has_room)

    simulate(dut, *sources.values(), sink, background=[room])
    single = traffic.configuration.single_op
    of = f"{traffic.work}, {stalls}"
    for number, (got, want) in enumerate(zip(sink.payloads, traffic.expected, strict=True)):
        where = (number, of)
        if single is not None and not dut.has_work:
            want = {**want, "operation": {"op": single}}
        assert fields_of(got, want) == want, where
    return sources["a"].cycles, sink.cycles, Port(bad[-1])


def random_traffic(name: str, seed: int, errors: float = 0.0) -> Traffic:
    generator = random.Random(f"{name} {seed}")
    traffic = Traffic(CONFIGURATIONS[name], generator, errors)
    for _ in range(30):
        repeat_a, repeat_b = (generator.random() < 0.4 for _ in range(2))
        runs, length = generator.randint(1, 3), generator.choice([1, 1, 2, 3, 9])
        traffic.command(runs, length, repeat_a, repeat_b)
    return traffic


SLOW = {"32 bits", "dense runs", "XOR alone"}
"""Configurations of the full tier."""


@pytest.mark.parametrize("name", [slow(name) if name in SLOW else name for name in CONFIGURATIONS])
def test_commands_of_every_kind_in_turn(name: str, stalls: Stalls) -> None:
    _, cycles, _ = check(random_traffic(name, stalls.seed), stalls)
    if stalls == NO_STALLS:
        assert cycles == list(range(len(cycles))), "a beat a cycle, from the first on"


@pytest.mark.parametrize("name", ["all", "NOT alone, dense runs"])
def test_a_pair_goes_when_its_beats_are_there(name: str) -> None:
    traffic = Traffic(CONFIGURATIONS[name], random.Random(1))
    traffic.command(3, 4, repeat_a=False, repeat_b=False)
    came, cycles, _ = check(traffic)
    assert came == cycles


def test_a_repeated_beat_is_taken_with_the_last_of_its_run() -> None:
    traffic = Traffic(CONFIGURATIONS["all"], random.Random(2))
    traffic.command(3, 5, repeat_a=True, repeat_b=True)
    came, cycles, _ = check(traffic)
    lasts = [index for index, pair in enumerate(traffic.expected) if pair["edge"]["last"]]
    assert came == [cycles[index] for index in lasts]


@pytest.mark.parametrize("seed", seeds(2, 8))
@pytest.mark.parametrize("name", ["all", "XOR alone, dense runs", "NOT alone"])
def test_the_first_operand_in_error_is_kept(name: str, seed: int) -> None:
    traffic = random_traffic(name, seed, errors=0.05)
    assert traffic.bad, "else nothing is tested"
    _, _, bad = check(traffic)
    assert bad == traffic.bad[0], f"seed {seed}"


# --- the watchdog ---------------------------------------------------------------------------------


def expiry(bound: int, script: str) -> list[int]:
    """Return the cycles with ``expired`` 1. ``script``, by cycle: w waits, p progress, i idle."""
    inputs = [{"bound": bound, "waiting": x != "i", "progress": x == "p"} for x in script]
    (expired,) = clocked(compiled(Watchdog), inputs, "expired")
    return [cycle for cycle, level in enumerate(expired) if level]


@pytest.mark.parametrize("bound", [1, 2, 7])
def test_waits_of_the_bound_expire(bound: int) -> None:
    assert expiry(bound, "i" + "w" * bound + "i") == []
    assert expiry(bound, "i" + "w" * (bound + 1)) == [bound + 1]


def test_progress_starts_the_count_again_at_the_last_moment_too() -> None:
    assert expiry(3, "i" + "wwwp" * 5) == []
    assert expiry(3, "iwwwpwwww") == [8]


def test_no_bound_never_expires() -> None:
    assert expiry(0, "w" * 300) == []


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


def realigned(
    width: int, words: list[dict[str, Any]], stalls: Stalls = NO_STALLS, stage: str = "wire"
) -> tuple[list[int], list[int]]:
    """Compare every beat and its cycle; return the beats' data and the cycles of the words."""
    taken, beats = run(width, words, stalls, stage)
    wanted = expected(width // 8, words, taken, STAGES[stage][1])
    assert [cycle for cycle, _ in beats] == [cycle for cycle, _, _ in wanted], f"{words} {stalls}"
    of = f"{words}, {stalls}"
    for number, ((_, got), (_, content, says)) in enumerate(zip(beats, wanted, strict=True)):
        found = int(got.data).to_bytes(width // 8, "little")
        assert all(want in (None, byte) for want, byte in zip(content, found, strict=True)), (
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
    _, taken = realigned(width, words, stalls, stage)
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
    data, _ = realigned(64, words)
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
    data, taken = realigned(32, words, stage=stage)
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
    data, _ = realigned(64, words)
    beats = [beat.to_bytes(8, "little").decode() for beat in data]
    for beat, drawn_beat in zip(beats, drawing["output beats"], strict=True):
        assert all(want in (".", byte) for byte, want in zip(beat, drawn_beat, strict=True)), beats
