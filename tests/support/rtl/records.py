"""Command records from walks, packed as `abi` says, and what they and words of lanes compute."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from bitlane_rtl.abi import RECORD, RECORD_WORDS, Lane, Mode, Op, Port, Status, record_words, seal
from bitlane_rtl.configuration import Search
from support.oracle import computed, nearest, truth
from support.rtl.walks import Walk

_MASK = (1 << 32) - 1


@dataclass
class Task:
    """A command: its operation and how each stream walks."""

    op: Op
    a: Walk
    b: Walk | None
    y: Walk
    saturate: bool = False
    arithmetic: bool = False
    test: bool = False
    negate: bool = False
    fence: bool = False
    interrupt: bool = False
    overrides: dict[str, int] = field(default_factory=dict)
    """Words and fields of CONTROL to set afterwards, before sealing."""


def reseal(words: list[int], used: int) -> list[int]:
    """Return the words with the right CONTROL.SEAL."""
    return [seal(words[:used]), *words[1:]]


def pack(task: Task) -> list[int]:
    """Return the used words of the record of ``task``."""
    streams = {"A": task.a, "B": task.b, "Y": task.y}
    modes = {name: walk.mode if walk else Mode.DENSE for name, walk in streams.items()}
    loops = len(task.a.counts)
    control = {
        "OP": task.op,
        "LANE": task.a.lane,
        "OUT_LANE": task.y.lane,
        **{f"{name}_MODE": mode for name, mode in modes.items()},
        "LOOPS": loops,
        "SATURATE": task.saturate,
        "ARITHMETIC": task.arithmetic,
        "FENCE": task.fence,
        "INTERRUPT": task.interrupt,
        "TEST": task.test,
        "NEGATE": task.negate,
    }
    words = dict.fromkeys(RECORD, 0)
    words["RUN"] = task.a.counts[0]
    for name, walk in streams.items():
        if walk is None:
            continue
        words[f"{name}_BASE"] = walk.base
        words[f"{name}_LAST"] = max(walk.bytes())
        if walk.mode is Mode.STRIDED:
            words[f"{name}_STRIDE"] = walk.steps[0] & _MASK
        for loop, jump in enumerate(walk.jumps(), 1):
            words[f"{name}_JUMP_{loop}"] = jump & _MASK
    for loop, count in enumerate(task.a.counts[1:], 1):
        words[f"COUNT_{loop}"] = count
    for name, value in task.overrides.items():
        if name in control:
            control[name] = value
        else:
            words[name] = value & _MASK
    for bits in RECORD["CONTROL"].bits:
        if bits.name in control:
            words["CONTROL"] |= bits.insert(int(control[bits.name]))
    packed = [0] * RECORD_WORDS
    for name, value in words.items():
        packed[RECORD[name].word] = value
    fields = {bits.name: bits.extract(words["CONTROL"]) for bits in RECORD["CONTROL"].bits}
    walks = (fields["A_MODE"], fields["B_MODE"], fields["Y_MODE"])
    used = record_words(fields["OP"], fields["LOOPS"], walks)
    return reseal(packed, used)[:used]


@dataclass(frozen=True)
class Failure:
    """The status and port of a command that meets a failing byte."""

    status: Status
    port: Port


def apply(
    task: Task,
    memory: npt.NDArray[np.uint8],
    bad_reads: frozenset[int] = frozenset(),
    bad_writes: frozenset[int] = frozenset(),
    *,
    search: Search | None = None,
) -> Failure | None:
    """Do to ``memory`` what the command does, element by element, with Python's integers.

    Returns why it ended before the run that meets an address of ``bad_reads`` or ``bad_writes``.
    A SEARCH, by the array ``search``, meets none.
    """
    if search and task.op is Op.SEARCH and task.b:
        rows, queries = (
            memory[list(walk.bytes())].reshape(-1, search.row_bits // 8)
            for walk in (task.a, task.b)
        )
        entries = np.array(nearest(rows, queries, search.nearest), "<u4")
        memory[list(task.y.bytes())] = entries.reshape(-1).view(np.uint8)
        return None
    before = memory.tobytes()
    lane, b = task.a.lane, task.b or task.a
    options = {
        "saturate": task.saturate,
        "arithmetic": task.arithmetic,
        "test": task.test,
        "negate": task.negate,
    }

    def load(address: int) -> int:
        return int.from_bytes(before[address : address + lane.bytes], "little")

    streams = ((Port.READ_A, task.a), (Port.READ_B, b), (Port.WRITE, task.y))
    for starts in zip(*(walk.runs() for _, walk in streams), strict=True):
        runs = [walk.elements(start) for (_, walk), start in zip(streams, starts, strict=True)]
        for (port, walk), run in zip(streams, runs, strict=True):
            bad = bad_writes if port is Port.WRITE else bad_reads
            if bad and bad & {x + byte for x in run for byte in range(walk.lane.bytes)}:
                writes = port is Port.WRITE
                return Failure(Status.WRITE_ERROR if writes else Status.READ_ERROR, port)
        pairs = zip(runs[0], runs[1], strict=True)
        results = [computed(task.op, lane.bits, load(x), load(y), **options) for x, y in pairs]
        if task.y.mode is Mode.SUM:
            results = [sum(results)]
        for result, y_at in zip(results, runs[2], strict=True):
            size = task.y.lane.bytes
            memory[y_at : y_at + size] = list(result.to_bytes(size, "little"))
    return None


def split(word: int, element: int, width: int) -> list[int]:
    """Return the elements of ``element`` bits in ``word``, lowest first."""
    return [(word >> low) & ((1 << element) - 1) for low in range(0, width, element)]


def join(elements: list[int], element: int) -> int:
    return sum(value << (element * index) for index, value in enumerate(elements))


def truths(counts: int, lane: Lane, width: int, *, negate: bool) -> int:
    """Return the test of each count in a lane of a word of ``width`` bits."""
    return join([truth(n, negate=negate) for n in split(counts, lane.bits, width)], lane.bits)


def compute(
    op: Op, a: int, b: int, lane: Lane, width: int, saturate: bool = False, arithmetic: bool = False
) -> int:
    """Return ``op`` of each lane of words of ``width`` bits, a multiple of the lane."""
    return join(
        [
            computed(op, lane.bits, x, y, saturate=saturate, arithmetic=arithmetic)
            for x, y in zip(split(a, lane.bits, width), split(b, lane.bits, width), strict=True)
        ],
        lane.bits,
    )


def random_word(generator: random.Random, width: int) -> int:
    """Return random bits, but often with lanes of zeros, ones, a single bit, or the top bit set."""
    kind = generator.randrange(4)
    if kind:
        return generator.getrandbits(width)
    special = [0x00, 0xFF, 0x01, 0x80]
    return join([generator.choice(special) for _ in range(width // 8)], 8)


def random_counts(generator: random.Random, lane: Lane, width: int) -> int:
    """Return shift counts below, at and above the lane's width, and with any single bit set."""

    def one() -> int:
        match generator.randrange(4):
            case 0:
                return 1 << generator.randrange(lane.bits)
            case 1:
                return generator.getrandbits(lane.bits)
            case 2:
                return min(lane.bits + generator.randint(-1, 1), (1 << lane.bits) - 1)
        return generator.randrange(lane.bits)

    return join([one() for _ in range(width // lane.bits)], lane.bits)


def random_edge(generator: random.Random, last: bool, **marks: int) -> dict[str, int]:
    """Return what goes with a beat: ``marks``, and others at random; no error."""
    slot, final = generator.randrange(8), generator.randrange(4)
    return {"last": last, "end": last, "error": False, "slot": slot, "final": final, **marks}


def fields_of(got: Any, want: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a payload that ``want`` has, to compare them with it."""
    return {
        name: fields_of(got[name], value) if isinstance(value, Mapping) else got[name]
        for name, value in want.items()
    }
