"""A link sends fragments in the right order and size, and waits for their answers."""

from typing import Any

import pytest

from bitlane.links.line import LEAST_BATCH, Fragment
from bitlane.links.predicted import duration
from bitlane.links.serial_frames import SERIAL
from bitlane.links.timing import FrameSizer, RetransmissionTimer
from bitlane.links.transfer_queue import TransferQueue
from bitlane_rtl.abi import CONTROL_BASE
from bitlane_rtl.abi.frames import RECEIVE_BYTES, REPETITIONS, Request
from support.host.replies import view


def fragments_of(transfers: TransferQueue, most: int) -> list[Fragment]:
    fragments = []
    while (fragment := transfers.next(most)) is not None:
        assert transfers.next(most) == fragment
        cost = SERIAL.cost(fragment.request, fragment.span)
        lead = cost.request_bytes - cost.answer_bytes
        transfers.pop(fragment, lead)
        fragments.append(fragment)
    return fragments


@pytest.mark.parametrize("size", [32, 64, 128, 512])
@pytest.mark.parametrize("read_size", [32, 512])
def test_both_directions_carry_the_same_while_both_have_work(size: int, read_size: int) -> None:
    reads = [(0x8000 + read_size * k, view(read_size)) for k in range(500)]
    fragments = fragments_of(TransferQueue([(0, view(size * 20))], reads), max(size, read_size))
    kinds = "".join(fragment.request.name[0] for fragment in fragments)
    up = down = 0
    for fragment in fragments[: kinds.rindex("W")]:
        cost = SERIAL.cost(fragment.request, fragment.span)
        up += cost.request_bytes
        down += cost.answer_bytes
        assert abs(up - down) <= 530, kinds
    assert set(kinds[kinds.rindex("W") + 1 :]) == {"R"}


@pytest.mark.parametrize("offset", [0, 1, 2, 3])
@pytest.mark.parametrize("size", [1, 61, 64, 65, 300])
def test_only_the_first_fragment_begins_within_a_word(offset: int, size: int) -> None:
    fragments = fragments_of(TransferQueue([(offset, view(size))]), 64)
    assert all(fragment.span <= 64 for fragment in fragments)
    assert all(fragment.address % 64 == 0 for fragment in fragments[1:])
    assert len(fragments) == -(-(offset + size) // 64)


def test_a_batch_begins_with_a_whole_word() -> None:
    transfers = TransferQueue([(3, view(1000))])
    assert not transfers.fills(64)
    head = transfers.next(64, 10)
    assert head is not None
    assert len(head.content) == 61
    transfers.pop(head, 0)
    assert transfers.fills(64)
    rest = transfers.next(64, 10)
    assert rest is not None
    assert (rest.address, len(rest.content)) == (64, 640)
    assert len(rest.content) >= LEAST_BATCH * 64


def test_both_directions_are_busy_behind_the_last_write_to_the_control_window() -> None:
    writes = [(0, view(64)), (CONTROL_BASE + 8, view(8)), (64, view(64)), (CONTROL_BASE, view(4))]
    more = [(0x100 + 64 * k, view(64)) for k in range(8)]
    transfers = TransferQueue(writes + more, [(0x8000, view(64)), (CONTROL_BASE + 16, view(4))])
    fragments = fragments_of(transfers, 64)
    assert [(each.request, each.address) for each in fragments[:4]] == [
        (Request.WRITE, address) for address, _ in writes
    ]
    kinds = "".join(each.request.name[0] for each in fragments[4:])
    assert kinds.index("R") < kinds.rindex("W"), kinds


def test_what_is_cleared_is_not_moved() -> None:
    transfers = TransferQueue([(0, view(100)), (CONTROL_BASE, view(8))], [(0x8000, view(100))])
    transfers.clear()
    assert transfers.next(64) is None


# --- frames and waits adapt to the line ----------------------------------------------------------


def sizes_of(sizer: FrameSizer, count: int) -> list[int]:
    found = []
    for _ in range(count):
        found.append(sizer.size)
        sizer.on_answer(sizer.size)
    return found


def test_frames_grow_at_once_on_a_quiet_line_and_slowly_after_losses() -> None:
    sizer = FrameSizer(SERIAL, RECEIVE_BYTES)
    assert sizes_of(sizer, 5) == [64, 128, 256, 512, 512]
    for size in (256, 128, 64, 32, 32):
        sizer.on_loss()
        assert sizer.size == size
        assert sizer.packets == SERIAL.noisy_packets
    assert sizes_of(sizer, 17) == [32] * 8 + [64] * 8 + [128]
    assert sizer.packets == SERIAL.noisy_packets
    sizes_of(sizer, 20)
    assert (sizer.size, sizer.packets) == (512, REPETITIONS)


def timer(*measured: tuple[float, int], **options: Any) -> RetransmissionTimer:
    it = RetransmissionTimer(SERIAL, 2.5)
    for seconds, line_bytes in measured:
        it.measured(seconds, line_bytes)
    return it


def test_patience_starts_at_a_second_and_ends_at_what_was_allowed() -> None:
    assert timer().seconds(500) == 1
    it = timer((100.0, 500))
    assert it.seconds(500) == 2.5


def test_patience_follows_the_line() -> None:
    it = timer((0.5, 436))
    assert it.seconds(436) == 1
    for _ in range(100):
        it.measured(0.001, 436)
    assert it.seconds(436) == SERIAL.least_wait
    it.measured(0.5, 436)
    assert it.seconds(436) == 1


def test_patience_doubles_with_each_silence_and_recovers() -> None:
    it = timer((0.001, 100))
    waits = []
    for _ in range(7):
        waits.append(round(it.seconds(100) / SERIAL.least_wait))
        it.back_off()
    assert waits == [1, 2, 4, 8, 16, 32, 32]
    it.reset_backoff()
    assert it.seconds(100) == SERIAL.least_wait


def test_answers_that_come_twice_double_patience() -> None:
    it = timer((0.1, 100))
    before = it.seconds(100)
    it.spurious()
    assert it.seconds(100) == pytest.approx(2 * before)


def test_copies_of_answers_stretch_the_wait_only_until_it_is_measured() -> None:
    it = timer((0.001, 100))
    for _ in range(100):
        it.spurious()
    assert it.seconds(100) == 16 * SERIAL.least_wait
    waits = []
    for _ in range(5):
        it.measured(0.001, 100)
        waits.append(round(it.seconds(100) / SERIAL.least_wait))
    assert waits == [8, 4, 2, 1, 1]


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0 us"),
        (1.234e-6, "1.23 us"),
        (0.0123, "12.3 ms"),
        (59.9, "59.9 s"),
        (60, "1 min"),
        (1470, "24.5 min"),
        (3600, "1 h"),
        (5_000_000, "1,389 h"),
        # Rounded to the next unit's first number, but never with an exponent.
        (999.7e-6, "1,000 us"),
    ],
)
def test_a_duration_has_three_digits_and_a_unit(seconds: float, shown: str) -> None:
    assert duration(seconds) == shown
