"""LambdaConcept ECPIX-5 85F."""

from dataclasses import replace

from bitlane_rtl.configurations import full

from .board import Board, EthernetPort, Family, MemoryKind

__all__ = ["BOARDS"]

BOARDS = (
    Board(
        name="ecpix5",
        title="LambdaConcept ECPIX-5 85F",
        family=Family.ECP5,
        platform="amaranth_boards.ecpix5:ECPIX585Platform",
        chip=bytes.fromhex("E2000000 81113043"),  # the command that compares IDCODE
        clock_hz=78_125_000,
        configuration=replace(
            full(),
            address_width=18,
            memory_bytes=1 << 18,
            length_bits=19,
            count_bits=18,
        ),
        memory=MemoryKind.BANKS,
        banks=2,
        # As in litex-boards: the PHY delays the clock that it sends, but not the other one.
        ethernet=EthernetPort(transmit_delay_ps=2000),
        busy_led="g",
        fault_led="r",
        loader=("-b", "ecpix5"),
        why={
            "clock": "the PLL makes it of 100 MHz beside 125 MHz: both divide 625 MHz",
            "data width": "64 bits: the widest lane in one beat",
            "operators": "all of them, with all runs and loops: there is room",
            "memory": "256 KiB of block RAM in two banks, so that reads and writes overlap",
            "link": "a gigabit: its only PHY",
        },
    ),
)
