"""Copies of datagrams that are late by a known number of requests, against the rule of the page.

A copy's age is the number of requests that the host has sent from the first one in it on. Time is
simulated, and every run of a seed is equal.
"""

from collections import Counter, deque
from collections.abc import Sequence
from heapq import heappop, heappush
from itertools import count, groupby
from random import Random
from typing import NamedTuple

import pytest

from bitlane.errors import LinkError
from bitlane.links import Batch
from bitlane_rtl.abi import CONTROL_BASE, GOODBYE, SEQUENCES
from support.board.line import ModelSocket
from support.board.model import MemoryDevice
from support.ethernet.datagrams import NetworkRules, frames_in
from support.host.network import Cable, ServedRules
from support.host.replies import packets_of
from support.host.transfers import BASE
from support.seeds import seeds
from support.serial.frames import Reply, asked

pytestmark = pytest.mark.usefixtures("repeatable")

LATE = 0.05
"""Share of the datagrams of which a copy is late."""

HALF = 1 << 16
"""Bytes of each half of the memory: an exchange writes one and reads the other."""


class _Late(NamedTuple):
    due: int
    """The number of requests at which the copy arrives; of copies with one ``due``, in order."""
    order: int
    index: int
    data: bytes


class LateNetwork(ModelSocket):
    """A socket that delays copies of datagrams, loses, doubles, reorders and damages.

    A copy of requests that is too old when its answer arrives is lost, as is any other copy.
    ``ages``: least and most age of late copies. ``rate``: share of datagrams for each other fault.
    """

    def __init__(self, rules: ServedRules, ages: tuple[int, int], seed: int, rate: float) -> None:
        super().__init__(rules)
        self.arrived = Counter[str]()
        """Late copies that have arrived, by direction."""
        self._random = Random(seed)
        self._ages = ages
        faults = {"loss": 0.01, "damage": 0.01, "double": rate, "reorder": rate}
        self.cables = Cable(seed=seed, **faults), Cable(seed=seed + 1, **faults)
        self._up: deque[bytes] = deque()
        # Answers on their way, and the indices of those to late copies.
        self._down: deque[tuple[bytes, int | None]] = deque()
        self._late: dict[str, list[_Late]] = {"up": [], "down": []}
        self._order = count()
        self._issued = 0
        self._next = 0

    # --- a link's socket --------------------------------------------------------------------------

    def send(self, batches: Sequence[Batch]) -> None:
        for packet in packets_of(batches):
            found = frames_in(packet)
            assert found is not None
            index = self._numbered(found)
            self._up += self.cables[0]([packet])
            self._delay("up", index, packet)

    def receive(self, seconds: float) -> list[Batch]:
        """Return some of the answers that have arrived; let the time pass if there are none."""
        for _ in range(self._random.randrange(1, 12)):
            if self._up:
                self._arrive(self._up.popleft())
            for index, data in self._due("up"):
                self._arrive(data, index)
        answers = [data for _, data in self._due("down")]
        for _ in range(min(len(self._down), self._random.randrange(1, 12))):
            data, late = self._down.popleft()
            if late is None or self._issued - late <= self._ages[1]:
                answers.append(data)
        if not answers:
            self.now += 0.0 if self._up or self._down else max(0.0, seconds)
            return []
        self.now += 1e-5
        groups = [(size, list(group)) for size, group in groupby(answers, len) if size]
        return [Batch(b"".join(group), size) for size, group in groups]

    # --- late copies ------------------------------------------------------------------------------

    def _numbered(self, requests: list[bytes]) -> int:
        """Count new requests; return the index of the first one of ``requests``."""
        for number in (asked(each).number for each in requests if each[1] != GOODBYE):
            ahead = (number - self._next) % SEQUENCES
            if ahead < SEQUENCES // 2 or not self._issued:
                self._issued += ahead + 1
                self._next = (number + 1) % SEQUENCES
        return self._issued - self._behind(asked(requests[0]).number)

    def _behind(self, number: int) -> int:
        """Return how many requests ago the host used ``number``; 0 if it is the next one."""
        return (self._next - number) % SEQUENCES

    def _delay(self, way: str, index: int, data: bytes) -> None:
        if self._random.random() < LATE:
            due = index + self._random.randint(*self._ages)
            heappush(self._late[way], _Late(due, next(self._order), index, data))

    def _due(self, way: str) -> list[tuple[int, bytes]]:
        """Return index and datagram of the copies whose age is reached."""
        late = self._late[way]
        due = []
        while late and late[0].due <= self._issued:
            due.append(heappop(late))
        found = [(x.index, x.data) for x in due if self._issued - x.index <= self._ages[1]]
        self.arrived[way] += len(found)
        return found

    def _arrive(self, data: bytes, late: int | None = None) -> None:
        for answer in self.board.datagrams(data):
            # The cable may hold an answer back: one to a late copy would lose its index there.
            passed = self.cables[1]([answer]) if late is None else [answer]
            self._down += ((x, late) for x in passed)
            # The board's own count: the host may have sent SEQUENCES requests since this one.
            executed = self._issued - self._behind(self.board.expected)
            number = asked(answer[4:12]).number
            index = executed - (self.board.expected - number) % SEQUENCES
            self._delay("down", index, answer)


