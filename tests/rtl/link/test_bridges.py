"""The bridges of all lines execute requests alike: repetitions, refusals, numbers, random requests.

A bridge has a row in `BRIDGES`. Answers, storage and the count of writes are those of the rules.
"""

import random
from collections.abc import Sequence

import pytest

from bitlane_rtl.abi import CONTROL_BASE, SEQUENCES, Answer
from support.ethernet.bridge import SESSION, SLOW, BridgeBench, expect
from support.ethernet.bridge import start as network_start
from support.ethernet.datagrams import datagram_of
from support.seeds import seeds, slow
from support.serial import bench as serial
from support.serial.frames import Reply, lines, random_request, read, replies, request, write

Groups = Sequence[Sequence[bytes]]
"""Requests, in groups that a line carries at once: consecutive frames, or a datagram."""


class AtSerialLine:
    """A bridge on its line, with 64 KiB of memory from 0 on."""

    def __init__(self) -> None:
        self._bench = serial.SerialBench()

    def execute(
        self, groups: Groups, first: int = 0, *, stalls: bool = False, interrupt: bool = False
    ) -> list[Reply]:
        """Execute requests in a new session from number ``first`` on; expect those of the rules."""
        bench, found = self._bench, []
        rules = serial.start(bench, first)
        bench.stall(stalls)
        bench.interrupt(interrupt)
        device = rules.memory_device
        device.interrupt = interrupt
        for group in groups:
            expected = rules.answers(lines(group))
            assert replies(bench.exchange(lines(group)), expected) == expected
            found += expected
        serial.assert_same_events(bench, rules)
        bench.stall(False)
        bench.interrupt(False)
        return found


class OnNetwork:
    def __init__(self) -> None:
        self._bench = BridgeBench()

    def execute(
        self, groups: Groups, first: int = 0, *, stalls: bool = False, interrupt: bool = False
    ) -> list[Reply]:
        payloads = [datagram_of(SESSION, group) for group in groups]
        answers = expect(
            self._bench,
            [network_start(number=first - 1), *payloads],
            8000 if stalls else 4000,
            after=30_000,
            interrupt=interrupt,
            **({"stalls": SLOW, "latency": 20} if stalls else {}),
        )
        return [each for _, found in answers[1:] for each in found]


Bridge = AtSerialLine | OnNetwork
BRIDGES: dict[str, type[Bridge]] = {"serial": AtSerialLine, "network": OnNetwork}


@pytest.fixture(scope="module", params=BRIDGES.values(), ids=[*BRIDGES])
def bridge(request: pytest.FixtureRequest) -> Bridge:
    made: Bridge = request.param()
    return made


def kinds(answers: Sequence[Reply]) -> list[int]:
    return [each.kind for each in answers]


DONE, REFUSED, EXPECTED = Answer.DONE, Answer.REFUSED, Answer.EXPECTED


def test_a_repetition_is_answered_and_not_executed(bridge: Bridge) -> None:
    first = [write(0, 0, b"old!"), read(1, 0, 4), write(2, CONTROL_BASE + 0x1C, b"\1\0\0\0")]
    second = [write(3, 0, b"new!"), *(write(n, 8 * n, bytes([n] * 8)) for n in range(4, 20))]
    answers = bridge.execute([first, second, first, second, first])
    assert kinds(answers) == [DONE] * len(answers)
    assert [each.data for each in answers if each.number == 1] == [b"old!", b"new!", b"new!"]


def test_out_of_turn(bridge: Bridge) -> None:
    """One complaint is made until a request is executed."""
    late, other = [write(5, 0, b"late")], [write(2, 8, b"not!")]
    answers = bridge.execute([late, other, late, [write(0, 0, b"now!")], late, [read(1, 0, 4)]])
    assert kinds(answers) == [EXPECTED, DONE, EXPECTED, DONE]
    assert [each.number for each in answers] == [0, 0, 1, 1]


