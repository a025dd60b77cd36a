"""docs/registers.md: nothing in it but what `abi` says, and all of that."""

import re
import sys
from pathlib import Path

import numpy as np

from bitlane_rtl import abi
from bitlane_rtl.configuration import Configuration
from bitlane_sim.export.registers_page import render
from bitlane_sim.numpy_device import Interpreter
from support.processes import succeed

BAD = abi.Status.BAD_DOORBELL.name
PAGE = Path(__file__).parents[2] / "docs" / "registers.md"


def test_the_program_prints_the_committed_page() -> None:
    assert PAGE.read_text(encoding="utf-8") == render(), "run make registers"
    assert succeed(sys.executable, "-m", "bitlane_sim.export.registers_page") == render()


def test_a_row_of_several_words_names_them_in_order() -> None:
    names = [f"`{name}`" for name in abi.RECORD]
    found = re.findall(r"^\| (\d+) to (\d+) \| (.+?) \|", render(), re.MULTILINE)
    assert [cell for *_, cell in found] == [
        ", ".join(names[int(first) : int(last) + 1]) for first, last, _ in found
    ]
    assert len(found) == abi.MAX_LOOPS - 2


def test_every_name_code_rule_and_reset_value_is_told() -> None:
    assert "**" not in render(), "no sign of Markdown by accident"
    text = " ".join(render().replace("^", "**").split())
    names = [entry.name for entry in abi.REGISTERS]
    names += [bits.name for entry in abi.REGISTERS for bits in entry.bits if bits.summary]
    names += [*abi.RECORD, *(bits.name for bits in abi.RECORD["CONTROL"].bits)]
    assert [name for name in names if f"`{name}`" not in text] == []
    codes = [code for codes in (abi.Op, abi.Lane, abi.Mode, abi.Status, abi.Port) for code in codes]
    for code in codes:
        row, item = f"| `{code.name}` | {code.summary} |", f"- `{code.name}`: {code.summary}"
        assert row in text or item in text
    assert all(f"### {rule.title} " in text for rule in abi.RULES)
    assert "| `TIMEOUT` | read, write | `0x100000` |" in text


def test_the_rule_on_failures_names_every_status_that_stops_the_engine() -> None:
    (rule,) = (rule for rule in abi.RULES if rule.title == "When a command fails")
    refusals = range(abi.Status.BAD_SEAL, abi.Status.PAST_MEMORY + 1)
    assert "BAD_SEAL to PAST_MEMORY" in rule.text
    stops = [code.name for code in abi.Status if code is not abi.Status.OK and code not in refusals]
    assert [name for name in stops if name not in rule.text] == []


def test_the_steps_of_a_driver_name_the_slots() -> None:
    assert "128 (i mod 2^GEOMETRY.SLOTS_LOG2)" in " ".join(render().split())
    steps = " ".join(render(slots=8).split())
    assert "128 (i mod 8)" in steps
    assert f"at most 8; one that exceeds it by more stops the core with {BAD}" in steps


def test_the_example_computes_what_its_story_says() -> None:
    """The words as they are printed, executed by the device `numpy`."""
    rows = re.findall(r"^\| (\d+) \| `(\w+)` \| `(0x[0-9a-f]{8})` \|", render(), re.MULTILINE)
    words = [int(value, 16) for _, _, value in rows]
    assert [(int(number), name) for number, name, _ in rows] == list(
        enumerate(list(abi.RECORD)[: len(words)])
    )
    circuit = Interpreter(Configuration(memory_bytes=1 << 14))
    circuit.memory[:] = np.random.default_rng(1).integers(0, 256, circuit.memory.size, np.uint8)
    before = circuit.memory.copy()
    slot = np.array([*words, *[0] * (abi.RECORD_WORDS - len(words))], "<u4")
    assert circuit.execute(slot.tobytes()) is None
    a = np.array([[before[0x1002 + 64 * row + 4 * i :][:2] for i in range(10)] for row in range(3)])
    b = before[0x2000 : 0x2000 + 20].reshape(10, 2)
    before[0x3000 : 0x3000 + 60] = (a ^ b).reshape(-1)
    assert np.array_equal(circuit.memory, before)


def test_every_table_row_has_its_columns() -> None:
    columns = None
    for line in render().splitlines():
        cells = line.count("|")
        if not cells:
            columns = None
            continue
        columns = columns or cells
        assert cells == columns, line
