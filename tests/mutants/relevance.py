"""Tables of the tests that cover a file of the circuit: quick tests, and tests of all around it.

The keys are prefixes of the file's path.
"""

from collections.abc import Mapping

CHOICES = ("configurations.py",)
"""Files that only choose which circuits are built: a changed choice is not a bug."""

AROUND_ENGINE = ("bus/banks.py", "bus/shared_sram.py", "bus/sram.py", "bus/storage.py", "serial/")
"""Files that only boards use: their memories and the serial bridge."""

_ENGINE = (
    "tests/rtl/test_engine.py",
    "tests/rtl/test_engine_faults.py",
    "tests/rtl/test_engine_refusals.py",
    "tests/rtl/test_engine_doorbell.py",
    "tests/rtl/test_contract.py",
    "tests/system/test_validate_on_simulator.py",
    "tests/system/test_faults_on_simulator.py",
    "tests/system/test_resealed_records.py",
    "tests/sim/test_bench.py",
)
_BOARD = (
    "tests/rtl/serial/test_serial_bridge.py",
    "tests/rtl/serial/test_serial_bridge_damage.py",
    "tests/system/test_board_memories.py",
)

OWN: Mapping[str, tuple[str, ...]] = {
    "abi/": (
        "tests/host/command_line/test_registers_page.py",
        "tests/host/driver/test_commands.py",
        "tests/rtl/control",
    ),
    "abi/frames.py": ("tests/host/links/test_frames.py", "tests/rtl/serial/test_executor.py"),
    "bit_unit/": ("tests/rtl/bit_unit/test_bit_unit.py",),
    "bit_unit/halves.py": ("tests/rtl/bit_unit/test_halves.py",),
    "bit_unit/logic.py": ("tests/rtl/bit_unit/test_logic.py",),
    "bit_unit/popcount.py": ("tests/rtl/bit_unit/test_popcount.py",),
    "bit_unit/shift.py": ("tests/rtl/bit_unit/test_shift.py",),
    "bus/axi4.py": ("tests/rtl/bus/test_axi4.py",),
    "bus/axi4_lite.py": ("tests/rtl/bus/test_axi4_lite.py",),
    "bus/banks.py": ("tests/rtl/bus/test_banks.py",),
    "bus/shared_sram.py": ("tests/rtl/bus/test_shared_sram.py",),
    "bus/sdram/": ("tests/rtl/bus/sdram",),
    "bus/sram.py": ("tests/rtl/bus/test_sram.py", "tests/rtl/bus/test_shared_sram.py"),
    "bus/storage.py": ("tests/rtl/bus/test_storage.py",),
    "configuration": ("tests/rtl/test_core.py",),
    "control/": ("tests/rtl/control/test_sequencer.py",),
    "control/control_word.py": ("tests/rtl/control/test_refusals.py",),
    "control/refusals.py": ("tests/rtl/control/test_refusals.py",),
    "control/registers.py": ("tests/rtl/control/test_registers.py",),
    "control/ring.py": ("tests/rtl/control/test_ring.py",),
    "core.py": ("tests/rtl/test_core.py",),
    "datapath/watchdog.py": ("tests/rtl/datapath/test_watchdog.py",),
    "datapath/joiner.py": ("tests/rtl/datapath/test_joiner.py",),
    "datapath/pairing.py": ("tests/rtl/datapath/test_pairing.py",),
    "datapath/reader.py": ("tests/rtl/datapath/test_reader.py",),
    "datapath/spans.py": ("tests/rtl/datapath/test_reader.py",),
    "datapath/repack.py": ("tests/rtl/datapath/test_repack.py",),
    "datapath/writer.py": ("tests/rtl/datapath/test_writer.py",),
    "search/": ("tests/rtl/search",),
    "serial/executor.py": ("tests/rtl/serial/test_executor.py",),
    "serial/checksum.py": ("tests/rtl/serial/test_checksum.py",),
    "serial/cobs.py": ("tests/rtl/serial/test_cobs.py",),
    "serial/receiver.py": ("tests/rtl/serial/test_receiver.py",),
    "serial/transmitter.py": ("tests/rtl/serial/test_transmitter.py",),
    "serial/uart.py": ("tests/rtl/serial/test_uart.py",),
    "serial/": ("tests/rtl/serial/test_serial_bridge.py", "tests/rtl/serial/test_efficiency.py"),
    "ports/memory_port.py": ("tests/rtl/ports/test_memory_port.py",),
    "ports/read_arbiter.py": ("tests/rtl/ports/test_read_arbiter.py",),
    "ports/": ("tests/rtl/bus/test_shared_sram.py",),
    "streams/queue.py": ("tests/rtl/streams/test_queue.py",),
    "streams/twin.py": ("tests/rtl/streams/test_twin.py",),
    "walk/bursts.py": ("tests/rtl/walk/test_bursts.py",),
    "walk/follower.py": ("tests/rtl/walk/test_follower.py",),
    "walk/loops.py": ("tests/rtl/walk/test_nest.py", "tests/rtl/walk/test_follower.py"),
    "walk/nest.py": ("tests/rtl/walk/test_nest.py",),
}
"""Quick tests by prefix. All matching prefixes count, the longest first."""

WHOLE: Mapping[str, tuple[str, ...]] = {
    "": _ENGINE,
    **dict.fromkeys(AROUND_ENGINE, _BOARD),
    "ports/": (*_ENGINE, *_BOARD),
}
"""Further tests by prefix. Only the longest matching prefix counts."""


def own_tests(file: str) -> list[str]:
    """Return the quick tests of ``file``."""
    return list(dict.fromkeys(test for tests in _matching(OWN, file) for test in tests))


def whole_tests(file: str) -> list[str]:
    """Return the tests to run for ``file`` after the quick tests."""
    return [*_matching(WHOLE, file)[0]]


def has_netlist(file: str) -> bool:
    """Return whether ``file`` affects netlists only, and no other code reads it."""
    return not file.startswith(("abi/", "configuration"))


def _matching(table: Mapping[str, tuple[str, ...]], file: str) -> list[tuple[str, ...]]:
    """Return the entries of all prefixes of ``file``, the longest prefix first."""
    prefixes = sorted((prefix for prefix in table if file.startswith(prefix)), key=len)
    return [table[prefix] for prefix in reversed(prefixes)]
