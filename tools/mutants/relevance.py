"""Tables of the tests that cover a file of the circuit: quick tests, and tests of all around it.

The keys are prefixes of the file's path.
"""

from collections.abc import Mapping

CHOICES = ("configurations.py",)
"""Files that only choose which circuits are built: a changed choice is not a bug."""

AROUND_ENGINE = (
    "bus/banks.py",
    "bus/shared_sram.py",
    "bus/sram.py",
    "bus/storage.py",
    "link/",
    "serial/",
)
"""Files that only boards use: their memories, the link and the serial bridge."""

_REFUSED = "tests/rtl/test_refused_parameters.py"

_ENGINE = (
    _REFUSED,
    "tests/rtl/test_engine.py",
    "tests/rtl/test_engine_faults.py",
    "tests/rtl/test_engine_doorbell.py",
    "tests/rtl/test_contract.py",
    "tests/system/test_validate_on_simulator.py",
    "tests/system/test_faults_on_simulator.py",
    "tests/system/test_resealed_records.py",
    "tests/sim/test_bench.py",
)
_EXECUTOR_UNITS = ("link/executor.py", "link/memory_bounds.py", "link/words.py")
_FRAME_UNITS = ("serial/checksum.py", "serial/complaint_inserter.py", "serial/uart.py")
_BOARD = (
    _REFUSED,
    "tests/rtl/serial/test_serial_bridge.py",
    "tests/system/test_board_memories.py",
)

_NETWORK = (_REFUSED, "tests/rtl/ethernet", "tests/rtl/link")
_PACKETS = ("tests/rtl/ethernet/test_udp_stack.py", "tests/rtl/ethernet/test_network_bridge.py")
_QUERIES = "tests/rtl/ethernet/test_queries.py"
_MAC_UNITS = (
    "ethernet/gmii.py",
    "ethernet/mac_receiver.py",
    "ethernet/mac_transmitter.py",
    "ethernet/rgmii.py",
)
_CROSSINGS = (
    "board_addresses.py",
    "ethernet/line_status.py",
    "ethernet/packet_fifo.py",
)
_PACKET_UNITS = (
    "ethernet/byte_sum.py",
    "ethernet/packet_builder.py",
    "ethernet/packet_router.py",
    "link/packets.py",
    "ethernet/tables.py",
    "ethernet/udp_stack.py",
)
_BRIDGES = "tests/rtl/link/test_bridges.py"
_REQUESTS = ("tests/rtl/ethernet/test_network_bridge.py", _BRIDGES)
_REQUEST_UNITS = (
    "link/answer_packer.py",
    "link/request_reader.py",
    "link/session_timer.py",
)

_MEMORIES = ("bus/banks.py", "bus/shared_sram.py", "bus/sram.py", "bus/storage.py")
_PARTS = (
    "bit_unit/beat_pairs.py",
    "bit_unit/lane_tests.py",
    "bit_unit/logic.py",
    "bit_unit/op_decode.py",
    "bit_unit/popcount.py",
    "bit_unit/row_sum.py",
    "bit_unit/shift.py",
)

