"""Cutting what is to be moved into parts."""

import pytest

from bitlane.links.arq import Cuts, Part
from bitlane.links.frames import answer_line_bytes, request_line_bytes
from bitlane_rtl.abi import CONTROL_BASE
from bitlane_rtl.abi.frames import Request


def parts_of(cuts: Cuts, most: int) -> list[Part]:
    parts = []
    while (part := cuts.next(most)) is not None:
        assert cuts.next(most) == part
        cuts.taken(part)
        parts.append(part)
    return parts


def view(size: int, byte: int = 0) -> memoryview:
    return memoryview(bytearray((byte,)) * size)


def test_parts_cover_every_byte_once() -> None:
    content = memoryview(bytes(range(256)) * 5)
    target = bytearray(1000)
    cuts = Cuts([(0x100, content)], [(0x5000, memoryview(target))])
    sent: dict[int, int] = {}
    for part in parts_of(cuts, 300):
        assert len(part.content) <= 300
        if part.request is Request.WRITE:
            assert (part.sent, part.received) == (len(part.content), 0)
            for offset, byte in enumerate(part.content):
                assert part.address + offset not in sent
                sent[part.address + offset] = byte
        else:
            assert (part.sent, part.received) == (0, len(part.content))
            for offset in range(len(part.content)):
                target[part.address - 0x5000 + offset] += 1
    assert sent == {0x100 + i: byte for i, byte in enumerate(content)}
    assert target == b"\1" * 1000


@pytest.mark.parametrize("size", [32, 64, 128, 512])
@pytest.mark.parametrize("read_size", [32, 512])
def test_both_directions_carry_the_same_while_both_have_work(size: int, read_size: int) -> None:
    reads = [(0x8000 + read_size * k, view(read_size)) for k in range(500)]
    parts = parts_of(Cuts([(0, view(size * 20))], reads), max(size, read_size))
    kinds = "".join(part.request.name[0] for part in parts)
    up = down = 0
    for part in parts[: kinds.rindex("W")]:
        up += request_line_bytes(part.sent)
        down += answer_line_bytes(part.received)
        assert abs(up - down) <= 530, kinds
    assert set(kinds[kinds.rindex("W") + 1 :]) == {"R"}


def test_reads_follow_the_last_write_to_the_control_window() -> None:
    writes = [(0, view(64)), (CONTROL_BASE + 8, view(8)), (64, view(64)), (CONTROL_BASE, view(4))]
    more = [(0x100 + 64 * k, view(64)) for k in range(8)]
    cuts = Cuts(writes + more, [(0x8000, view(64)), (CONTROL_BASE + 16, view(4))])
    parts = parts_of(cuts, 64)
    assert [(part.request, part.address) for part in parts[:4]] == [
        (Request.WRITE, address) for address, _ in writes
    ]
    # Then both directions are busy.
    kinds = "".join(part.request.name[0] for part in parts[4:])
    assert kinds.index("R") < kinds.rindex("W"), kinds


def test_writes_keep_their_order() -> None:
    writes = [(64 * (k * 7 % 10), view(100)) for k in range(10)]
    reads = [(0x8000 + 64 * k, view(64)) for k in range(10)]
    parts = [part for part in parts_of(Cuts(writes, reads), 64) if part.sent]
    assert [part.address for part in parts[::2]] == [address for address, _ in writes]
    assert [part.address for part in parts[1::2]] == [address + 64 for address, _ in writes]


def test_the_size_of_parts_may_change_between_them() -> None:
    cuts = Cuts([(0, view(100))])
    sizes = []
    for most in (64, 32, 512):
        part = cuts.next(most)
        assert part is not None
        sizes.append((part.address, len(part.content)))
        cuts.taken(part)
    assert sizes == [(0, 64), (64, 32), (96, 4)]
    assert cuts.next(1) is None


def test_a_read_of_nothing_is_one_part() -> None:
    assert parts_of(Cuts(reads=[(0, view(0))]), 64) == [Part(Request.READ, 0, view(0))]


def test_what_is_dropped_is_not_moved() -> None:
    cuts = Cuts([(0, view(100)), (CONTROL_BASE, view(8))], [(0x8000, view(100))])
    cuts.drop()
    assert cuts.next(64) is None
