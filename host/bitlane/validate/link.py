"""The steps that identify the device, and measure its bandwidth."""

from collections.abc import Callable
from functools import partial
from statistics import median
from time import perf_counter
from typing import Final

import numpy as np

from bitlane_rtl.abi import ABI_VERSION, BIT_OPS, IDENTITY, REGISTERS, Access, Op
from bitlane_rtl.abi import register as find_register

from ..driver import Driver
from ..errors import CheckFailed
from ..lowering import Streams, View, lower
from .session import Session, expect_equal, plural

_TRIALS = 16
_PATTERNS = (0, 0xFFFF_FFFF, 0x5555_5555, 0xAAAA_AAAA, 0x0123_4567)


def check_link(session: Session) -> str:
    """Check identity and version, read often, and a register that is written and read."""
    driver = session.driver
    seconds, cycles = [], driver.link.cycles
    for _ in range(_TRIALS):
        start = perf_counter()
        identity = driver.read_register("IDENTITY")
        seconds.append(perf_counter() - start)
        if identity != IDENTITY:
            raise CheckFailed(f"IDENTITY is {identity:#010x}; expected {IDENTITY:#010x}")
    each = f"{1e3 * median(seconds):.3g} ms"
    if cycles is not None:
        each = f"{(_cycles(driver) - cycles) / _TRIALS:.3g} simulated cycles"
    fixed = [x.name for x in REGISTERS if x.offset < find_register("STATUS").offset]
    first, second = ([driver.read_register(name) for name in fixed] for _ in range(2))
    for name, one, two in zip(fixed, first, second, strict=True):
        if one != two:
            raise CheckFailed(f"{name} is {one:#010x}, and then {two:#010x}")
    before = driver.read_register("TIMEOUT")
    try:
        for pattern in _PATTERNS:
            driver.write_register("TIMEOUT", pattern)
            if (got := driver.read_register("TIMEOUT")) != pattern:
                raise CheckFailed(f"TIMEOUT is {got:#010x}; {pattern:#010x} was written")
    finally:
        driver.write_register("TIMEOUT", before)
    readable = sum(x.access is not Access.WRITE for x in REGISTERS)
    letters = IDENTITY.to_bytes(4, "big").decode()
    return f"{letters}, ABI version {ABI_VERSION}, {readable} registers, {each} to read one"


def describe_circuit(session: Session) -> list[str]:
    """Return the sizes and abilities of the circuit, as lines of text."""
    has = session.geometry
    lanes = ", ".join(str(lane.bits) for lane in sorted(has.lanes)) or "no"
    modes = ", ".join(mode.name for mode in sorted(has.modes))
    ports, loops = plural(has.read_ports, "read port"), plural(has.loops, "loop")
    return [
        f"operations {', '.join(op.name for op in sorted(has.ops))}",
        f"lanes of {lanes} bits; runs {modes}",
        f"{8 * has.data_bytes}-bit beats, {ports}, {loops}, {plural(has.slots, 'slot')}",
        f"memory {has.memory_bytes:,} bytes, {has.memory_base:#x} to {has.memory_last:#x}",
    ]


_FIRST: Final = 4096
_MOST: Final = 16 << 20
_SECONDS: Final = 0.5
"""Duration of a measurement, about; an eighth of it with ``quick``."""

_SIMULATED_BYTES: Final = 64 << 10
_SLOW_BYTES: Final = 1 << 10
"""Bytes of an operand that a simulator computes; fewer where Python evaluates the circuit."""

_BACK: Final = "as they came back"


def check_bandwidth(session: Session) -> str:
    """Measure bytes a second of the link; of a simulated circuit, bytes a simulated cycle.

    To and from the memory of a simulator, this computer copies bytes: their rate says nothing of a
    device. A simulated board behind a simulated line is measured in real time.
    """
    driver = session.driver
    base = session.geometry.memory_base
    half = session.geometry.memory_bytes // 2
    size = min(_FIRST, half)
    aim = _SECONDS / (8 if session.quick else 1)
    while True:
        content = session.random.integers(0, 256, size, np.uint8)
        up = _seconds(partial(driver.write, base, content))
        if up >= aim / 2 or size >= min(_MOST, half):
            break
        size = min(_MOST, half, size * max(2, min(64, int(aim / max(up, 1e-6)))))
    session.progress(0.5)
    results = []
    down = _seconds(lambda: results.append(driver.read(base, size)))
    expect_equal(results.pop(), content, base, _BACK)
    other = session.random.integers(0, 256, size, np.uint8)
    second = base + half
    both = _seconds(lambda: results.append(driver.exchange([(second, other)], [(base, size)])[0]))
    expect_equal(results.pop(), content, base, _BACK)
    expect_equal(driver.read(second, size), other, second, _BACK)
    if driver.link.cycles is not None:
        return _simulated_bandwidth(session)
    return (
        f"{size / up:,.0f} bytes/s up, {size / down:,.0f} down,"
        f" {size / both:,.0f} each way at once ({size:,} bytes)"
    )


def _simulated_bandwidth(session: Session) -> str:
    """Measure the bytes that an operation reads and writes in a simulated cycle."""
    driver, has = session.driver, session.geometry
    op = Op.XOR if Op.XOR in has.ops else min(BIT_OPS & has.ops)
    item = min(lane.bytes for lane in has.lanes) if op.splits_lanes else 1
    out = 1 if op.counts else item
    third = has.memory_bytes // 3 // 64 * 64
    most = _SLOW_BYTES if driver.link.slow else _SIMULATED_BYTES
    count = min(most, third) // item
    a, b, y = (
        View(has.memory_base + number * third, (size,), size)
        for number, size in enumerate((item, item, out))
    )
    streams = Streams(a, b if op.reads_b else None, y)
    commands = list(lower(op, (count,), streams, has.abilities, has.memory))
    # A check that failed before may have left its fault.
    driver.clear()
    before = _cycles(driver)
    driver.run(commands)
    cycles = _cycles(driver) - before
    moved = count * (item * (2 if op.reads_b else 1) + out)
    return (
        f"{op.name} of {count * item:,} bytes in {cycles:,} simulated cycles,"
        f" {moved / cycles:.1f} bytes a cycle read and written; copies to and from a simulator's"
        " memory take no cycle"
    )


def _cycles(driver: Driver) -> int:
    cycles = driver.link.cycles
    assert cycles is not None
    return cycles


def _seconds(call: Callable[[], object]) -> float:
    start = perf_counter()
    call()
    return max(perf_counter() - start, 1e-9)
