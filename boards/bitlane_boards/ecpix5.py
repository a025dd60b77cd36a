"""LambdaConcept ECPIX-5 85F."""

from .board import Board, EthernetPort, Family, MemoryKind
from .full_circuit import WHY_FULL, full_on_block_ram

__all__ = ["BOARDS"]

BOARDS = (
    Board(
        name="ecpix5",
        title="LambdaConcept ECPIX-5 85F",
        family=Family.ECP5,
        platform="amaranth_boards.ecpix5:ECPIX585Platform",
        chip=bytes.fromhex("E2000000 81113043"),  # the command that compares IDCODE
        clock_hz=78_125_000,
        configuration=full_on_block_ram(18),
        memory=MemoryKind.BANKS,
        banks=2,
        # As in litex-boards: the PHY delays the clock that it sends, but not the other one.
        ethernet=EthernetPort(transmit_delay_ps=2000),
        busy_led="g",
        fault_led="r",
        loader=("-b", "ecpix5"),
        why={
            "clock": "the PLL makes it of 100 MHz beside 125 MHz: both divide 625 MHz",
            **WHY_FULL,
            "memory": "256 KiB of block RAM in two banks, so that reads and writes overlap",
            "link": "a gigabit: its only PHY",
        },
    ),
)
