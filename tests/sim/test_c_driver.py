"""The C driver compiles without a library, writes the same as the Python driver, and runs a core.

Here its core is the compiled simulator, in `tests/cocotb` the exported Verilog.
"""

import random
import shlex
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bitlane.driver import Command, Walk, encode
from bitlane_rtl import abi
from bitlane_rtl.abi import Lane, Mode, Op, Port, Status, register
from bitlane_rtl.configuration import Configuration
from bitlane_sim.device import Simulator, choose_evaluator
from bitlane_sim.system import Hang
from support.c_driver import FLAGS, CDriver, command_of, compiled, random_command, sources
from support.commands import expected, random_commands
from support.oracle import computed
from support.processes import CPP, C, run, succeed
from support.seeds import seeds, slow

pytestmark = pytest.mark.any_face

CONFIGURATION = Configuration(memory_bytes=1 << 13, slots=4)
LONG = 10_000
OFFSET = {
    name: register(name).offset
    for name in ("IDENTITY", "VERSION", "GEOMETRY", "DOORBELL", "RETIRED", "FAULT", "INTERRUPT")
}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("driver"))


class Idle:
    """A core of two slots whose registers, in ``registers``, the test sets, and its driver."""

    def __init__(self, library: Path) -> None:
        self.registers = defaultdict(int, {OFFSET["IDENTITY"]: abi.IDENTITY})
        self.registers[OFFSET["VERSION"]] = abi.ABI_VERSION
        self.registers[OFFSET["GEOMETRY"]] = register("GEOMETRY")["SLOTS_LOG2"].insert(1)
        self.looks = 0
        self.writes: list[tuple[int, int]] = []
        self.driver = CDriver(library, self._read, lambda *write: self.writes.append(write))

    def _read(self, offset: int) -> int:
        self.looks += offset == OFFSET["RETIRED"]
        return self.registers[offset]


@pytest.fixture
def core(library: Path) -> Idle:
    core = Idle(library)
    assert core.driver.open() == "DONE"
    return core


# --- compiling --------------------------------------------------------------------------------


@pytest.mark.parametrize("level", ["-O0", "-Os", "-O2", "-O3"])
def test_it_needs_nothing_but_a_compiler(level: str, tmp_path: Path) -> None:
    sources(tmp_path)
    words = shlex.split(f"{level} -nostdlib -shared -fPIC -Wl,-z,defs bitlane.c -o driver.so")
    ran = run(*C, *FLAGS, *words, cwd=tmp_path)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_its_header_is_one_for_c_plus_plus_too(tmp_path: Path) -> None:
    sources(tmp_path)
    (tmp_path / "main.cc").write_text(
        '#include "bitlane.h"\n#include "core.h"\n'
        "int main() { bitlane core; return bitlane_open(&core, 0) == BITLANE_NO_CORE; }\n"
    )
    succeed(*C, *shlex.split("-std=c99 -c bitlane.c"), cwd=tmp_path)
    succeed(*CPP, *shlex.split("-Wall -Wextra -Werror main.cc bitlane.o"), cwd=tmp_path)


def test_a_window_in_memory_takes_no_macros(tmp_path: Path) -> None:
    """Compile and run a program with plain memory in place of the core."""
    sources(tmp_path)
    (tmp_path / "main.c").write_text(
        '#include "bitlane.h"\n'
        "static uint32_t window[BITLANE_CONTROL_SIZE / BITLANE_WORD_BYTES];\n"
        "int main(void) {\n"
        "  struct bitlane core;\n"
        "  if (bitlane_open(&core, (uintptr_t)window) != BITLANE_NO_CORE) return 1;\n"
        "  window[BITLANE_REG_IDENTITY / 4] = BITLANE_IDENTITY;\n"
        "  window[BITLANE_REG_VERSION / 4] = BITLANE_ABI_VERSION;\n"
        "  if (bitlane_open(&core, (uintptr_t)window) != BITLANE_DONE) return 2;\n"
        "  window[BITLANE_REG_DOORBELL / 4] = 1;\n"
        "  if (bitlane_clear(&core, 5) != BITLANE_LATE) return 3;\n"
        "  return window[BITLANE_REG_CLEAR / 4] == 1 ? 0 : 4;\n"
        "}\n"
    )
    words = shlex.split("-O2 bitlane.c main.c -o program")
    succeed(*C, *FLAGS, *words, cwd=tmp_path)
    assert run("./program", cwd=tmp_path).returncode == 0


