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
from bitlane.links.line import Batch
from bitlane_rtl.abi import CONTROL_BASE
from bitlane_rtl.abi.datagrams import GOODBYE
from bitlane_rtl.abi.frames import SEQUENCES
from support.board.line import ModelSocket
from support.board.model import MemoryDevice
from support.ethernet.datagrams import NetworkRules, frames_in
from support.host.network import Cable, ServedRules
from support.host.replies import packets_of
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


class Exchanges:
    """Random exchanges with a memory and a control window, and a mirror of their bytes."""

    def __init__(self, device: MemoryDevice, seed: int) -> None:
        self.device = device
        self._random = Random(seed)
        self.memory = bytearray(self._random.randbytes(2 * HALF))
        self.window = bytearray(self._random.randbytes(4096))
        self.restore()

    def restore(self) -> None:
        """Make the device's bytes those of the mirror."""
        self.device.memory[:] = self.memory
        self.device.window[: len(self.window)] = self.window

    @property
    def right(self) -> bool:
        """Whether the device has the bytes of the mirror."""
        return (
            self.device.memory == self.memory
            and self.device.window[: len(self.window)] == self.window
        )

    def draw(self) -> tuple[list[tuple[int, bytes]], list[tuple[int, int]], list[bytes]]:
        """Return writes, reads and the bytes that the reads return; write to the mirror."""
        random = self._random
        half = random.randrange(2)
        most = random.choice((1, 2, 5, 40, 150))
        writes = [self._range(half, most) for _ in range(random.randrange(most + 1))]
        reads = [self._range(1 - half, most) for _ in range(random.randrange(most + 1))]
        wanted = [bytes(self._mirror(address, size)) for address, size in reads]
        contents = [(address, random.randbytes(size)) for address, size in writes]
        for address, data in contents:
            self._mirror(address, len(data))[:] = data
        return contents, reads, wanted

    def _range(self, half: int, most: int) -> tuple[int, int]:
        """Return an address and a size in a half of the memory, or of the control window."""
        random = self._random
        sizes = (4, 4, 30, 480, 1440) if most > 5 else (4, 480, 1440, 3000, 20_000)
        size = random.choice(sizes)
        if random.random() < 0.1:
            words = len(self.window) // 8
            return CONTROL_BASE + 4 * (words * half + random.randrange(words)), 4
        start = random.randrange(HALF - size)
        return self.device.memory_base + half * HALF + start, size

    def _mirror(self, address: int, size: int) -> memoryview:
        if address >= CONTROL_BASE:
            return memoryview(self.window)[address - CONTROL_BASE :][:size]
        return memoryview(self.memory)[address - self.device.memory_base :][:size]


EXCHANGES = 60
"""Exchanges of a seed."""

HARMLESS = SEQUENCES - 1
"""Most requests by which a copy may be late and change nothing, from its own sending on."""


class Hindsight(ServedRules):
    """A board that executes the repetition of a request that it never had, as a circuit does."""

    def perform(self, request: bytes, new: bool) -> Reply:
        self.watch.repetitions += not new
        return NetworkRules.perform(self, request, new)


class Found(NamedTuple):
    """Exchanges that raised an error, read wrong bytes, and left wrong bytes; late copies.

    That four copies of a request were lost one after the other is no error.
    """

    errors: int
    wrong_reads: int
    wrong_memory: int
    late: int


def found(
    ages: tuple[int, int], seed: int, rules: ServedRules, exchanges: int = EXCHANGES
) -> Found:
    """Return what becomes of ``exchanges`` on a network with copies of ``ages``."""
    rules.in_order = False
    network = LateNetwork(rules, ages, seed, 0.02)
    assert isinstance(rules.device, MemoryDevice)
    made = Exchanges(rules.device, seed)
    errors = wrong_reads = wrong_memory = 0
    link = network.link(take_over=True)
    for _ in range(exchanges):
        writes, reads, wanted = made.draw()
        try:
            got = [x.tobytes() for x in link.exchange(writes, reads)]
        except LinkError as error:
            errors += "no answer for" not in str(error)
            link = network.link(take_over=True)
            made.restore()
            continue
        wrong_reads += got != wanted
        wrong_memory += not made.right
        made.restore()
    return Found(errors, wrong_reads, wrong_memory, network.arrived.total())


@pytest.mark.parametrize("seed", seeds(2, 40))
@pytest.mark.parametrize("most", [64, 256, 2048])
def test_a_late_copy_changes_nothing(most: int, seed: int) -> None:
    errors, wrong_reads, wrong_memory, late = found((0, most), seed, ServedRules())
    assert (errors, wrong_reads, wrong_memory) == (0, 0, 0)
    assert late > 10


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(1, 12))
@pytest.mark.parametrize("least", [0, SEQUENCES // 2, HARMLESS - 300])
def test_a_copy_that_is_late_by_almost_all_numbers_changes_nothing(least: int, seed: int) -> None:
    """The host uses each number twice and more."""
    errors, wrong_reads, wrong_memory, late = found((least, HARMLESS), seed, ServedRules(), 400)
    assert (errors, wrong_reads, wrong_memory) == (0, 0, 0)
    assert late > 100


@pytest.mark.slow
def test_copies_that_are_later_are_beyond_the_rule() -> None:
    ages = HARMLESS + 1, HARMLESS + 128
    assert sum(found(ages, 1, Hindsight(), 800)[:3]) > 0
