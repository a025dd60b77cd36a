"""Each call of the table gives what NumPy gives: every view, every type, every kind of operand."""

from zlib import crc32

import pytest

from bitlane import Device
from support.host.arrays import model
from support.host.beside_numpy import LAYOUTS, check
from support.host.calls import ANY, ROWS, Row
from support.seeds import seeds
from support.system.devices import DEVICES, opened


def check_views(device: Device, row: Row, seed: int, step: int) -> int:
    """Check every ``step``th view, in types that change; return how often NumPy has a result."""
    first = crc32(row.text.encode()) % 1000 + seed
    kinds = [row.kinds[(first // step + at) % len(row.kinds)] for at in range(len(LAYOUTS))]
    views = list(zip(LAYOUTS, kinds, strict=True))[first % step :: step]
    return sum(
        check(device, row, kind, layout, 7 * first + at) for at, (layout, kind) in enumerate(views)
    )


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.text.replace("::", ":"))
def test_a_call_is_numpys(row: Row) -> None:
    """NumPy's result, or an error where NumPy has one; NumPy accepts it for some view."""
    device = model(memory_bytes=1 << 17)
    assert sum(check_views(device, row, seed, 3) for seed in seeds(1, 12))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ANY)
def test_every_call_of_a_type(kind: str) -> None:
    device = model(memory_bytes=1 << 17)
    rows = [row for row in ROWS if kind in row.kinds]
    assert sum(check(device, row, kind, "gaps", at) for at, row in enumerate(rows)) > len(rows) / 2


@pytest.mark.parametrize("seed", seeds(1, 6))
@pytest.mark.parametrize("url", DEVICES)
def test_every_call_on_a_circuit(url: str, seed: int) -> None:
    with opened(url) as device:
        assert sum(check_views(device, row, seed, len(LAYOUTS)) for row in ROWS) > 200