EXCHANGES = 60
"""Exchanges of a seed."""

HARMLESS = SEQUENCES - 1
"""Most requests by which a copy may be late and change nothing, from its own sending on."""


class Hindsight(ServedRules):
    """A board that executes the repetition of a request that it never had, as a circuit does."""

    def perform(self, request: bytes, new: bool) -> Reply:
        self.watch.repetitions += not new
        return NetworkRules.perform(self, request, new)


def ranges(random: Random, half: int, most: int) -> list[tuple[int, int]]:
    """Return up to ``most`` addresses and sizes, in a half of the memory or of the window."""
    sizes = (4, 4, 30, 480, 1440) if most > 5 else (4, 480, 1440, 3000, 20_000)
    found = []
    for _ in range(random.randrange(most + 1)):
        size = random.choice(sizes)
        start = BASE + half * HALF + random.randrange(HALF - size)
        word = CONTROL_BASE + 4 * (512 * half + random.randrange(512))
        found.append((word, 4) if random.random() < 0.1 else (start, size))
    return found


def exchange(
    ages: tuple[int, int], seed: int, rules: ServedRules, exchanges: int = EXCHANGES
) -> int:
    """Expect right bytes on a network with copies of ``ages``; return how many came late.

    Four copies of a request may be lost one after the other: the link is then opened again.
    """
    rules.in_order = False
    random, network = Random(seed), LateNetwork(rules, ages, seed, 0.02)
    device, mirror = rules.memory_device, MemoryDevice()
    mirror.memory[:], mirror.window[:4096] = random.randbytes(2 * HALF), random.randbytes(4096)
    device.memory[:], device.window[:] = mirror.memory, mirror.window
    link = network.link(take_over=True)
    for _ in range(exchanges):
        half, most = random.randrange(2), random.choice((1, 2, 5, 40, 150))
        writes, reads = (ranges(random, each, most) for each in (half, 1 - half))
        contents = [(address, random.randbytes(size)) for address, size in writes]
        for each in contents:
            mirror.write(*each)
        try:
            got = [x.tobytes() for x in link.exchange(contents, reads)]
        except LinkError as error:
            if "no answer for" not in str(error):
                raise
            link = network.link(take_over=True)
            device.memory[:], device.window[:] = mirror.memory, mirror.window
            continue
        right = got == [mirror.read(*each) for each in reads]
        written = (device.memory, device.window) == (mirror.memory, mirror.window)
        assert right, "a read returned wrong bytes"
        assert written, "wrong bytes are on the board"
    return network.arrived.total()


@pytest.mark.parametrize("seed", seeds(1, 40))
@pytest.mark.parametrize("most", [64, 256, 2048])
def test_a_late_copy_changes_nothing(most: int, seed: int) -> None:
    assert exchange((0, most), seed, ServedRules()) > 10


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(1, 12))
@pytest.mark.parametrize("least", [0, SEQUENCES // 2, HARMLESS - 300])
def test_a_copy_that_is_late_by_almost_all_numbers_changes_nothing(least: int, seed: int) -> None:
    """The host uses each number twice and more."""
    assert exchange((least, HARMLESS), seed, ServedRules(), 400) > 100


@pytest.mark.slow
def test_copies_that_are_later_are_beyond_the_rule() -> None:
    with pytest.raises((AssertionError, LinkError)) as caught:
        exchange((HARMLESS + 1, HARMLESS + 128), 1, Hindsight(), 800)
    assert isinstance(caught.value, LinkError) or "wrong bytes" in str(caught.value)
