"""The simulated SoC of tests of this folder."""

import sys
from collections.abc import Iterator

import pytest

from support.boards.litex import Simulated, of_page, served


# A simulation uses a processor until it ends, so it ends with the module.
@pytest.fixture(scope="module")
def soc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulated]:
    """The simulated SoC, by the commands of the page."""
    folder = tmp_path_factory.mktemp("litex")
    words = of_page("python -m bitlane_boards.litex.simulated")
    words = [{"build/simulated": str(folder), "2430": "0"}.get(word, word) for word in words]
    with served([sys.executable, *words[1:]], folder) as started:
        yield started
