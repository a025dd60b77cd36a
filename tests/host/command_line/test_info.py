"""`bitlane info` shows the installation, and a device's registers whatever its state."""

import numpy as np
import pytest
from numpy.typing import NDArray

from bitlane.command_line import cli
from bitlane.command_line import info as info_command
from bitlane.links.link import BytesLike, Link
from bitlane_rtl import abi


def word(name: str, **fields: int) -> int:
    entry = abi.register(name)
    return sum(entry[field].insert(value) for field, value in fields.items())


def mask(*members: int) -> int:
    return sum(1 << member for member in members)


class Registers(Link):
    """A device made of register values; writing to it fails the test."""

    description = "registers in a test"

    def __init__(self, **values: int) -> None:
        self.values = {
            "IDENTITY": abi.IDENTITY,
            "VERSION": abi.ABI_VERSION,
            "CAPABILITIES": word(
                "CAPABILITIES",
                OPS=mask(*abi.Op),
                LANES=mask(*abi.Lane),
                MODES=mask(*abi.Mode),
                READ_PORTS=2,
                COUNTERS=1,
            ),
            "GEOMETRY": word(
                "GEOMETRY", DATA_BYTES_LOG2=3, LOOPS=4, SLOTS_LOG2=4, LENGTH_BITS=24, COUNT_BITS=24
            ),
            "MEMORY_BASE": 0x1000_0000,
            "MEMORY_LAST": 0x1FFF_FFFF,
            "BUSY_CYCLES": 1_234_567,
        } | values
        self.closed = False

    def read(self, address: int, size: int) -> NDArray[np.uint8]:
        names = {abi.CONTROL_BASE + entry.offset: entry.name for entry in abi.REGISTERS}
        values = [
            self.values.get(names[word], 0)
            for word in range(address, address + size, abi.WORD_BYTES)
        ]
        return np.array(values, "<u4").view(np.uint8)

    def write(self, address: int, data: BytesLike) -> None:
        pytest.fail(f"wrote to {address:#x}")

    def wait(self, timeout: float) -> bool:
        return False

    def close(self) -> None:
        self.closed = True


def info(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], link: Registers
) -> dict[str, str]:
    """Return the output of `bitlane info URL` for ``link``, by the name at the start of a line."""
    monkeypatch.setattr(info_command, "open_link", lambda url: link)
    assert cli.main(["info", "test:"]) == cli.DONE
    assert link.closed
    lines = capsys.readouterr().out.splitlines()
    return {line[:16].strip(): line[16:] for line in lines}


def test_installed(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["info"]) == cli.DONE
    text = capsys.readouterr().out
    assert f"ABI version {abi.ABI_VERSION}" in text
    assert np.__version__ in text
    assert "sim" in text


def test_a_whole_device(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = info(monkeypatch, capsys, Registers())
    assert lines["device"] == "registers in a test"
    assert lines["identity"] == f"BITL, ABI version {abi.ABI_VERSION}"
    assert lines["operations"].startswith("AND, OR, XOR, COPY")
    assert lines["lanes"] == "8, 16, 32, 64 bits"
    assert lines["search array"] == "none"
    assert lines["data path"] == "64 bits, 2 read ports"
    assert lines["command ring"] == "16 slots"
    assert lines["memory"] == "256 MiB, 0x10000000 to 0x1fffffff"
    assert lines["feature levels"] == "2_1, 3_0, 4_1"
    assert lines["state"] == "idle"
    assert lines["BUSY_CYCLES"] == "1,234,567"


def test_a_device_with_a_search_array(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    array = word("SEARCH", UNITS=8, ROW_BYTES_LOG2=6, QUERIES_LOG2=9, NEAREST_LOG2=4)
    lines = info(monkeypatch, capsys, Registers(SEARCH=array))
    expected = "8 units, rows of 512 bits, batches of 512 queries, 16 nearest"
    assert lines["search array"] == expected


@pytest.mark.parametrize(
    ("last", "size"),
    [(0x1000_1FFF, "8 KiB"), (0x1000_0007, "8 bytes"), (0x1018_03FF, "1,537 KiB")],
)
def test_a_small_memory_is_told_in_a_smaller_unit(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], last: int, size: str
) -> None:
    lines = info(monkeypatch, capsys, Registers(MEMORY_LAST=last))
    assert lines["memory"] == f"{size}, 0x10000000 to {last:#010x}"


@pytest.mark.parametrize(
    ("ops", "lanes", "levels"),
    [
        (set(abi.Op), set(abi.Lane) - {abi.Lane.BITS_64}, "2_1, 3_0"),
        (abi.SHIFT_OPS, set(abi.Lane), "2_1"),
        ({abi.Op.NOT}, set(abi.Lane), "none whole"),
    ],
)
def test_levels_that_a_smaller_circuit_has(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    ops: set[abi.Op],
    lanes: set[abi.Lane],
    levels: str,
) -> None:
    capabilities = word("CAPABILITIES", OPS=mask(*ops), LANES=mask(*lanes), MODES=1, READ_PORTS=1)
    lines = info(monkeypatch, capsys, Registers(CAPABILITIES=capabilities))
    assert lines["feature levels"] == levels
    assert "BUSY_CYCLES" not in lines  # built without counters


def test_a_device_that_has_stopped(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    link = Registers(
        STATUS=word("STATUS", BUSY=1, FAULT=1),
        FAULT=word("FAULT", CODE=abi.Status.READ_ERROR, PORT=abi.Port.READ_B, INDEX=7),
        FAULT_ADDRESS=0x1000_0040,
    )
    lines = info(monkeypatch, capsys, link)
    assert lines["state"] == "stopped by READ_ERROR at command 7, port READ_B, address 0x10000040"


def test_something_else_at_the_other_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    link = Registers(IDENTITY=0xFFFF_FFFF)
    monkeypatch.setattr(info_command, "open_link", lambda url: link)
    assert cli.main(["info", "test:"]) == cli.UNUSABLE
    assert link.closed
    assert "IDENTITY is 0xffffffff; expected 0x4249544c" in capsys.readouterr().err


def test_an_unknown_scheme(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["info", "nothing:at/all"]) == cli.UNUSABLE
    error = capsys.readouterr().err
    assert error.startswith("bitlane: device 'nothing:at/all'")
    assert error.count("\n") == 1
