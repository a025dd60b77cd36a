"""Examples of a core in a system: examples/uio under Linux, and examples/soc without it.

The UIO device of the program in C is a file here.
"""

import ctypes
import mmap
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bitlane_rtl.abi import CONTROL_SIZE, Status, register
from bitlane_rtl.configuration import Configuration
from bitlane_sim.device.simulator import Simulator, choose_evaluator
from support.c_driver import CDriver, compiled
from support.docs.pages import ROOT
from support.processes import succeed

pytestmark = [pytest.mark.slow, pytest.mark.any_circuit, pytest.mark.any_face]

UIO, SOC = ROOT / "examples" / "uio", ROOT / "examples" / "soc"
BASE, SIZE, GUARD = 0x1F000000, 3 * 512, 64
CONFIGURATION = Configuration(memory_base=BASE, memory_bytes=1 << 13, slots=4)


class Device:
    """The files of a UIO device: the program's buffer is the memory of a simulated core."""

    def __init__(self, folder: Path, simulator: Simulator) -> None:
        self.path, self.maps = folder / "uio0", folder / "maps"
        (self.maps / "map1").mkdir(parents=True)
        (self.maps / "map1" / "addr").write_text(f"{BASE + GUARD:#x}\n")
        (self.maps / "map1" / "size").write_text(f"{SIZE:#x}\n")
        self.path.write_bytes(bytes(mmap.PAGESIZE + SIZE))
        with self.path.open("r+b") as file:
            self._file = mmap.mmap(file.fileno(), 0)
        self.simulator = simulator
        self.memory = simulator.memory
        self.wrong: int | None = None
        """A byte of the buffer that changes whenever a register is read."""
        self.window: int | None = None

    def read(self, address: int) -> int:
        value = self.simulator.access((), [self._offset(address)])[0]
        self._file[mmap.PAGESIZE :] = self.memory[GUARD:][:SIZE].tobytes()
        if self.wrong is not None:
            self._file[mmap.PAGESIZE + self.wrong] ^= 1
        return value

    def write(self, address: int, value: int) -> None:
        """Write a register; a doorbell starts commands on the bytes that the program has stored."""
        offset = self._offset(address)
        if offset == register("DOORBELL").offset:
            self.memory[GUARD:][:SIZE] = list(self._file[mmap.PAGESIZE :])
        self.simulator.access([(offset, value)], ())

    def _offset(self, address: int) -> int:
        """Return the offset in the window, whose first address is the first one that is read."""
        if self.window is None:
            self.window = address
        return (address - self.window) & 0xFFFFFFFF


@pytest.fixture
def device(tmp_path: Path) -> Iterator[Device]:
    simulator = Simulator(CONFIGURATION, choose_evaluator())
    simulator.memory[:] = 0xA5
    yield Device(tmp_path, simulator)
    simulator.close()


def run_xor(folder: Path, device: Device, name: str = "uio0") -> int:
    shutil.copy(UIO / "xor.c", folder)
    device.window = None
    program = CDriver(compiled(folder, "xor.c"), device.read, device.write)
    return program.call_alone(
        "xor_by_uio", str(device.path.with_name(name)).encode(), str(device.maps).encode()
    )


def test_the_result_is_right_and_no_other_byte_is_written(
    tmp_path: Path, device: Device, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run_xor(tmp_path, device) == 0
    ctypes.CDLL(None).fflush(None)
    printed = capfd.readouterr().out
    assert printed == "512 bytes are right\n"
    assert f"$ sudo ./xor\n{printed}" in (UIO / "README.md").read_text(encoding="utf-8")
    a, b, y = device.memory[GUARD:][:SIZE].reshape(3, -1)
    assert (y == a ^ b).all()
    assert a.any()
    assert b.any()
    assert (device.memory[:GUARD] == 0xA5).all()
    assert (device.memory[GUARD + SIZE :] == 0xA5).all()


def test_a_wrong_byte_an_error_and_a_wrong_device_are_noticed(
    tmp_path: Path, device: Device, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run_xor(tmp_path, device, "uio1") == 1
    assert "uio1: no UIO device with a buffer of 1536 bytes in map1" in capfd.readouterr().err
    device.wrong = 1024 + 77
    assert run_xor(tmp_path, device) == 1
    assert "uio0: byte 77 is wrong" in capfd.readouterr().err
    device.simulator.inject_error(BASE + GUARD + 700, read=True)
    assert run_xor(tmp_path, device) == 1
    (code,) = re.findall(r"uio0: result 3, FAULT (\w+) at 0x1f000280", capfd.readouterr().err)
    assert int(code, 16) & 0xFF == Status.READ_ERROR


def test_the_device_tree_has_the_window_and_the_buffer_of_the_page() -> None:
    tree = (UIO / "bitlane.dtsi").read_text(encoding="utf-8")
    page = (UIO / "README.md").read_text(encoding="utf-8")
    window, buffer = re.findall(r"<(0x\w+) (0x\w+)>[,;]", tree.partition("map0")[2])
    assert int(window[1], 16) == CONTROL_SIZE
    assert f"reg = <{buffer[0]} {buffer[1]}>;\n\t\t\tno-map;" in tree
    assert f"--memory-base {buffer[0]}" in page
    assert int(buffer[1], 16) == 1 << 20


# --- a system on chip ---------------------------------------------------------------------------


@pytest.mark.parametrize("bus", ["axi4", "wishbone"])
def test_the_processor_finds_every_byte_right(bus: str, tmp_path: Path) -> None:
    output = succeed(sys.executable, SOC / "simulate.py", "--bus", bus, tmp_path)
    page = (SOC / "README.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"^```text\n(.*?)^```$", page, flags=re.M | re.S)
    # The number of cycles depends on the compiler.
    printed, shown = (re.sub(r"\d+ cycles", "N cycles", x) for x in (output, shown))
    assert printed == shown


def test_the_page_lists_every_file_of_the_system() -> None:
    page = (SOC / "README.md").read_text(encoding="utf-8")
    table = "".join(line for line in page.splitlines() if line.startswith("| `"))
    files = {path.name for path in SOC.iterdir() if path.is_file()} - {"README.md"}
    assert set(re.findall(r"`(\w+\.\w+)`", table)) == files
