"""The way from a call to the circuit is short: Python calls and files are counted, never times."""

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import bitlane
import bitlane_rtl
import bitlane_sim
from support.system.devices import opened

PACKAGES = tuple(str(Path(x.__file__ or "").parent) for x in (bitlane, bitlane_rtl, bitlane_sim))

A = np.arange(64, dtype=np.uint8)
B = A[::-1].copy()
OUT = np.zeros(64, np.uint8)

CALLS: dict[str, Callable[[bitlane.Device], object]] = {
    "bit_xor": lambda device: device.bit_xor(A, B),
    "bit_not": lambda device: device.bit_not(A),
    "bit_count": lambda device: device.bit_count(A),
    "bit_xor into out": lambda device: device.bit_xor(A, B, out=OUT),
    "bit_and with a number": lambda device: device.bit_and(A, 15),
}

MOST_CALLS = 150
MOST_FILES = 13


def passed(call: Callable[[], object]) -> Counter[tuple[str, str]]:
    """Bitlane's functions that are entered during ``call``: how often, by file and name."""
    seen: Counter[tuple[str, str]] = Counter()

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(PACKAGES):
            seen[code.co_filename, code.co_qualname] += 1

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return seen


@pytest.mark.parametrize("name", CALLS)
def test_a_call_passes_few_functions_and_files(name: str) -> None:
    """64 bytes on the simulator, from the call to the result, the simulator's Python included."""
    call = CALLS[name]
    with opened("sim") as device:
        call(device)  # is planned once
        seen = passed(lambda: call(device))
    files = {file for file, _ in seen}
    report = f"{seen.total()} calls of {len(seen)} functions in {len(files)} files: {seen}"
    print(report)
    assert seen.total() <= MOST_CALLS, report
    assert len(files) <= MOST_FILES, report
