"""Large searches on the simulated circuit find what FAISS and RDKit find, ties included."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import pytest
from numpy.typing import NDArray

import bitlane
from support.host.arrays import same
from support.system.devices import DEFAULT, opened

pytestmark = pytest.mark.slow

Rows = NDArray[np.uint8]
Record = Callable[[str, object], None]

SEED = 20260


@pytest.fixture
def device() -> Iterator[bitlane.Device]:
    with opened(DEFAULT) as device:
        yield device


def faiss_index(rows: Rows) -> Any:
    index = faiss.IndexBinaryFlat(8 * rows.shape[1])
    index.add(rows)
    return index


def expect(got: tuple[NDArray[Any], ...], expected: tuple[NDArray[Any], ...]) -> None:
    for one, other in zip(got, expected, strict=True):
        assert same(one, other), f"seed {SEED}"


def test_random_rows(device: bitlane.Device, record_property: Record) -> None:
    random = np.random.default_rng(SEED)
    rows = random.integers(0, 256, (200_000, 64), np.uint8)
    queries, mask = (
        random.integers(0, 256, (8, 64), np.uint8),
        random.integers(0, 256, 64, np.uint8),
    )
    queries[0] = rows[77_777]
    expected = faiss_index(rows).search(queries, 10)
    before = device.driver.read_register("BUSY_CYCLES")
    expect(device.search(queries, rows, 10), expected)
    cycles = (device.driver.read_register("BUSY_CYCLES") - before) % 2**32
    record_property("report", f"200,000 rows of 512 bits, 8 queries: {cycles:,} cycles")
    # Distances do not change when one mask is laid over all.
    expect(device.search(queries ^ mask, rows ^ mask, 10), expected)


@pytest.mark.parametrize("k", [1, 10, 300])
def test_rows_that_are_ties(device: bitlane.Device, k: int) -> None:
    random = np.random.default_rng(SEED)
    some = random.integers(0, 256, (50, 64), np.uint8)
    rows = some[random.integers(0, 50, 5000)]
    expect(device.search(some[:8], rows, k), faiss_index(rows).search(some[:8], k))


def molecules() -> list[Any]:
    """Morgan fingerprints of the molecules in RDKit's wheel that parse."""
    from rdkit import Chem, RDConfig, RDLogger  # not in the quick tier, which imports the module
    from rdkit.Chem import rdFingerprintGenerator

    RDLogger.DisableLog("rdApp.*")
    lines = Path(RDConfig.RDDataDir, "NCI", "first_5K.smi").read_text().splitlines()
    parsed = [Chem.MolFromSmiles(line.split()[0]) for line in lines if line.strip()]
    generator = rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=2048)
    return [generator.GetFingerprint(each) for each in parsed if each is not None]


def test_molecules_have_the_tanimoto_similarities_of_rdkit(device: bitlane.Device) -> None:
    from rdkit import DataStructs

    prints = molecules()
    assert len(prints) == 4991
    ones = np.array([np.frombuffer(each.ToBitString().encode(), np.uint8) for each in prints])
    rows = np.packbits(ones == ord("1"), axis=1)
    asked = list(range(0, 4991, 500))
    distances, indices = device.search(rows[asked], rows, 10, metric="jaccard")
    for query, near, found in zip(asked, distances, indices, strict=True):
        every = np.array(DataStructs.BulkTanimotoSimilarity(prints[query], prints))
        order = np.argsort(-every, kind="stable")[:10]
        assert found.tolist() == order.tolist()
        assert near.tolist() == (1 - every[order]).tolist()
    similarities = device.jaccard(rows[:300], rows[4000:4300])
    expected = [
        DataStructs.TanimotoSimilarity(*pair)
        for pair in zip(prints[:300], prints[4000:4300], strict=True)
    ]
    assert similarities.tolist() == expected