OWN: Mapping[str, tuple[str, ...]] = {
    "abi/": (
        "tests/sim/test_registers_page.py",
        "tests/host/driver/test_commands.py",
        "tests/rtl/control",
    ),
    "abi/rows.py": ("tests/host/test_validate.py",),
    "abi/line_status.py": ("tests/rtl/ethernet/test_crossings.py",),
    "abi/queries.py": (_QUERIES,),
    "abi/frames.py": ("tests/host/links/test_frames.py", "tests/rtl/link/test_executor.py"),
    "bit_unit/": ("tests/rtl/bit_unit/test_bit_unit.py",),
    **dict.fromkeys(_PARTS, ("tests/rtl/bit_unit/test_parts.py",)),
    "bus/sdram/": ("tests/rtl/bus/sdram",),
    "bus/axi4_lite.py": ("tests/rtl/bus/test_control.py",),
    "bus/whole_beats.py": ("tests/rtl/bus/test_axi4.py",),
    **dict.fromkeys(_MEMORIES, ("tests/rtl/bus/test_memories.py",)),
    "bus/wishbone.py": ("tests/rtl/bus/test_control.py",),
    "configuration": ("tests/rtl/test_core.py",),
    "control/": ("tests/rtl/control/test_sequencer.py",),
    "control/retirement.py": ("tests/rtl/control/test_refusals.py",),
    "control/ring.py": ("tests/rtl/control/test_refusals.py",),
    "control/read_activity.py": ("tests/rtl/control/test_registers.py",),
    "control/record_words.py": ("tests/rtl/control/test_refusals.py",),
    "datapath/realigner.py": ("tests/rtl/datapath/test_pairing.py",),
    "datapath/result_decoder.py": ("tests/rtl/datapath/test_repack.py",),
    "datapath/watchdog.py": ("tests/rtl/datapath/test_pairing.py",),
    "datapath/spans.py": ("tests/rtl/datapath/test_reader.py",),
    "datapath/datapath.py": ("tests/rtl/test_engine.py", "tests/rtl/test_engine_counts.py"),
    "datapath/placement.py": (
        "tests/rtl/datapath/test_writer.py",
        "tests/rtl/datapath/test_reader.py",
    ),
    "datapath/stages.py": ("tests/rtl/datapath/test_reader.py", "tests/rtl/test_engine.py"),
    **dict.fromkeys(_PACKET_UNITS, _PACKETS),
    "ethernet/frame_parser.py": (*_PACKETS, _QUERIES),
    **dict.fromkeys(_REQUEST_UNITS, _REQUESTS),
    **dict.fromkeys(_CROSSINGS, ("tests/rtl/ethernet/test_crossings.py",)),
    **dict.fromkeys(_MAC_UNITS, ("tests/rtl/ethernet/test_mac.py",)),
    "link/data_mover.py": _REQUESTS,
    "link/datagram_check.py": ("tests/rtl/link/test_data_mover.py",),
    "link/word_mover.py": (
        "tests/rtl/link/test_data_mover.py",
        "tests/rtl/serial/test_serial_bridge.py",
    ),
    "sdram_part.py": ("tests/rtl/bus/sdram",),
    "search/": ("tests/rtl/search",),
    "stream_configuration.py": ("tests/rtl/stream_unit",),
    "stream_unit/": ("tests/rtl/stream_unit",),
    "serial/": ("tests/rtl/serial/test_serial_bridge.py", _BRIDGES),
    **dict.fromkeys(_FRAME_UNITS, ("tests/rtl/serial/test_transmitter.py",)),
    **dict.fromkeys(_EXECUTOR_UNITS, ("tests/rtl/link/test_executor.py",)),
    "streams/": ("tests/rtl/streams/test_buffers.py",),
    "streams/fifo.py": (_REFUSED,),
    "ports/": ("tests/rtl/bus/test_memories.py", "tests/rtl/ports"),
    "primitives.py": (
        "tests/rtl/streams/test_buffers.py",
        "tests/rtl/bit_unit/test_bit_unit.py",
        "tests/rtl/serial/test_transmitter.py",
    ),
    "wishbone_core.py": (
        "tests/rtl/test_core.py",
        "tests/system/test_faults_on_simulator.py",
        "tests/sim/test_export.py",
    ),
    "addresses/": ("tests/rtl/addresses",),
    "command.py": ("tests/rtl/addresses",),
}
"""Quick tests by prefix, besides the namesake of a file. All matching prefixes count."""

WHOLE: Mapping[str, tuple[str, ...]] = {
    "": _ENGINE,
    **dict.fromkeys(AROUND_ENGINE, _BOARD),
    "board_addresses.py": _NETWORK,
    "ethernet/": _NETWORK,
    "link/": (*_BOARD, *_NETWORK),
    "ports/": (*_ENGINE, *_BOARD),
}
"""Further tests by prefix. Only the longest matching prefix counts."""


def has_netlist(file: str) -> bool:
    """Return whether ``file`` affects netlists only, and no other code reads it."""
    return not file.startswith(("abi/", "configuration"))