@pytest.mark.parametrize("ahead", [1, 2, 255, 256, 8191, 8193, 16128, 16383])
@pytest.mark.parametrize("first", [0, 255, 16383])
def test_only_the_next_number_is_new(bridge: Bridge, first: int, ahead: int) -> None:
    numbers = (first, first + 1 + ahead, first + 1, first + 2)
    bridge.execute([[write(n % SEQUENCES, n % 256, b"\1\2")] for n in numbers], first)


def test_numbers_go_round(bridge: Bridge) -> None:
    first = SEQUENCES - 300
    groups = [[read(first + n + k, 0, 0) for k in range(100)] for n in range(0, 600, 100)]
    assert kinds(bridge.execute(groups, first)) == [DONE] * 600


@pytest.mark.parametrize("count", [256, slow(8192)])
def test_a_copy_that_is_late_by_many_requests_changes_nothing(bridge: Bridge, count: int) -> None:
    """A copy that arrives ``count`` requests late does not write its data again."""
    first = write(0, 0, b"old!")
    others = [write(1, 0, b"new!"), *(read(number, 8, 1) for number in range(2, count))]
    groups = [others[n : n + 100] for n in range(0, count - 1, 100)]
    answers = bridge.execute([[first], *groups, [first], [read(count, 0, 4)]])
    assert answers[-2:] == [Reply(0, DONE), Reply(count, DONE, b"new!")]


RANGES = [
    *((0xFFFF, 1, True), (0xFFFF, 2, False), (0x1_0000, 1, False), (0xFE00, 512, True)),
    *((0xFE01, 512, False), (0xFFFF_FFFF, 1, False), (0xFFFF_FFFF, 2, False)),
    *((0xFFFF_FF00, 512, False), (CONTROL_BASE - 1, 1, False), (CONTROL_BASE - 4, 8, False)),
    *((CONTROL_BASE, 4, True), (CONTROL_BASE, 3, False), (CONTROL_BASE + 2, 4, False)),
    *((CONTROL_BASE + 0x3FFC, 4, True), (CONTROL_BASE + 0x3FFC, 8, False)),
    *((CONTROL_BASE + 0x4000, 4, False), (CONTROL_BASE + 0x4000, 0, True)),
    *((address, 0, True) for address in (0, 0x1_0001, 0x2_0000, CONTROL_BASE + 1, 0xFFFF_FFFF)),
    *((0, 513, False), (3, 700, False), (0, 1023, False)),
]
"""Address, size, and whether the board has these bytes."""


UNKNOWN = (4, 5, 6, 0x10, 0x81, 0xFE, 0xFF)
"""Kinds of requests that neither line has."""


def test_refused(bridge: Bridge) -> None:
    rng = random.Random(1)
    groups, expected = [], []
    for number, (address, size, has) in enumerate(RANGES):
        content = write(3 * number, address, rng.randbytes(size))
        groups += [[content], [read(3 * number + 1, address, size), read(3 * number + 2, 0, 4)]]
        expected += [DONE if has else REFUSED] * 2 + [DONE]
    number = 3 * len(RANGES)
    groups.append([request(number + k, kind, 0, 8) for k, kind in enumerate(UNKNOWN)])
    assert kinds(bridge.execute(groups)) == [*expected, *[REFUSED] * len(UNKNOWN)]


@pytest.mark.parametrize("level", [False, True])
def test_the_interrupt_line_is_reported(bridge: Bridge, level: bool) -> None:
    answers = bridge.execute([[read(0, 0, 0)], [write(1, 0, b"x")]], interrupt=level)
    assert [each.interrupt for each in answers] == [level] * 2


@pytest.mark.parametrize("stalls", [False, True])
@pytest.mark.parametrize("seed", seeds(1, 6))
def test_random_requests(bridge: Bridge, seed: int, stalls: bool) -> None:
    """As many as a board buffers, some groups twice."""
    rng = random.Random(seed)
    groups: list[list[bytes]] = []
    number = 0
    for _ in range(12):
        contents: list[bytes] = []
        while sum(len(each) for each in contents) < 1000 and rng.random() < 0.85:
            contents.append(random_request(rng, number, 200))
            number += 1
        if contents:
            groups += [contents] * rng.choice([1, 1, 2])
    bridge.execute(groups, stalls=stalls)
