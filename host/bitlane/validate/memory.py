"""A march test of the device's memory: each location holds its own data and no other."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .session import Session, expect_equal

Words: TypeAlias = NDArray[np.uint32]

_CHUNKS: Final = 64
_SMALLEST_CHUNK: Final = 1 << 10
_LARGEST_CHUNK: Final = 1 << 20
_QUICK_BYTES: Final = 1 << 14
NEAR_BYTES: Final = 1 << 26
"""Bytes tested of a memory of the host: a simulator has no address lines that could break."""

FAR_BYTES: Final = 1 << 22
"""Bytes tested of a memory behind a line; they take two minutes at 3 Mbaud."""

_GOLDEN: Final = np.uint32(0x9E3779B1)


def check_memory(session: Session) -> str:
    """Test all patterns over all memory, or over the session's ``memory_bytes`` at both ends.

    The default is 4 MiB of a memory behind a line, and 64 MiB of the host's own; with ``quick``
    16 KiB of any.

    One pattern is read and the next one written in the same pass, up or down in turn, as march
    tests do: a location that answers to two addresses, or a bit that changes with another, shows.
    """
    spans = _spans(session)
    total = sum(size for _, size in spans)
    chunks = list(_cut(spans))
    patterns = _patterns(session)
    done, work = 0, total * (len(patterns) + 1)
    previous: tuple[str, Callable[[Words], Words]] | None = None
    for number, pattern in enumerate([*patterns, None]):
        written: tuple[int, NDArray[np.uint8]] | None = None
        order = chunks if number % 3 != 2 else chunks[::-1]
        for chunk in [*order, None]:
            # The chunk that has just been read is overwritten while the next one is read.
            writes = [] if written is None else [written]
            reads = [] if previous is None or chunk is None else [chunk]
            written = None
            if writes or reads:
                results = session.driver.exchange(writes, reads)
                if reads and previous is not None:
                    want = _content(reads[0], previous[1])
                    _expect_content(session, results[0], want, reads[0][0], previous[0])
            if chunk is not None and pattern is not None:
                written = (chunk[0], _content(chunk, pattern[1]))
            if chunk is not None:
                done += chunk[1]
                session.progress(done / work)
        previous = pattern
    for first, size in spans:
        session.driver.link.forget(first, size)
    names = ", ".join(name for name, _ in patterns)
    return f"{total:,} of {session.geometry.memory_bytes:,} bytes; {names}"


def _expect_content(
    session: Session, got: NDArray[np.uint8], want: NDArray[np.uint8], first: int, pattern: str
) -> None:
    """Raise ``CheckFailed`` if bytes differ, with bank, row and data lines of an SDRAM."""
    geometry = session.geometry
    rows = geometry.rows
    wrong = got ^ want
    if rows is None or not wrong.any():
        return expect_equal(got, want, first, f"of the pattern {pattern}")

    def locate(index: int) -> tuple[int, int, int]:
        return rows.locate(first - geometry.memory_base + index, geometry.data_bytes)

    bank, row, _ = locate(int(np.flatnonzero(wrong)[0]))
    lines = sorted(
        {
            locate(int(index))[2] + bit
            for index in np.flatnonzero(wrong)
            for bit in range(8)
            if wrong[index] >> bit & 1
        }
    )
    names = ", ".join(map(str, lines))
    return expect_equal(
        got, want, first, f"of the pattern {pattern}, bits {names} from bank {bank}, row {row} on"
    )


def _spans(session: Session) -> list[tuple[int, int]]:
    """Return the first address and the size of each tested range."""
    geometry = session.geometry
    base, size = geometry.memory_base, geometry.memory_bytes
    limit = session.memory_bytes
    if limit is None:
        whole = FAR_BYTES if session.driver.link.remote else NEAR_BYTES
        limit = _QUICK_BYTES if session.quick else whole
    if limit >= size:
        return [(base, size)]
    # Both ends, so that no address line is left out.
    low = max(4, limit // 2 // 4 * 4)
    high = max(4, (limit - low) // 4 * 4)
    return [(base, low), (base + size - high, high)]


def _cut(spans: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    total = sum(size for _, size in spans)
    chunk = min(max(total // _CHUNKS // 4 * 4, _SMALLEST_CHUNK), _LARGEST_CHUNK)
    for first, size in spans:
        for start in range(0, size, chunk):
            yield first + start, min(chunk, size - start)


def _patterns(session: Session) -> list[tuple[str, Callable[[Words], Words]]]:
    """Return the name of each pattern, and the function from addresses to words."""
    salt = np.uint32(session.random.integers(0, 1 << 32))

    def constant(value: int) -> Callable[[Words], Words]:
        return lambda addresses: np.full(addresses.size, value, "<u4")

    def noise(addresses: Words) -> Words:
        mixed = (addresses ^ salt) * _GOLDEN
        mixed ^= mixed >> np.uint32(15)
        mixed *= _GOLDEN
        mixed ^= mixed >> np.uint32(13)
        return mixed

    patterns: list[tuple[str, Callable[[Words], Words]]] = [
        ("address in address", lambda addresses: addresses),
        ("its complement", lambda addresses: ~addresses),
        ("noise", noise),
    ]
    if session.quick:
        return patterns
    return [
        ("zeros", constant(0)),
        ("ones", constant(0xFFFF_FFFF)),
        ("0x55", constant(0x5555_5555)),
        ("0xAA", constant(0xAAAA_AAAA)),
        *patterns,
    ]


def _content(chunk: tuple[int, int], words: Callable[[Words], Words]) -> NDArray[np.uint8]:
    first, size = chunk
    addresses = np.arange(first, first + size, 4, dtype="<u4")
    return words(addresses).astype("<u4", copy=False).view(np.uint8)
