"""The registers after each command: one at a time, with one wrong bit or none.

Submits without the driver's queue, which would hide how a command ended.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from bitlane_rtl.abi import (
    COMPLETION,
    COMPLETION_OFFSET,
    CONTROL_BASE,
    LOGIC_OPS,
    MAX_LOOPS,
    RECORD,
    RECORD_BYTES,
    RING_OFFSET,
    Lane,
    Mode,
    Port,
    Status,
    register,
)

from ..driver import Command, Words, encode, status_name
from ..errors import CheckFailed
from .refusals import CONTROL, SLOT, looped, plain_command, sealed, with_bits, with_field, with_word
from .session import Session, plural

_WORD_BITS: Final = 32
_STATE: Final = ("STATUS", "DOORBELL", "RETIRED", "FAULT", "FAULT_ADDRESS")
"""Adjacent registers."""

_STATUS: Final = register("STATUS")
_RETIRED: Final = _STATUS["DRAINED"].insert(1)
_STOPPED: Final = _RETIRED | _STATUS["BUSY"].insert(1) | _STATUS["FAULT"].insert(1)
"""STATUS at the end of a command that was executed, and of one that was not."""

_LEAST_ADDRESS_BITS: Final = 16
"""Address bits of every circuit. With more bits than it has, an address may wrap into memory."""

_WALKS: Final = 16
"""Walks out of the memory, of each stream."""

_POLLS: Final = 100
"""Most reads of the registers until a command of a few bytes has ended."""


@dataclass(frozen=True, slots=True)
class _Case:
    """A record, and how it ends. ``pending``: whether with an interrupt."""

    name: str
    words: Words
    status: Status
    port: Port = Port.NONE
    address: int = 0
    pending: bool = True


def check_registers(session: Session) -> str:
    """Compare STATUS, RETIRED, FAULT, the other registers and the completions bit by bit.

    CLEAR follows each command. Good commands go before some, so that each slot is used.
    """
    driver, slots = session.driver, session.geometry.slots
    buffer = driver.allocate(8 * SLOT)
    try:
        driver.clear()
        plain = encode(plain_command(session, buffer.address, 4))
        driver.exchange([(_slot(slot), plain) for slot in range(slots)], ())
        cases = list(_cases(session, buffer.address))
        for number, case in enumerate(cases):
            index = number % slots if number < 2 * slots else 0
            _submit(session, case.words, index)
            _compare(session, case, index)
            driver.clear()
            driver.exchange([(_slot(index), plain)], ())
            session.progress((number + 1) / len(cases))
    finally:
        driver.free(buffer)
    return f"{plural(len(cases), 'command')}, refused by every bit that may be wrong, or executed"


def _slot(number: int) -> int:
    return CONTROL_BASE + RING_OFFSET + RECORD_BYTES * number


def _submit(session: Session, words: Words, index: int) -> None:
    """Submit the commands up to ``index``, the last of which is ``words``."""
    doorbell = CONTROL_BASE + register("DOORBELL").offset
    count = np.array([index + 1], "<u4")
    session.driver.exchange([(_slot(index), words), (doorbell, count)], ())


def _compare(session: Session, case: _Case, index: int) -> None:
    """Look at everything that tells how the command has ended."""
    refused = case.status is not Status.OK
    fields = {"CODE": case.status, "PORT": case.port, "INDEX": index} if refused else {}
    code, number = COMPLETION
    want = {
        "STATUS": _STOPPED if refused else _RETIRED,
        "DOORBELL": index + 1,
        "RETIRED": index + (not refused),
        "FAULT": sum(register("FAULT")[name].insert(value) for name, value in fields.items()),
        "FAULT_ADDRESS": case.address,
        "the completion": code.insert(case.status) | number.insert(index),
        "INTERRUPT": register("INTERRUPT")["ENABLE"].insert(1)
        | register("INTERRUPT")["PENDING"].insert(case.pending),
    }
    got = _end(session, index)
    for name, value in want.items():
        if got[name] != value:
            text = f"{name} is {got[name]:#x}; expected {value:#x}"
            raise CheckFailed(f"{case.name}, command {index}, {status_name(case.status)}: {text}")


def _end(session: Session, index: int) -> dict[str, int]:
    """Return the registers when the command ``index`` has ended, or should have."""
    got = _state(session, index)
    for _ in range(_POLLS):
        if got["STATUS"] in (_RETIRED, _STOPPED):
            break
        got = _state(session, index)
    return got


def _state(session: Session, index: int) -> dict[str, int]:
    completion = CONTROL_BASE + COMPLETION_OFFSET + 4 * index
    interrupt = CONTROL_BASE + register("INTERRUPT").offset
    first = CONTROL_BASE + register(_STATE[0]).offset
    reads = [(first, 4 * len(_STATE)), (completion, 4), (interrupt, 4)]
    data = np.concatenate(session.driver.exchange((), reads)).view("<u4").tolist()
    return dict(zip((*_STATE, "the completion", "INTERRUPT"), data, strict=True))


def _cases(session: Session, address: int) -> Iterator[_Case]:
    job = plain_command(session, address, 4)
    has, words = session.geometry, encode(job)
    for _ in range(has.slots):
        yield _Case("one with INTERRUPT", encode(job, interrupt=True), Status.OK)
    yield _Case("a good record", words, Status.OK, pending=False)
    for bit in range(CONTROL["SEAL"].width):
        wrong = words.copy()
        wrong[0] ^= CONTROL["SEAL"].insert(1 << bit)
        yield _Case(f"bit {bit} of the seal", wrong, Status.BAD_SEAL)
    used = sum(bits.insert((1 << bits.width) - 1) for bits in CONTROL.values())
    for bit in (bit for bit in range(_WORD_BITS) if not used >> bit & 1):
        yield _case(words, "CONTROL", bit, Status.BAD_CONTROL)
    for loops in range(has.loops + 1, MAX_LOOPS + 1):
        deep = sealed(encode(looped(job, (1,) * (loops - 1))))
        yield _Case(f"{loops} loops", deep, Status.BAD_CONTROL)
    for bit in range(has.length_bits, _WORD_BITS):
        yield _case(words, "RUN", bit, Status.BAD_SIZE)
    if job.op in LOGIC_OPS:
        for lane in Lane:
            wide = encode(replace(job, lane=lane, out_lane=lane))
            run = 1 << has.length_bits - lane
            yield _Case(f"{run} elements", with_word(wide, "RUN", run), Status.BAD_SIZE)
    if has.loops > 1:
        nested = encode(looped(job, (1,) * (has.loops - 1)))
        for bit in range(_WORD_BITS):
            yield _case(nested, "RESERVED", bit, Status.BAD_CONTROL)
            for loop in range(1, has.loops) if bit >= has.count_bits else ():
                yield _case(nested, f"COUNT_{loop}", bit, Status.BAD_SIZE)
    yield from _past_memory(session, job)
    yield from _misaligned(session, job)


def _case(words: Words, name: str, bit: int, status: Status) -> _Case:
    return _Case(f"bit {bit} of {name}", with_bits(words, name, 1 << bit), status)


def _past_memory(session: Session, job: Command) -> Iterator[_Case]:
    """Yield addresses that are wrong in one bit, and walks that leave the memory."""
    has, words = session.geometry, encode(job)
    streams = {"A": Port.READ_A, "B": Port.READ_B, "Y": Port.WRITE}
    if job.b is None:
        del streams["B"]
    for stream, port in streams.items():
        for name in (f"{stream}_BASE", f"{stream}_LAST"):
            for bit in range(_WORD_BITS):
                value = int(words[RECORD[name].word]) ^ 1 << bit
                if not has.memory_base <= value <= has.memory_last:
                    yield _case(words, name, bit, Status.PAST_MEMORY)
        if has.loops > 1 and has.count_bits > 1:
            nested = encode(looped(job, (2,)))
            for target in _outside(session):
                jump = target - int(words[RECORD[f"{stream}_BASE"].word])
                away = with_word(nested, f"{stream}_JUMP_1", jump)
                text = f"{stream} goes on at {target:#x}"
                yield _Case(text, away, Status.PAST_MEMORY, port, target)


def _outside(session: Session) -> list[int]:
    """Return some addresses of beats after the memory that the circuit has address bits for."""
    beat, end = session.geometry.data_bytes, session.geometry.memory_last + 1
    limit = 1 << _LEAST_ADDRESS_BITS
    if end >= limit:
        return []
    return [int(x) * beat for x in session.random.integers(-(-end // beat), limit // beat, _WALKS)]


def _misaligned(session: Session, job: Command) -> Iterator[_Case]:
    """Yield a case for every bit of an address, stride or jump that must be 0 for alignment."""
    has = session.geometry
    fits = [lane for lane in sorted(has.lanes) if lane.bytes <= has.data_bytes]
    if job.op not in LOGIC_OPS or Mode.STRIDED not in has.modes or not fits:
        return
    lane, loops = fits[-1], has.loops - 1
    nested = looped(replace(job, lane=lane, out_lane=lane, run=1), (1,) * loops)
    # All records with a STRIDED run are of one length.
    strided = replace(nested.a, mode=Mode.STRIDED)
    for stream in "ABY"[:: 1 if job.b else 2]:
        words = with_field(encode(replace(nested, a=strided)), "A_MODE", Mode.DENSE)
        words = with_field(words, f"{stream}_MODE", Mode.STRIDED)
        jumps = [f"{stream}_JUMP_{loop}" for loop in range(1, has.loops)]
        for name in (f"{stream}_BASE", f"{stream}_STRIDE", *jumps):
            for bit in range(lane):
                yield _case(words, name, bit, Status.MISALIGNED)
