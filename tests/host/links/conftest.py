"""A quiet line of each kind, with a memory behind it; and sessions that are equal in all runs."""

from random import Random

import pytest

from bitlane.links import remote_link, udp_link
from support.board.line import ModelLine
from support.host.transfers import LINES


@pytest.fixture(params=LINES.values(), ids=[*LINES])
def line(request: pytest.FixtureRequest) -> ModelLine:
    made: ModelLine = request.param()
    return made


@pytest.fixture
def repeatable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the sessions and numbers of a link the same in every run."""
    replayed = Random(1)
    for module in (remote_link, udp_link):
        monkeypatch.setattr(module, "randbits", replayed.getrandbits)
    monkeypatch.setattr(udp_link, "randbelow", replayed.randrange)