# --- records ----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", seeds(1, 3))
def test_records_are_pythons_byte_for_byte(seed: int, core: Idle) -> None:
    generator = random.Random(seed)
    seen = set()
    for _ in range(1000):
        command, interrupt = random_command(generator), generator.random() < 0.5
        ours = core.driver.encode(command, interrupt=interrupt)
        assert ours == encode(command, interrupt=interrupt).tobytes(), f"seed {seed}: {command}"
        walks = [command.a, *([command.b] if command.b else []), command.y]
        seen |= {command.op, *((Lane, x) for x in (command.lane, command.out_lane))}
        seen |= {(Mode, walk.mode) for walk in walks} | {("loops", command.loops)}
    assert len(seen) == len(Op) + len(Lane) + len(Mode) + abi.MAX_LOOPS


def test_a_record_goes_into_its_slot_and_then_the_doorbell_rings(core: Idle) -> None:
    driver = core.driver
    # Not from 0: the count wraps at 2**16.
    core.registers[OFFSET["DOORBELL"]] = core.registers[OFFSET["RETIRED"]] = 0xFFFF
    assert driver.open() == "DONE"
    generator = random.Random(7)
    for number in (0xFFFF, 0):
        command = random_command(generator)
        core.writes.clear()
        assert driver.submit(command, interrupt=True) == "DONE"
        words = encode(command, interrupt=True).tolist()
        slot = abi.RING_OFFSET + number % 2 * abi.RECORD_BYTES
        expected_writes = [(slot + abi.WORD_BYTES * k, word) for k, word in enumerate(words)]
        assert core.writes == [*expected_writes, (OFFSET["DOORBELL"], (number + 1) & 0xFFFF)]
    core.writes.clear()
    assert driver.submit(random_command(generator)) == "BUSY"
    assert core.writes == []
    core.registers[OFFSET["RETIRED"]] = 0
    assert driver.look() == "BUSY"
    assert driver.submit(random_command(generator)) == "DONE"
    core.registers[OFFSET["RETIRED"]] = 2
    assert driver.wait(0) == "DONE"


@pytest.mark.parametrize("loops", [0, abi.MAX_LOOPS + 1])
def test_more_loops_than_a_record_has_are_refused(loops: int, core: Idle) -> None:
    walk = Walk(0, 63)
    command = Command(Op.NOT, Lane.BITS_8, Lane.BITS_8, 64, walk, None, walk)
    assert core.driver.submit(command, loops=loops) == "BAD_COMMAND"
    assert core.writes == []


# --- waiting ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["VERSION", "IDENTITY"])
def test_a_core_that_is_not_there_or_another_is_told(name: str, core: Idle) -> None:
    core.registers[OFFSET[name]] ^= 1
    assert core.driver.open() == "NO_CORE"


@pytest.mark.parametrize("ticks", [0, 1, 10])
def test_a_deadline_counts_looks_where_there_is_no_clock(ticks: int, core: Idle) -> None:
    assert core.driver.submit(random_command(random.Random(1))) == "DONE"
    core.looks = 0
    assert core.driver.wait(ticks) == "LATE"
    assert core.looks == ticks + 1


def test_an_interrupt_that_comes_while_one_is_acknowledged_is_not_lost(core: Idle) -> None:
    driver = core.driver
    bits = register("INTERRUPT")
    enable, pending = bits["ENABLE"].insert(1), bits["PENDING"].insert(1)
    driver.interrupt(True)
    assert core.writes.pop() == (OFFSET["INTERRUPT"], enable)
    # Where PENDING was 0 when it was read, a 1 would take back one that has come since.
    for read in (enable, enable | pending):
        core.registers[OFFSET["INTERRUPT"]] = read
        assert driver.acknowledge() == (read != enable)
        assert core.writes.pop() == (OFFSET["INTERRUPT"], read)
    driver.interrupt(False)
    assert core.writes.pop() == (OFFSET["INTERRUPT"], 0)


# --- on the simulator -------------------------------------------------------------------------


@pytest.fixture(params=[32, slow(64)])
def simulator(request: pytest.FixtureRequest) -> Iterator[Simulator]:
    configuration = replace(CONFIGURATION, data_width=request.param)
    with closing(Simulator(configuration, choose_evaluator())) as simulator:
        yield simulator


@pytest.fixture
def driver(simulator: Simulator, library: Path) -> CDriver:
    driver = CDriver(
        library,
        lambda offset: simulator.access((), [offset])[0],
        lambda offset, value: simulator.access([(offset, value)], ()) and None,
    )
    assert driver.open() == "DONE"
    return driver


def finish(driver: CDriver, op: Op, size: int, places: Sequence[int]) -> str:
    """Submit a command, and return how the wait for it ends."""
    assert driver.submit_dense(op, size, places) == "DONE"
    return driver.wait(LONG)


