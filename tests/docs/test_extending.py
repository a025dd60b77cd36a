"""The page on extending bitlane: the changes for an operator fit the files, and the result runs."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.docs.pages import ROOT, blocks
from support.seeds import stride

PAGE = ROOT / "docs" / "extending.md"

TRY = """
import sys
import numpy as np
import bitlane
from bitlane_rtl.abi import Op
from bitlane_sim.campaigns.contract import Computation, compute
from support.oracle import computed

a, b = np.arange(256, dtype=np.uint8), np.arange(256, dtype=np.uint8)[:, None]
step = int(sys.argv[2])
pairs = np.random.default_rng(1).integers(0, 256, (2, 100), np.uint64)
no = np.zeros(100, bool)
how = Computation(np.full(100, int(Op.ANDN)), np.full(100, 8), no, no, no, no)
assert compute(how, *pairs).tolist() == [computed(Op.ANDN, 8, *x) for x in pairs.T.tolist()]
for name in ("numpy", "sim:pysim"):
    with bitlane.open(f"{name}?{sys.argv[1]}") as device:
        assert "ANDN" in {op.name for op in device.driver.geometry.ops}
        some = b[::64]
        assert np.array_equal(device.bit_andn(a[::step], some), a[::step] & ~some)
        x, y = (device.asarray(each.astype(np.uint32)) for each in (a[:64], a[64:128]))
        ones = np.asarray(device.bit_count(device.bit_andn(x, y)))
        assert np.array_equal(ones, np.bitwise_count(a[:64] & ~a[64:128]))
        assert np.array_equal(np.asarray(~device.bit_andn(x, y)), ~(np.asarray(x) & ~np.asarray(y)))
        wide = np.arange(16, dtype=np.uint64) << np.uint64(40)
        assert np.array_equal(device.bit_andn(wide, wide[::-1]), wide & ~wide[::-1])
        assert np.array_equal(device.bit_shift_right(wide, 3), wide >> np.uint64(3))
        assert np.array_equal(device.bit_xor(a, 0xF0), a ^ np.uint8(0xF0))
print("computed")
"""


@dataclass(frozen=True)
class Change:
    """``old`` lines of ``file`` become ``new`` ones."""

    file: str
    old: str
    new: str


def changes() -> Iterator[Change]:
    """Yield the changes that the page shows, in its order."""
    for block in blocks(PAGE):
        if block.language != "diff":
            continue
        for part in re.split(r"^--- ", block.text, flags=re.M)[1:]:
            file, _, hunks = part.partition("\n")
            for hunk in re.split(r"^@@\n", hunks, flags=re.M):
                lines = [(line[:1], line[1:]) for line in hunk.splitlines()]
                old, new = (
                    "".join(f"{text}\n" for mark, text in lines if mark in (" ", own))
                    for own in "-+"
                )
                yield Change(file, old, new)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the packages and their tests."""
    for folder in ("rtl", "cppsim", "sim", "host", "boards", "tests"):
        skipped = shutil.ignore_patterns("__pycache__", "*.so")
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=skipped)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", ["width=32&memory=4KiB&loops=2&slots=2", "width=64&memory=4KiB"]
)
def test_what_the_page_changes_makes_an_operation(options: str, tree: Path) -> None:
    for change in changes():
        file = tree / change.file
        text = file.read_text(encoding="utf-8")
        found = text.count(f"\n{change.old}")
        assert found == 1, f"{change.file} has these lines {found} times:\n{change.old}"
        file.write_text(text.replace(f"\n{change.old}", f"\n{change.new}"), encoding="utf-8")
    packages = [
        str(tree / folder)
        for folder in ("rtl", "cppsim/src", "sim", "host", "boards", "tests", "cppsim/tests")
    ]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(packages)}
    tried = subprocess.run(
        [sys.executable, "-c", TRY, options, str(stride(3))],
        cwd=tree,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert tried.stdout == "computed\n", tried.stderr
