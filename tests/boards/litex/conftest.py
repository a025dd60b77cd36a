"""The simulated SoC of tests of this folder."""

import sys
from collections.abc import Iterator

import pytest

from support.boards.litex import Simulated, of_page, served


# A simulation uses a processor until it ends, so it ends with the module.
@pytest.fixture(scope="module", params=["radiona_ulx3s", "colorlight_i5"])
def soc(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Simulated]:
    """The simulated SoC, by the commands of the page: with byte masks, and without."""
    folder = tmp_path_factory.mktemp("litex")
    words = of_page("python -m bitlane_boards.litex.simulated")
    words = [{"build/simulated": str(folder), "2430": "0"}.get(word, word) for word in words]
    words += ["--board", request.param]
    with served([sys.executable, *words[1:]], folder, request.param) as started:
        yield started
