"""Examples of a core in a system: docs/first_hour_fpga.md, examples/uio under Linux, examples/soc.

The UIO device of the program in C is a file here. Of the page, all commands run, the C drives a
core, and the table lists the files.
"""

import ctypes
import mmap
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from bitlane.command_line import DONE, main
from bitlane_rtl.abi import CONTROL_SIZE, Status, register
from bitlane_rtl.configuration import Configuration
from bitlane_sim.device import Simulator, choose_evaluator
from support.c_driver import CDriver, compiled
from support.cocotb.simulators import icarus, verilator
from support.docs.pages import ROOT
from support.processes import run, succeed

pytestmark = [pytest.mark.slow, pytest.mark.any_circuit]

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


FIRST_HOUR = Path(__file__).parents[2] / "docs" / "first_hour_fpga.md"
CORE = Configuration(memory_bytes=1 << 13, slots=4)


def blocks(language: str) -> Sequence[str]:
    text = FIRST_HOUR.read_text(encoding="utf-8")
    found: list[str] = re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.M | re.S)
    return found


def write_programs(folder: Path) -> list[str]:
    """Put the page's C into ``folder``, under the names in the first lines; those names."""
    names = []
    for block in blocks("c"):
        (name,) = re.findall(r"^/\* (\w+\.[ch]) \*/$", block.splitlines()[0])
        (folder / name).write_text(block)
        names.append(name)
    return names


def test_every_block_is_of_a_language_that_is_run() -> None:
    """`tests/docs/test_blocks.py` runs the rest."""
    opened = re.findall(r"^```(\w+)$", FIRST_HOUR.read_text(encoding="utf-8"), flags=re.M)
    assert set(opened) == {"c", "console", "python", "sh", "verilog"}
    assert len(blocks("sh")) == 3
    assert len(blocks("c")) == 3


def run_testbench(file: Path, text: str) -> str:
    """Run ``text`` as the testbench ``file`` by the command in it; return what it prints."""
    file.write_text(text)
    (words,) = re.findall(r"^// (iverilog .*)$", text, flags=re.M)
    ran = run("sh", "-c", words, cwd=file.parent, **icarus().environment)
    assert (ran.returncode, ran.stderr) == (0, "")
    return ran.stdout.splitlines()[0]


@pytest.mark.parametrize("bus", ["axi4", "wishbone"])
def test_the_testbench_of_a_folder_finds_another_identity(bus: str, tmp_path: Path) -> None:
    command = next(block for block in blocks("sh") if block.startswith("bitlane export"))
    words = [*shlex.split(command)[1:-1], str(tmp_path / "hardware")]
    assert main([*words, *("--bus", bus) * (bus != "axi4")]) == DONE
    file = tmp_path / "hardware" / "core_tb.v"
    text = file.read_text(encoding="utf-8")
    if bus == "axi4":
        assert [text] == blocks("verilog")
    assert run_testbench(file, text) == "PASS"
    assert run_testbench(file, text.replace("32'h4249", "32'h4248")) == "FAIL: 0000 is 4249544c"


def test_its_commands_run_one_after_the_other(tmp_path: Path) -> None:
    write_programs(tmp_path)
    tool = verilator()
    path = [str(Path(sys.executable).parent), tool.environment["PATH"]]
    environment = tool.environment | {
        "PATH": os.pathsep.join(path),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }
    for block in blocks("sh"):
        ran = run("sh", "-e", "-c", block, cwd=tmp_path, **environment)
        assert ran.returncode == 0, f"{block}\n{ran.stdout}{ran.stderr}"
        assert "warning" not in (ran.stdout + ran.stderr).lower(), ran.stderr
    for name in ("pages/index.html", "core_peakrdl.h", "bitlane.o", "xor.o", "handler.o"):
        assert (tmp_path / name).is_file(), name
    (table,) = re.findall(
        r"^\| File .*\n((?:\|.*\n)+)", FIRST_HOUR.read_text(encoding="utf-8"), flags=re.M
    )
    listed = re.findall(r"^\| (`[^|]+) \|", table, flags=re.M)
    named = {name for cell in listed for name in re.findall(r"`([^`]+)`", cell)}
    assert {path.name for path in (tmp_path / "hardware").iterdir()} == named


@pytest.fixture
def simulator() -> Iterator[Simulator]:
    simulator = Simulator(CORE, choose_evaluator())
    yield simulator
    simulator.close()


def test_its_c_drives_a_core(tmp_path: Path, simulator: Simulator) -> None:
    programs = [name for name in write_programs(tmp_path) if name.endswith(".c")]
    (tmp_path / "platform.h").unlink()
    (tmp_path / "core.c").write_text('#include "bitlane.h"\nstruct bitlane core;\n')
    library = compiled(tmp_path, "core.c", *programs)
    driver = CDriver(
        library,
        lambda offset: simulator.access((), [offset])[0],
        lambda offset, value: simulator.access([(offset, value)], ()) and None,
    )
    driver.core = type(driver.core).in_dll(ctypes.CDLL(str(library)), "core")
    assert driver.open() == "DONE"
    driver.interrupt(True)
    finished = ctypes.c_int.in_dll(ctypes.CDLL(str(library)), "finished")

    def xor_buffers() -> int:
        return int(driver.call("xor_buffers", 0x400, 0x101, 0x203, 200))

    simulator.memory[:0x400] = [x % 251 for x in range(0x400)]
    result = simulator.memory[0x101:][:200] ^ simulator.memory[0x203:][:200]
    assert xor_buffers() == Status.OK
    assert (simulator.memory[0x400:][:200] == result).all()
    assert simulator.evaluator.get("irq")
    assert finished.value == 0
    driver.call("handle_interrupt")
    assert finished.value == 1
    simulator.step()
    assert not simulator.evaluator.get("irq")

    simulator.inject_error(0x220, read=True)
    assert xor_buffers() == Status.READ_ERROR
    simulator.inject_error()
    assert xor_buffers() == Status.OK
