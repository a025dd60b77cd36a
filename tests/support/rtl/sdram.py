"""An SDRAM controller for tests, a chip for its pins, and a part for short runs."""

from dataclasses import replace
from typing import Any

from amaranth.hdl import C, Cat

from bitlane_boards.pins import SdramChip
from bitlane_rtl.bus import SdramMemory
from bitlane_rtl.bus.sdram import AS4C16M16SA_7, EM638325_6H, ChipCommand, SdramTiming
from support.rtl.streams import compiled

CLOCK_HZ = 100_000_000

PART = replace(AS4C16M16SA_7, pause=200)
"""One that starts soon."""


WITHOUT_MASKS = replace(EM638325_6H, pause=200)
"""One whose masks the FPGA does not drive, with words of 32 bits."""

SLOW = replace(PART, active=80, row_cycle=80, mode_cycle=100)
"""A part with a tRAS longer than an access, and a tMRD longer than the start of a burst."""


PARTS = {"fast": PART, "slow": SLOW, "without masks": WITHOUT_MASKS}


def memory(data_width: int, read_ports: int = 2, *, part: str = "fast") -> Any:
    """Return a compiled controller for one of `PARTS`."""
    return compiled(controller, data_width, read_ports, part)


def controller(data_width: int, read_ports: int, name: str) -> SdramMemory:
    """Return a controller for one of `PARTS`."""
    part = PARTS[name]
    timing = SdramTiming.of(part, CLOCK_HZ)
    return SdramMemory(32, data_width, part, timing, read_ports=read_ports)


class ChipAtPins:
    """A testbench for the background that connects ``chip`` to ``pins``.

    Fails as soon as the chip sees a rule broken. ``given`` becomes the commands, each with
    the cycle in which it is at the pins.
    """

    def __init__(self, pins: Any, chip: SdramChip) -> None:
        self._pins = pins
        self._chip = chip
        self.given: list[tuple[int, ChipCommand]] = []

    async def run(self, ctx: Any) -> None:
        pins, chip = self._pins, self._chip
        command = ~Cat(pins.ras_n, pins.cas_n, pins.we_n)
        mask = getattr(pins, "mask", C(0))
        watched = (command, pins.bank, pins.address, mask, pins.o, pins.oe)
        cycle = 0
        while True:
            ctx.set(pins.i, chip.level)
            _, _, *levels = await ctx.tick().sample(*watched)
            if levels[0]:
                self.given.append((cycle, ChipCommand(levels[0])))
            cycle += 1
            chip.edge(*levels)
            assert not chip.trouble, chip.trouble
