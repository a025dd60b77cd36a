"""iCE40-HX8K-B-EVN: iCE40 HX8K, whose 32 block RAMs are all the memory there is."""

from dataclasses import replace

from bitlane_rtl.configurations import small

from .board import Board, Family, MemoryKind

__all__ = ["BOARDS"]

BOARDS = (
    Board(
        name="hx8k",
        title="Lattice iCE40-HX8K-B-EVN",
        family=Family.ICE40,
        platform="amaranth_boards.ice40_hx8k_b_evn:ICE40HX8KBEVNPlatform",
        chip=b"\x62\x03\x67",  # a row of a bank is 872 bits
        clock_hz=72_000_000,
        configuration=replace(
            small(block_ram=True),
            address_width=16,
            memory_bytes=1 << 13,
            length_bits=14,
            count_bits=13,
        ),
        memory=MemoryKind.BANKS,
        banks=1,
        busy_led=0,
        fault_led=1,
        baud=8_000_000,
        usb_ids=((0x0403, 0x6010),),
        usb_interface=1,
        loader=("-b", "ice40_generic"),
        why={
            "clock": "9 clocks a bit of the link; placement reaches about 85 MHz",
            "data width": "32 bits: a 64-bit engine takes more than the 7,680 cells",
            "operators": "all but the shifts, which would not fit; two loops for the same reason",
            "memory": "8 KiB: half of the 32 block RAMs, one bank; ring and queues take the rest",
            "link": "8 Mbaud: the FT2232H makes 12 too, but 8 clocks a bit would be 96 MHz",
        },
    ),
)
