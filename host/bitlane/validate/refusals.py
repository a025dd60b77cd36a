"""Records that the circuit must refuse: the code is right, nothing is written, and it recovers."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bitlane_rtl.abi import (
    BIT_OPS,
    LOGIC_OPS,
    MAX_LOOPS,
    RECORD,
    SHIFT_OPS,
    Bits,
    Lane,
    Mode,
    Op,
    Status,
    record_words,
    seal,
)

from .. import reference
from ..driver import Command, Walk, Words, encode, status_name
from ..errors import CheckFailed, DeviceFault
from .session import Session, expect_equal, plural

ELEMENTS: Final = 5
"""Elements of every test command."""

SLOT: Final = 64
"""Bytes from one tensor of a test command to the next."""

CONTROL: Final[dict[str, Bits]] = {bits.name: bits for bits in RECORD["CONTROL"].bits}


def plain_command(session: Session, address: int, slot: int) -> Command:
    """Return a command for any circuit: its first operation, dense, slots 0 and 1 to ``slot``."""
    has = session.geometry
    op = min(BIT_OPS & has.ops, key=lambda op: (op.splits_lanes, op))
    lane = min(has.lanes) if op.splits_lanes else Lane.BITS_8
    out = Lane.BITS_8 if op.counts else lane

    def walk(number: int, width: Lane) -> Walk:
        base = address + number * SLOT
        return Walk(base, base + ELEMENTS * width.bytes - 1)

    b = walk(1, lane) if op.reads_b else None
    return Command(op, lane, out, ELEMENTS, walk(0, lane), b, walk(slot, out), fence=True)


def looped(command: Command, counts: tuple[int, ...]) -> Command:
    """Return ``command`` in outer loops of ``counts`` iterations, whose steps are 0."""
    jumps = (0,) * len(counts)
    return replace(
        command,
        counts=counts,
        a=replace(command.a, jumps=jumps),
        b=None if command.b is None else replace(command.b, jumps=jumps),
        y=replace(command.y, jumps=jumps),
    )


def with_word(words: Words, name: str, value: int) -> Words:
    """Return ``words`` with ``value`` in the word ``name``, sealed."""
    changed = words.copy()
    changed[RECORD[name].word] = value % (1 << 32)
    return sealed(changed)


def with_bits(words: Words, name: str, bits: int) -> Words:
    """Return ``words`` with ``bits`` of the word ``name`` inverted, sealed."""
    return with_word(words, name, int(words[RECORD[name].word]) ^ bits)


def with_field(words: Words, name: str, value: int) -> Words:
    """Return ``words`` with ``value`` in the field ``name`` of CONTROL, sealed."""
    bits = CONTROL[name]
    rest = int(words[0]) & ~bits.insert((1 << bits.width) - 1)
    return with_word(words, "CONTROL", rest | bits.insert(value))


def sealed(words: Words) -> Words:
    """Return a copy of ``words`` with the right seal."""
    changed = words.copy()
    changed[0] = seal(words.tolist())
    return changed


_DENSE: Final = (Mode.DENSE, Mode.DENSE, Mode.DENSE)


def check_recovery(session: Session) -> str:
    """Run every bad record between two good ones: the first takes effect, the last does not."""
    driver = session.driver
    buffer = driver.allocate(8 * SLOT)
    try:
        cases = list(_cases(session, buffer.address))
        for number, (status, name, words) in enumerate(cases):
            _provoke(session, buffer.address, status, name, words)
            session.progress((number + 1) / len(cases))
    finally:
        driver.free(buffer)
    codes = list(dict.fromkeys(status.name for status, _, _ in cases))
    return f"{plural(len(cases), 'bad record')} refused: {', '.join(codes)}; the next job right"


def _provoke(session: Session, address: int, status: Status, name: str, words: Words) -> None:
    driver = session.driver
    before = session.random.integers(0, 256, 8 * SLOT, np.uint8)
    driver.write(address, before)
    first, second = plain_command(session, address, 3), plain_command(session, address, 5)
    try:
        driver.run([first, words, second])
    except DeviceFault as fault:
        if (fault.code, fault.index) != (status, 1):
            raise CheckFailed(
                f"{name}: command {fault.index} of 0 to 2 was refused with"
                f" {status_name(fault.code)}; expected command 1 and {status.name}"
            ) from fault
    else:
        raise CheckFailed(f"{name}: the record was executed; expected {status.name}")
    want = before.copy()
    _expect(first, address, want)
    _compare(session, address, want, f"after the refusal of {name}")
    driver.run([second])
    _expect(second, address, want)
    _compare(session, address, want, f"after the job that followed {name}")


def _expect(command: Command, address: int, want: NDArray[np.uint8]) -> None:
    """Execute ``command`` in ``want``, a copy of the memory from ``address`` on."""

    def elements(walk: Walk, width: Lane) -> NDArray[np.unsignedinteger]:
        start = walk.base - address
        return want[start : start + ELEMENTS * width.bytes].view(f"<u{width.bytes}")

    target = elements(command.y, command.out_lane)
    target[...] = reference.compute(
        command.op,
        elements(command.a, command.lane),
        None if command.b is None else elements(command.b, command.lane),
        count_dtype=target.dtype,
    )


def _compare(session: Session, address: int, want: NDArray[np.uint8], when: str) -> None:
    expect_equal(session.driver.read(address, want.size), want, address, when)


def _cases(session: Session, address: int) -> Iterator[tuple[Status, str, Words]]:
    """Yield the bad records that this circuit can refuse, in the order of their codes."""
    has = session.geometry
    good = plain_command(session, address, 4)
    words = encode(good)

    without_b = np.zeros(record_words(Op.XOR, 1, _DENSE), "<u4")
    without_b[: record_words(Op.NOT, 1, _DENSE)] = words[: record_words(Op.NOT, 1, _DENSE)]
    spoilt = words.copy()
    spoilt[RECORD["A_BASE"].word] ^= 1
    yield Status.BAD_SEAL, "a record with a wrong seal", spoilt
    spoilt = words.copy()
    spoilt[0] ^= 1 << 31
    yield Status.BAD_SEAL, "a seal with a wrong bit", spoilt
    for code in range(1 << CONTROL["OP"].width):
        if code not in Op.__members__.values():
            # Sealed whether the circuit reads an operand B of it or not.
            record = with_field(without_b, "OP", code)
            yield Status.BAD_OP, f"operation {code}, which does not exist", record
    for op in sorted(set(Op) - has.ops):
        text = f"operation {op.name}, which this circuit lacks"
        yield Status.BAD_OP, text, sealed(encode(replace(good, op=op, b=_any_b(op, good))))
    wrong = Lane.BITS_16 if good.out_lane is not Lane.BITS_16 else Lane.BITS_64
    yield Status.BAD_LANE, "an output of another lane", with_field(words, "OUT_LANE", wrong)
    if good.op.splits_lanes:
        for lane in sorted(set(Lane) - has.lanes):
            changed = replace(good, lane=lane, out_lane=lane, run=1)
            if not good.op.counts:
                yield Status.BAD_LANE, f"{lane.bits}-bit lanes", sealed(encode(changed))
    yield Status.BAD_CONTROL, "a reserved bit", with_bits(words, "CONTROL", 1 << 23)
    yield Status.BAD_CONTROL, "no loop", with_field(words, "LOOPS", 0)
    if has.loops < MAX_LOOPS:
        deep = looped(good, (1,) * has.loops)
        yield Status.BAD_CONTROL, f"{deep.loops} loops", sealed(encode(deep))
    fits = [lane for lane in sorted(has.lanes) if lane.bytes <= has.data_bytes]
    if fits and not good.op.counts:
        wide = encode(replace(good, lane=fits[0], out_lane=fits[0], run=1))
        text = "a repeated output"
        yield Status.BAD_CONTROL, text, with_field(wide, "Y_MODE", Mode.REPEAT)
    yield Status.BAD_SIZE, "a run of no element", with_word(words, "RUN", 0)
    if has.loops > 1:
        yield Status.BAD_SIZE, "a loop of no iteration", encode(looped(good, (0,)))
    yield from _misaligned(session, good)
    past = has.memory_last + 1
    if past < 1 << 32:
        yield Status.PAST_MEMORY, "A past the memory", with_word(words, "A_LAST", past)
        yield Status.PAST_MEMORY, "Y past the memory", with_word(words, "Y_LAST", past)
    if has.memory_base:
        before = with_word(words, "Y_BASE", has.memory_base - 1)
        yield Status.PAST_MEMORY, "Y before the memory", before


def _misaligned(session: Session, good: Command) -> Iterator[tuple[Status, str, Words]]:
    has = session.geometry
    wide = [lane for lane in sorted(has.lanes) if lane.bytes > 1]
    for op in sorted(SHIFT_OPS & has.ops) if wide else ():
        lane = wide[0]
        walk = Walk(good.y.base + 1, good.y.base + 1 + 2 * lane.bytes - 1)
        changed = replace(good, op=op, lane=lane, out_lane=lane, run=2, y=walk, b=good.b or good.a)
        yield Status.MISALIGNED, f"{op.name} to an odd address", sealed(encode(changed))
        return
    fits = [lane for lane in wide if lane.bytes <= has.data_bytes]
    if Mode.STRIDED in has.modes and fits:
        lane = fits[0]
        walk = replace(good.a, mode=Mode.STRIDED, stride=lane.bytes + 1)
        changed = replace(good, lane=lane, out_lane=lane, run=2, a=walk)
        if good.op in LOGIC_OPS:
            yield Status.MISALIGNED, "an odd stride", sealed(encode(changed))


def _any_b(op: Op, good: Command) -> Walk | None:
    return (good.b or good.a) if op.reads_b else None