@pytest.mark.parametrize("seed", seeds(1, 4))
def test_random_commands_do_what_the_model_says(
    seed: int, driver: CDriver, simulator: Simulator
) -> None:
    """More commands than slots: the driver waits while the ring is full."""
    generator = random.Random(seed)
    simulator.memory[:] = np.frombuffer(generator.randbytes(simulator.memory.size), np.uint8)
    tasks = random_commands(generator, simulator.configuration, 3 * CONFIGURATION.slots)
    model = expected(tasks, simulator.memory)
    assert model.fault is None
    for task in tasks:
        while (result := driver.submit(command_of(task))) == "BUSY":
            simulator.step(10)
        assert result == "DONE"
    assert driver.wait(LONG) == "DONE"
    wrong = np.flatnonzero(simulator.memory != model.memory)
    assert not wrong.size, f"seed {seed}: {wrong.size} bytes, first {wrong[:1]}: {tasks}"


@pytest.mark.parametrize("op", sorted(abi.BIT_OPS - {Op.SHIFT_LEFT, Op.SHIFT_RIGHT}))
def test_the_short_way_to_a_command_of_one_run(
    op: Op, driver: CDriver, simulator: Simulator
) -> None:
    generator = np.random.default_rng(int(op))
    simulator.memory[:] = generator.integers(0, 256, simulator.memory.size, np.uint8)
    before = simulator.memory.copy()
    assert finish(driver, op, 100, (0x1001, 0x203, 0x705)) == "DONE"
    pairs = zip(before[0x203:][:100].tolist(), before[0x705:][:100].tolist(), strict=True)
    before[0x1001:][:100] = [computed(op, 8, a, b) for a, b in pairs]
    assert np.array_equal(simulator.memory, before)


def test_a_fault_is_told_and_a_cleared_core_goes_on(driver: CDriver, simulator: Simulator) -> None:
    simulator.inject_error(0x200, read=True)
    assert driver.submit_dense(Op.XOR, 64, (0x1000, 0x100, 0x400)) == "DONE"
    assert finish(driver, Op.XOR, 64, (0x1100, 0x200, 0x400)) == "STOPPED"
    fault = register("FAULT")
    assert fault["CODE"].extract(driver.core.fault) == Status.READ_ERROR
    assert fault["PORT"].extract(driver.core.fault) == Port.READ_A
    assert fault["INDEX"].extract(driver.core.fault) == driver.core.retired == 1
    assert driver.core.fault_address == 0x200
    simulator.inject_error()
    assert driver.look() == "STOPPED"
    assert driver.clear(LONG) == "DONE"
    assert (driver.core.submitted, driver.core.retired, driver.core.fault) == (0, 0, 0)
    simulator.memory[:0x800] = 0xA5
    simulator.memory[0x400:0x440] = 0x0F
    assert finish(driver, Op.XOR, 64, (0x1100, 0x200, 0x400)) == "DONE"
    assert (simulator.memory[0x1100:0x1140] == 0xAA).all()


def test_a_doorbell_that_is_refused_is_told(driver: CDriver, simulator: Simulator) -> None:
    """Set the driver's counts as if another program had submitted commands to the same core."""
    driver.core.submitted = CONFIGURATION.slots
    driver.core.retired = CONFIGURATION.slots
    before = simulator.memory.copy()
    assert finish(driver, Op.NOT, 64, (0x1000, 0x100, 0)) == "STOPPED"
    assert register("FAULT")["CODE"].extract(driver.core.fault) == Status.BAD_DOORBELL
    assert np.array_equal(simulator.memory, before)
    assert driver.clear(LONG) == "DONE"
    assert finish(driver, Op.NOT, 64, (0x1000, 0x100, 0)) == "DONE"
    assert np.array_equal(simulator.memory[0x1000:0x1040], ~before[0x100:0x140])


def test_a_memory_that_never_answers_is_late(driver: CDriver, simulator: Simulator) -> None:
    simulator.inject_hang(read=Hang.NO_ANSWER)
    assert driver.submit_dense(Op.NOT, 64, (0x1000, 0x100, 0)) == "DONE"
    assert driver.wait(50) == "LATE"
    assert driver.clear(50) == "LATE"
    simulator.inject_hang()
    assert driver.clear(LONG) == "DONE"
    simulator.memory[0x100:0x140] = 0xF0
    assert finish(driver, Op.NOT, 64, (0x1000, 0x100, 0)) == "DONE"
    assert (simulator.memory[0x1000:0x1040] == 0x0F).all()


def test_the_interrupt_line_rises_and_is_taken_back(driver: CDriver, simulator: Simulator) -> None:
    driver.interrupt(True)
    assert not driver.acknowledge()
    assert driver.submit_dense(Op.NOT, 64, (0x1000, 0x100, 0)) == "DONE"
    assert simulator.wait(10.0)
    assert driver.look() == "DONE"
    assert driver.acknowledge()
    simulator.step()
    assert not simulator.evaluator.get("irq")
    assert not driver.acknowledge()
