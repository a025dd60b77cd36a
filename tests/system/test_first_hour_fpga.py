"""docs/first_hour_fpga.md: its commands run, its C drives a core, and its table lists the files."""

import ctypes
import os
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from bitlane.command_line import DONE, main
from bitlane_rtl.abi import Status
from bitlane_rtl.configuration import Configuration
from bitlane_sim.device.simulator import Simulator, choose_evaluator
from support.c_driver import CDriver, compiled
from support.cocotb.simulators import icarus, verilator
from support.processes import run

pytestmark = [pytest.mark.slow, pytest.mark.any_circuit]

PAGE = Path(__file__).parents[2] / "docs" / "first_hour_fpga.md"
CONFIGURATION = Configuration(memory_bytes=1 << 13, slots=4)


def blocks(language: str) -> Sequence[str]:
    text = PAGE.read_text(encoding="utf-8")
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
    opened = re.findall(r"^```(\w+)$", PAGE.read_text(encoding="utf-8"), flags=re.M)
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
        r"^\| File .*\n((?:\|.*\n)+)", PAGE.read_text(encoding="utf-8"), flags=re.M
    )
    listed = re.findall(r"^\| (`[^|]+) \|", table, flags=re.M)
    named = {name for cell in listed for name in re.findall(r"`([^`]+)`", cell)}
    assert {path.name for path in (tmp_path / "hardware").iterdir()} == named


@pytest.fixture
def simulator() -> Iterator[Simulator]:
    simulator = Simulator(CONFIGURATION, choose_evaluator())
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
