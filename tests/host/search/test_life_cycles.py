"""Random lives of an index, equal to FAISS's and to a model in NumPy."""

from pathlib import Path

import pytest

from support.host.life_cycles import Life


def live(seeds: range, folder: Path) -> None:
    for seed in seeds:
        try:
            Life(seed, folder).live()
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise


def test_a_life_of_an_index(tmp_path: Path) -> None:
    live(range(5000, 5020), tmp_path)


@pytest.mark.slow
def test_lives_of_an_index(tmp_path: Path) -> None:
    live(range(5020, 5300), tmp_path)


@pytest.mark.deep
@pytest.mark.parametrize("first", range(0, 5000, 500))
def test_many_lives_of_an_index(first: int, tmp_path: Path) -> None:
    live(range(first, first + 500), tmp_path)
