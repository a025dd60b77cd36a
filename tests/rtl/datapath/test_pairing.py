"""Pairing joins each beat of A with its beat of B, repeated as needed, and emits nothing else.

In the last beat of a summed run it marks the bytes that belong to the run. The watchdog expires
after exactly ``bound`` waiting cycles.
"""

import random
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from amaranth.hdl import Cat, Mux
from amaranth.lib import data

from bitlane_rtl.abi import Mode, Op, Port
from bitlane_rtl.configuration import Configuration
from bitlane_rtl.datapath.pairing import Pairing
from bitlane_rtl.datapath.watchdog import Watchdog
from support.rtl.records import fields_of, random_edge
from support.rtl.streams import NO_STALLS, Sink, Source, Stalls, clocked, compiled, simulate
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
