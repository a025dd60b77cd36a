"""Records that the circuit must refuse: the right code, nothing written, and work goes on."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bitlane_rtl.abi import (
    LOGIC_OPS,
    MAX_LOOPS,
    RECORD,
    RECORD_SEAL,
    Bits,
    Lane,
    Mode,
    Op,
    Status,
    record_words,
)

from .. import reference
from ..commands import Command, Walk, encode
from ..control import status_name
from ..ring import DeviceFault, Words
from .session import CheckFailed, Session, plural

__all__ = ["check_recovery"]

_COUNT: Final = 5
"""Elements of a job."""
_SLOT: Final = 64
"""Bytes from one tensor of a job to the next."""

_DENSE: Final = (Mode.DENSE, Mode.DENSE, Mode.DENSE)

_CONTROL: Final[dict[str, Bits]] = {bits.name: bits for bits in RECORD["CONTROL"].bits}


def check_recovery(session: Session) -> str:
    """Every bad record between two good ones: the first takes effect, the last does not."""
    runtime = session.runtime
    buffer = runtime.allocate(8 * _SLOT)
    try:
        cases = list(_cases(session, buffer.address))
        for number, (status, name, words) in enumerate(cases):
            _provoke(session, buffer.address, status, name, words)
            session.progress((number + 1) / len(cases))
    finally:
        runtime.free(buffer)
    codes = list(dict.fromkeys(status.name for status, _, _ in cases))
    return f"{plural(len(cases), 'bad record')} refused: {', '.join(codes)}; the next job right"


def _provoke(session: Session, address: int, status: Status, name: str, words: Words) -> None:
    runtime = session.runtime
    before = session.random.integers(0, 256, 8 * _SLOT, np.uint8)
    runtime.write(address, before)
    first, second = _good(session, address, 3), _good(session, address, 5)
    try:
        runtime.run([first, words, second])
    except DeviceFault as fault:
        if (fault.code, fault.index) != (status, 1):
            raise CheckFailed(
                f"{name}: command {fault.index} of 0 to 2 was refused with"
                f" {status_name(fault.code)}; expected command 1 and {status.name}"
            ) from fault
    else:
        raise CheckFailed(f"{name}: the record was executed; expected {status.name}")
    want = before.copy()
    _expect(session, first, address, want)
    _compare(session, address, want, f"{name}: after the refusal")
    runtime.run([second])
    _expect(session, second, address, want)
    _compare(session, address, want, f"{name}: after the job that followed")


def _good(session: Session, address: int, slot: int) -> Command:
    """A job that every circuit can do: its first operation, dense, from slots 0 and 1."""
    has = session.geometry
    op = min(has.ops, key=lambda op: (op.splits_lanes, op))
    lane = min(has.lanes) if op.splits_lanes else Lane.BITS_8
    out = Lane.BITS_8 if op is Op.COUNT else lane

    def walk(number: int, width: Lane) -> Walk:
        base = address + number * _SLOT
        return Walk(base, base + _COUNT * width.bytes - 1)

    b = walk(1, lane) if op.reads_b else None
    return Command(op, lane, out, _COUNT, walk(0, lane), b, walk(slot, out), fence=True)


def _expect(session: Session, command: Command, address: int, want: NDArray[np.uint8]) -> None:
    """Do in ``want`` what a job of ``_good`` does."""

    def elements(walk: Walk, width: Lane) -> NDArray[np.unsignedinteger]:
        start = walk.base - address
        return want[start : start + _COUNT * width.bytes].view(f"<u{width.bytes}")

    target = elements(command.y, command.out_lane)
    target[...] = reference.compute(
        command.op,
        elements(command.a, command.lane),
        None if command.b is None else elements(command.b, command.lane),
        count_dtype=target.dtype,
    )


def _compare(session: Session, address: int, want: NDArray[np.uint8], when: str) -> None:
    got = session.runtime.read(address, want.size)
    different = np.flatnonzero(got != want)
    if different.size:
        first = int(different[0])
        raise CheckFailed(
            f"{when}, {plural(different.size, 'byte')} wrong, first at {address + first:#x}:"
            f" {got[first]:#04x}, expected {want[first]:#04x}"
        )


def _cases(session: Session, address: int) -> Iterator[tuple[Status, str, Words]]:
    """What can be provoked on this circuit, by code."""
    has = session.geometry
    good = _good(session, address, 4)
    words = encode(good)

    def with_word(name: str, value: int) -> Words:
        changed = words.copy()
        changed[RECORD[name].word] = value % (1 << 32)
        return _sealed(changed)

    def with_field(name: str, value: int, record: Words = words) -> Words:
        bits, changed = _CONTROL[name], record.copy()
        rest = int(changed[0]) & ~bits.insert((1 << bits.width) - 1)
        changed[0] = rest | bits.insert(value)
        return _sealed(changed)

    without_b = np.zeros(record_words(Op.XOR, 1, _DENSE), "<u4")
    without_b[: record_words(Op.NOT, 1, _DENSE)] = words[: record_words(Op.NOT, 1, _DENSE)]
    spoilt = words.copy()
    spoilt[RECORD["A_BASE"].word] ^= 1
    yield Status.BAD_SEAL, "a record with a wrong seal", spoilt
    spoilt = words.copy()
    spoilt[0] ^= 1 << 31
    yield Status.BAD_SEAL, "a seal with a wrong bit", spoilt
    for code in range(1 << _CONTROL["OP"].width):
        if code not in Op.__members__.values():
            # Sealed whether the circuit reads an operand B of it or not.
            record = with_field("OP", code, without_b)
            yield Status.BAD_OP, f"operation {code}, which does not exist", record
    for op in sorted(set(Op) - has.ops):
        text = f"operation {op.name}, which this circuit lacks"
        yield Status.BAD_OP, text, _sealed(encode(replace(good, op=op, b=_any_b(op, good))))
    wrong = Lane.BITS_16 if good.out_lane is not Lane.BITS_16 else Lane.BITS_64
    yield Status.BAD_LANE, "an output of another lane", with_field("OUT_LANE", wrong)
    if good.op.splits_lanes:
        for lane in sorted(set(Lane) - has.lanes):
            changed = replace(good, lane=lane, out_lane=lane, run=1)
            if good.op is not Op.COUNT:
                yield Status.BAD_LANE, f"{lane.bits}-bit lanes", _sealed(encode(changed))
    yield Status.BAD_CONTROL, "a reserved bit", _sealed(_with_bits(words, 1 << 23))
    yield Status.BAD_CONTROL, "no loop", with_field("LOOPS", 0)
    if has.loops < MAX_LOOPS:
        deep = _looped(good, (1,) * has.loops)
        yield Status.BAD_CONTROL, f"{deep.loops} loops", _sealed(encode(deep))
    fits = [lane for lane in sorted(has.lanes) if lane.bytes <= has.data_bytes]
    if fits and good.op is not Op.COUNT:
        wide = encode(replace(good, lane=fits[0], out_lane=fits[0], run=1))
        text = "a repeated output"
        yield Status.BAD_CONTROL, text, with_field("Y_MODE", Mode.REPEAT, wide)
    yield Status.BAD_SIZE, "a run of no element", with_word("RUN", 0)
    if has.loops > 1:
        yield Status.BAD_SIZE, "a loop of no iteration", encode(_looped(good, (0,)))
    yield from _misaligned(session, good)
    past = has.memory_last + 1
    if past < 1 << 32:
        yield Status.PAST_MEMORY, "A past the memory", with_word("A_LAST", past)
        yield Status.PAST_MEMORY, "Y past the memory", with_word("Y_LAST", past)
    if has.memory_base:
        yield Status.PAST_MEMORY, "Y before the memory", with_word("Y_BASE", has.memory_base - 1)


def _misaligned(session: Session, good: Command) -> Iterator[tuple[Status, str, Words]]:
    has = session.geometry
    wide = [lane for lane in sorted(has.lanes) if lane.bytes > 1]
    for op in sorted(has.ops):
        if op in LOGIC_OPS or op is Op.COUNT or not wide:
            continue
        lane = wide[0]
        walk = Walk(good.y.base + 1, good.y.base + 1 + 2 * lane.bytes - 1)
        changed = replace(good, op=op, lane=lane, out_lane=lane, run=2, y=walk, b=good.b or good.a)
        yield Status.MISALIGNED, f"{op.name} to an odd address", _sealed(encode(changed))
        return
    fits = [lane for lane in wide if lane.bytes <= has.data_bytes]
    if Mode.STRIDED in has.modes and fits:
        lane = fits[0]
        walk = replace(good.a, mode=Mode.STRIDED, stride=lane.bytes + 1)
        changed = replace(good, lane=lane, out_lane=lane, run=2, a=walk)
        if good.op in LOGIC_OPS:
            yield Status.MISALIGNED, "an odd stride", _sealed(encode(changed))


def _looped(good: Command, counts: tuple[int, ...]) -> Command:
    """The same with loops outside that stay where they are."""
    jumps = (0,) * len(counts)
    return replace(
        good,
        counts=counts,
        a=replace(good.a, jumps=jumps),
        b=None if good.b is None else replace(good.b, jumps=jumps),
        y=replace(good.y, jumps=jumps),
    )


def _any_b(op: Op, good: Command) -> Walk | None:
    return (good.b or good.a) if op.reads_b else None


def _with_bits(words: Words, bits: int) -> Words:
    changed = words.copy()
    changed[0] |= bits
    return changed


def _sealed(words: Words) -> Words:
    """The same words with the seal that belongs to them."""
    sealed = words.copy()
    seal = _CONTROL["SEAL"]
    sealed[0] = int(sealed[0]) & ~seal.insert((1 << seal.width) - 1)
    total = int(np.bitwise_xor.reduce(sealed.view(np.uint8)))
    sealed[0] = int(sealed[0]) | seal.insert(total ^ RECORD_SEAL)
    return sealed
