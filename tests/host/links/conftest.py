"""``line``: a quiet line of each kind, with a memory behind it."""

import pytest

from support.board.line import ModelLine
from support.host.transfers import LINES


@pytest.fixture(params=LINES.values(), ids=[*LINES])
def line(request: pytest.FixtureRequest) -> ModelLine:
    made: ModelLine = request.param()
    return made
