"""Copies of datagrams that are late by a known number of requests, against the rule of the page."""

from random import Random
from typing import NamedTuple

import pytest

from bitlane.errors import LinkError
from bitlane.links import remote_link, udp_link
from bitlane.links.udp_link import UdpLink
from bitlane_rtl.abi.frames import SEQUENCES
from support.board.model import MemoryDevice
from support.ethernet.datagrams import NetworkRules
from support.host.delays import Exchanges, LateNetwork
from support.host.network import ServedRules
from support.seeds import seeds
from support.serial.frames import Reply

EXCHANGES = 60
"""Exchanges of a seed."""

HARMLESS = SEQUENCES - 1
"""Most requests by which a copy may be late and change nothing, from its own sending on."""


@pytest.fixture(autouse=True)
def random_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the sessions and numbers of a link the same in every run."""
    replayed = Random(1)
    for module in (remote_link, udp_link):
        monkeypatch.setattr(module, "randbits", replayed.getrandbits)
    monkeypatch.setattr(udp_link, "randbelow", replayed.randrange)


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
    rules.clock = network.clock
    assert isinstance(rules.device, MemoryDevice)
    made = Exchanges(rules.device, seed)
    errors = wrong_reads = wrong_memory = 0
    link = UdpLink(network, clock=network.clock, take_over=True)  # type: ignore[arg-type]
    for _ in range(exchanges):
        writes, reads, wanted = made.draw()
        try:
            got = [x.tobytes() for x in link.exchange(writes, reads)]
        except LinkError as error:
            errors += "no answer for" not in str(error)
            link = UdpLink(network, clock=network.clock, take_over=True)  # type: ignore[arg-type]
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
