"""The circuit obeys `docs/registers.md` on refusals, words in use, TIMEOUT and FAULT_ADDRESS:
each sentence of the page has a row here."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from bitlane_rtl.abi import RECORD, RECORD_WORDS, Lane, Mode, Op, Port, Status, record_words
from support.commands import logic
from support.rtl.bench import SIZE, SMALL, EngineBench, configuration, ending
from support.rtl.records import Task, apply, pack, reseal
from support.rtl.walks import Walk
from support.seeds import seeds, slow

NARROW = {"data_width": 32}
ODD = {"A_BASE": 65, "A_STRIDE": 1, "A_JUMP_1": 33, "Y_BASE": 4097, "Y_STRIDE": 1, "Y_JUMP_1": 35}


def walk(base: int, lane: Lane, mode: Mode = Mode.DENSE) -> Walk:
    """Return 2 runs of 4 elements; STRIDED elements are 16 bytes apart."""
    step = {Mode.DENSE: lane.bytes, Mode.STRIDED: 16, Mode.REPEAT: 0, Mode.SUM: 0}[mode]
    return Walk(base, [4, 2], [step, 128], mode, lane)


def task(op: Op, lane: Lane = Lane.BITS_8, out_lane: Lane | None = None, **modes: Mode) -> Task:
    """Return a command with a `walk` for A, for B if ``op`` reads it, and for Y."""
    b = walk(1024, lane, modes.get("b", Mode.DENSE)) if op.reads_b else None
    y = walk(4096, lane if out_lane is None else out_lane, modes.get("y", Mode.DENSE))
    return Task(op, walk(64, lane, modes.get("a", Mode.DENSE)), b, y)


@dataclass
class Claim:
    """A record, and its code according to the page; ``OK`` if it is executed."""

    status: Status
    task: Task
    overrides: dict[str, int] = field(default_factory=dict)
    circuit: dict[str, Any] = field(default_factory=dict)


BAD_LANE, BAD_CONTROL, OK = Status.BAD_LANE, Status.BAD_CONTROL, Status.OK
MISALIGNED = Status.MISALIGNED
DENSE, STRIDED, REPEAT, SUM = Mode.DENSE, Mode.STRIDED, Mode.REPEAT, Mode.SUM
BITS_8, BITS_16, BITS_32, BITS_64 = Lane
COUNT = task(Op.COUNT, BITS_8, BITS_32)
WIDE_COUNT_OR = task(Op.COUNT_OR, BITS_64, BITS_32)
WIDE_COUNT = task(Op.COUNT, BITS_64, BITS_32)
STRIDED_COUNT = task(Op.COUNT, BITS_64, BITS_32, y=STRIDED)
TWO_BYTES = task(Op.NOT, BITS_16)
ODD_XOR = Task(
    Op.XOR,
    *(
        Walk(base, [4, 2], [2, step], DENSE, BITS_16)
        for base, step in ((65, 33), (1027, 21), (4097, 35))
    ),
)

LANES = {
    "SUM of A, in a beat": Claim(BAD_CONTROL, WIDE_COUNT, {"A_MODE": SUM}),
    "SUM of A, wider": Claim(BAD_LANE, WIDE_COUNT, {"A_MODE": SUM}, NARROW),
    "SUM of B, in a beat": Claim(BAD_CONTROL, WIDE_COUNT_OR, {"B_MODE": SUM}),
    "SUM of B, wider": Claim(BAD_LANE, WIDE_COUNT_OR, {"B_MODE": SUM}, NARROW),
    "SUM of A, not built": Claim(BAD_LANE, TWO_BYTES, {"A_MODE": SUM}, SMALL),
    "B_MODE without B, in a beat": Claim(BAD_CONTROL, WIDE_COUNT, {"B_MODE": REPEAT}),
    "B_MODE without B, wider": Claim(BAD_LANE, WIDE_COUNT, {"B_MODE": REPEAT}, NARROW),
    "REPEAT of Y, in a beat": Claim(BAD_CONTROL, WIDE_COUNT, {"Y_MODE": REPEAT}),
    "REPEAT of Y, wider": Claim(BAD_LANE, WIDE_COUNT, {"Y_MODE": REPEAT}, NARROW),
    "only Y is STRIDED, in a beat": Claim(OK, STRIDED_COUNT),
    "only Y is STRIDED, LANE is wider": Claim(BAD_LANE, STRIDED_COUNT, {}, NARROW),
    "only Y is STRIDED, OUT_LANE is not built": Claim(
        OK, task(Op.COUNT, BITS_8, BITS_32, y=STRIDED), {}, SMALL
    ),
    "SUM of Y, LANE is wider": Claim(OK, task(Op.COUNT, BITS_64, BITS_32, y=SUM), {}, NARROW),
    "DENSE, LANE is wider": Claim(OK, WIDE_COUNT, {}, NARROW),
    "DENSE logic, not built": Claim(OK, TWO_BYTES, {}, SMALL),
    "STRIDED logic, not built": Claim(BAD_LANE, task(Op.NOT, BITS_16, a=STRIDED), {}, SMALL),
}

ALIGNMENT = {
    "DENSE logic": Claim(OK, TWO_BYTES, {"A_STRIDE": 1, "Y_STRIDE": 1, "B_STRIDE": 1}),
    "DENSE logic from odd addresses": Claim(
        OK, ODD_XOR, {"A_STRIDE": 1, "B_STRIDE": 3, "Y_STRIDE": 5}
    ),
    **{
        f"A is {mode.name}, {name}": Claim(MISALIGNED, task(Op.NOT, BITS_16, a=mode), {name: value})
        for mode in (STRIDED, REPEAT)
        for name, value in ODD.items()
    },
    **{
        f"Y is STRIDED, {name}": Claim(
            MISALIGNED if name[0] == "Y" else OK,
            task(Op.NOT, BITS_16, y=STRIDED),
            {name: value} if name[0] == "Y" else {"A_STRIDE": 1},
        )
        for name, value in ODD.items()
    },
    **{
        f"Y of {op.name}, {name}": Claim(MISALIGNED, task(op, BITS_32), {name: value})
        for op in (Op.SHIFT_LEFT, Op.COUNT)
        for name, value in ODD.items()
        if name[0] == "Y"
    },
    "SUM, Y_STRIDE": Claim(MISALIGNED, task(Op.COUNT, BITS_8, BITS_32, y=SUM), {"Y_STRIDE": 2}),
    "counts, Y by OUT_LANE": Claim(MISALIGNED, COUNT, {"Y_STRIDE": 2}),
    "counts, A by LANE": Claim(OK, task(Op.COUNT, BITS_8, BITS_32, a=REPEAT), {"A_STRIDE": 1}),
    "DENSE A of a shift": Claim(OK, task(Op.SHIFT_LEFT, BITS_32), {"A_STRIDE": 1}),
    "DENSE B, A is STRIDED": Claim(OK, task(Op.XOR, BITS_16, a=STRIDED), {"B_STRIDE": 1}),
    "REPEAT of B": Claim(MISALIGNED, task(Op.XOR, BITS_16, b=REPEAT), {"B_STRIDE": 1}),
    "no B": Claim(
        OK,
        task(Op.NOT, BITS_16, a=STRIDED, y=STRIDED),
        {"B_STRIDE": 1, "B_JUMP_1": 1, "B_BASE": 0xFFFF_FFFF, "B_LAST": 0xFFFF_FFFF},
    ),
}

IGNORED = {
    **{
        f"SATURATE and ARITHMETIC of {op.name}": Claim(
            OK, task(op, BITS_32), {"SATURATE": 1, "ARITHMETIC": 1}
        )
        for op in (Op.XOR, Op.NOT, Op.COPY, Op.COUNT, Op.COUNT_AND)
    },
    "ARITHMETIC of SHIFT_LEFT": Claim(OK, task(Op.SHIFT_LEFT, BITS_32), {"ARITHMETIC": 1}),
    **{
        f"{name} below BASE": Claim(OK, task(Op.XOR), {name: 0})
        for name in ("A_LAST", "B_LAST", "Y_LAST")
    },
    "A_LAST beyond what A touches": Claim(OK, task(Op.XOR), {"A_LAST": 8191}),
}

TESTS = {
    **{
        f"{name} of {lane.bits} bits, {mode.name}": Claim(
            OK, replace(task(Op.COUNT_AND, lane, BITS_32, y=mode), test=True, negate=negate)
        )
        for name, negate in (("TEST", False), ("NEGATE", True))
        for lane in Lane
        for mode in (DENSE, STRIDED, SUM)
    },
    "to 8 bits": Claim(OK, replace(task(Op.COUNT_XOR, BITS_64, BITS_8), test=True)),
    "TEST of logic": Claim(BAD_CONTROL, task(Op.XOR), {"TEST": 1}),
    "TEST of a shift": Claim(BAD_CONTROL, task(Op.SHIFT_LEFT, BITS_32), {"TEST": 1}),
    "NEGATE of logic": Claim(BAD_CONTROL, task(Op.XOR), {"NEGATE": 1}),
    "NEGATE without TEST": Claim(BAD_CONTROL, COUNT, {"NEGATE": 1}),
    "counts that are not built": Claim(
        Status.BAD_OP, COUNT, {"TEST": 1}, {"ops": frozenset({Op.XOR})}
    ),
    "logic, counts are not built": Claim(
        BAD_CONTROL, task(Op.XOR), {"TEST": 1}, {"ops": frozenset({Op.XOR})}
    ),
}

CLAIMS = {"lanes": LANES, "alignment": ALIGNMENT, "ignored": IGNORED, "tests": TESTS}


def claims() -> Iterator[Any]:
    for topic, rows in CLAIMS.items():
        for name, claim in rows.items():
            # Few rows pay for the compilation of a circuit that lacks operations.
            marks = [pytest.mark.slow] if "ops" in claim.circuit else []
            yield pytest.param(claim, id=f"{topic}: {name}", marks=marks)
            if claim.circuit is SMALL:
                bytes_alone = replace(claim, circuit={"lanes": SMALL["lanes"]})
                where = f"{topic}: {name}, lacks lanes alone"
                yield pytest.param(bytes_alone, id=where, marks=pytest.mark.slow)


@pytest.mark.parametrize("claim", list(claims()))
def test_what_the_page_says_of_records(claim: Claim) -> None:
    bench = EngineBench(configuration(**claim.circuit))
    wanted = claim.task
    expected = bench.memory.data.copy()
    if claim.status is OK:
        apply(wanted, expected)
    given = replace(wanted, overrides=claim.overrides)
    executed = ending(0, 1), (claim.status, Port.NONE, 0, 0)
    assert bench.execute([given]) == executed[claim.status is not OK]
    assert np.array_equal(bench.memory.data, expected)
    assert claim.status is OK or not any(server.requests for server in bench.servers)


# --- words in use -----------------------------------------------------------------------------

LENGTHS = (6, 8, 12, 16, 20, 24, 28, 32)

IN_USE: list[tuple[int, dict[str, int]]] = [
    (6, {"OP": Op.NOT, "LOOPS": 1}),
    (6, {"OP": Op.NOT, "LOOPS": 1, "A_MODE": REPEAT}),
    (8, {"OP": Op.XOR, "LOOPS": 1, "A_MODE": REPEAT, "B_MODE": REPEAT}),
    (6, {"OP": Op.COUNT, "LOOPS": 1, "OUT_LANE": 2, "Y_MODE": SUM}),
    (8, {"OP": Op.COUNT_OR, "LOOPS": 1, "OUT_LANE": 2, "Y_MODE": SUM}),
    (6, {"OP": Op.NOT, "LOOPS": 1, "A_MODE": SUM}),
    (12, {"OP": Op.NOT, "LOOPS": 1, "A_MODE": STRIDED}),
    (12, {"OP": Op.XOR, "LOOPS": 1, "Y_MODE": STRIDED}),
    (12, {"OP": Op.NOT, "LOOPS": 1, "B_MODE": STRIDED}),
    (20, {"OP": Op.NOT, "LOOPS": 3, "B_MODE": STRIDED}),
    (6, {"OP": 10, "LOOPS": 1}),
    (12, {"OP": 10, "LOOPS": 1, "Y_MODE": STRIDED}),
    (16, {"OP": 10, "LOOPS": 2}),
    (8, {"OP": Op.SEARCH, "LOOPS": 1, "OUT_LANE": 2}),
    (8, {"OP": Op.SHIFT_LEFT, "LOOPS": 1}),
    (24, {"OP": Op.NOT, "LOOPS": 4}),
    (28, {"OP": Op.NOT, "LOOPS": 5}),
    (32, {"OP": Op.XOR, "LOOPS": 6}),
    (6, {"OP": Op.NOT, "LOOPS": 0}),
    (8, {"OP": Op.XOR, "LOOPS": 0}),
    (12, {"OP": Op.XOR, "LOOPS": 0, "A_MODE": STRIDED}),
    (6, {"OP": Op.NOT, "LOOPS": 7}),
    (8, {"OP": Op.XOR, "LOOPS": 7}),
    (12, {"OP": Op.NOT, "LOOPS": 7, "Y_MODE": STRIDED}),
]
"""Number of words in use, and the fields of CONTROL that determine it."""


@pytest.mark.parametrize(
    ("width", "options"),
    [(64, SMALL), *(slow(width, {"ops": SMALL["ops"]}) for width in (32, 64, 128))],
)
def test_how_many_words_of_a_record_are_in_use(width: int, options: dict[str, Any]) -> None:
    """Only a seal over exactly these words is right. The circuit lacks SEARCH and SHIFT_LEFT, and
    has four loops; all addresses are outside the memory, so that nothing can be executed."""
    bench = EngineBench(configuration(data_width=width, **options))
    words = [0xFFFF_0000] * RECORD_WORDS
    for bit, length in enumerate(LENGTHS):
        words[length - 1] |= 1 << bit

    async def host(ctx: Any) -> None:
        for expected, fields in IN_USE:
            modes = tuple(fields.get(f"{stream}_MODE", 0) for stream in "ABY")
            assert record_words(fields["OP"], fields["LOOPS"], modes) == expected
            words[0] = sum(bits.insert(fields.get(bits.name, 0)) for bits in RECORD["CONTROL"].bits)
            for length in LENGTHS:
                await bench.load(ctx, reseal(words, length))
                await bench.ring(ctx)
                await bench.settle(ctx)
                code = Status(await bench.register(ctx, "FAULT", "CODE"))
                right = length == expected
                assert (code is not Status.BAD_SEAL) == right, f"{fields}, sealed {length}: {code}"
                assert code is not OK
                await bench.clear(ctx)
                await ctx.tick().repeat(4)

    bench.run(host, deadline=60_000)
    assert not any(server.requests for server in bench.servers)


# --- TIMEOUT and FAULT_ADDRESS ----------------------------------------------------------------

BOUND = 30


def ends(
    bench: EngineBench, given: Task, hanging: str = "", after: int = 0
) -> tuple[Status, Port, int]:
    """Return the fault's status and port, and FAULT_ADDRESS, of a command with TIMEOUT `BOUND`.

    ``hanging`` names servers, with spaces between, that hang from ``after`` cycles on.
    """
    found: list[int] = []

    async def host(ctx: Any) -> None:
        await bench.set(ctx, "TIMEOUT", BOUND)
        await bench.load(ctx, pack(given))
        await ctx.tick().repeat(20)
        await bench.ring(ctx)
        await ctx.tick().repeat(1 + after)
        for server in hanging.split():
            getattr(bench, server).hang = True
        await ctx.tick().repeat(300)
        found.extend(await bench.registers(ctx, "FAULT", "FAULT_ADDRESS"))

    bench.run(host)
    end = ending(found[0], 0)
    return end.status, end.port, found[1]


def silence(bench: EngineBench) -> int:
    """Return the longest time between two handshakes on any ports, in cycles."""
    cycles = {cycle for server in bench.servers for cycle, _, _ in server.requests}
    cycles |= {cycle for server in bench.servers for cycle in server.beats}
    return int(np.diff(sorted(cycles | set(bench.writes.responses))).max())


@pytest.mark.parametrize("width", [slow(32), 64])
@pytest.mark.parametrize(
    ("port", "given", "most"),
    [
        pytest.param(Port.READ_A, logic(Op.NOT, 0, None, 4096, 64), BOUND + 1, id="read data"),
        pytest.param(Port.WRITE, task(Op.NOT), BOUND + 2, id="a response before the last"),
        pytest.param(Port.WRITE, logic(Op.NOT, 0, None, 4096, 64), BOUND + 2, id="the last one"),
    ],
)
def test_how_late_an_answer_may_be(width: int, port: Port, given: Task, most: int) -> None:
    seen = {}
    for latency in range(BOUND - 3, BOUND + 8):
        bench = EngineBench(configuration(data_width=width))
        server = bench.read_a if port is Port.READ_A else bench.writes
        server.latency = latency
        *end, _ = ends(bench, given)
        seen[silence(bench)] = tuple(end)
    expected = {late: (OK, Port(0)) if late <= most else (Status.TIMEOUT, port) for late in seen}
    assert seen == expected
    assert {most, most + 1} <= set(seen)


@pytest.mark.parametrize(
    "hanging", [slow("read_a"), "read_b", "writes", "read_a writes", slow("writes read_b")]
)
def test_a_timeout_names_the_oldest_burst_that_is_not_answered(hanging: str) -> None:
    """A takes precedence over B and B over Y, whether a burst was accepted or only requested."""
    for number in seeds(6, 17):
        after = 15 * number % 51
        bench = EngineBench(configuration(), latency=9)
        end = ends(bench, logic(Op.XOR, 0, 2048, 4096, 1024), hanging, after)
        name = min(hanging.split())
        port, first, answered = {
            "read_a": (Port.READ_A, 0, len(bench.read_a.beats) // 16),
            "read_b": (Port.READ_B, 2048, len(bench.read_b.beats) // 16),
            "writes": (Port.WRITE, 4096, len(bench.writes.responses)),
        }[name]
        assert end == (Status.TIMEOUT, port, first + 128 * answered), after


@pytest.mark.parametrize("bad", [4096, 4096 + 8 * 15, 4096 + 8 * 37])
def test_an_error_names_its_burst_by_its_first_beat(bad: int) -> None:
    for given in (logic(Op.NOT, 0, None, 4096 + 3, 400), logic(Op.NOT, 4096 + 3, None, 0, 400)):
        bench = EngineBench(configuration())
        bench.memory.bad = lambda address: address == bad
        bench.execute([given])
        assert bench.fault_address == bad - bad % 128


def test_a_walk_that_leaves_names_the_burst_that_would_have() -> None:
    bench = EngineBench(configuration())
    end = bench.execute([logic(Op.NOT, SIZE - 256, None, 0, 400, overrides={"A_LAST": 0})])
    assert end == (Status.PAST_MEMORY, Port.READ_A, 0, 0)
    assert bench.fault_address == SIZE
