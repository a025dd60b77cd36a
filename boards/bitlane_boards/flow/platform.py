"""Connects a `Top` to a board's pins: clocks, reset, link and LEDs.

The pins come from amaranth-boards; it requests only the pins that it uses.
"""

from importlib import import_module
from typing import Any

from amaranth.hdl import (
    ClockDomain,
    ClockSignal,
    Const,
    Elaboratable,
    Module,
    ResetSignal,
    Signal,
    Value,
)
from amaranth.lib import io, wiring
from amaranth.lib.cdc import FFSynchronizer

from bitlane.errors import BitlaneError
from bitlane.installation import how_to_install

from ..board import Board, Family
from .pll import ECP5, GW1N_9C, ICE40, ecp5_pll, ecp5_pll_pair, gowin_pll, ice40_pll, settings
from .rgmii import LINE_HZ, RgmiiPort
from .top import Top

__all__ = ["BoardTop", "expect_clock", "leds", "load_platform", "sdram_pins"]

_PLLS = {
    Family.ICE40: (ICE40, ice40_pll),
    Family.ECP5: (ECP5, ecp5_pll),
    Family.GOWIN: (GW1N_9C, gowin_pll),
}
"""The limits of each family's PLL, and the function that instantiates it."""

_SDRAM_PINS = {
    "ras": "ras_n",
    "cas": "cas_n",
    "we": "we_n",
    "ba": "bank",
    "a": "address",
    "dqm": "mask",
}

RESET_SECONDS = 15e-6
"""Length of the reset. iCE40's block RAM reads zeros for about 3 us after configuration
(icestorm#76); this is five times as long. The other families do not need it."""


def load_platform(board: Board) -> Any:
    """Return amaranth-boards' description of ``board``, which can be built only once.

    Raises ``BitlaneError`` if amaranth-boards is not installed.
    """
    module, _, name = board.platform.partition(":")
    try:
        platform = getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        raise BitlaneError(
            f"{board.name}: needs the Python package {error.name}, which is not installed:"
            f" {how_to_install('boards')} brings it"
        ) from error
    return platform()


def expect_clock(board: Board, platform: Any) -> None:
    """Raise ``PllError`` if neither the oscillator nor a PLL makes the board's clock."""
    in_hz = int(platform.default_clk_frequency)
    if board.ethernet:
        settings(ECP5, in_hz, LINE_HZ, board.clock_hz)
    elif in_hz != board.clock_hz:
        settings(_PLLS[board.family][0], in_hz, board.clock_hz)


def leds(board: Board, platform: Any) -> dict[str, Any]:
    """Return the ports of the board's LEDs by the names of `Top`'s ports."""
    chosen: dict[str, int | str] = {"busy": board.busy_led}
    if board.fault_led is not None:
        chosen["fault"] = board.fault_led
    if any(isinstance(which, str) for which in chosen.values()):
        colours = platform.request("rgb_led", dir="-")
        return {name: getattr(colours, str(colour)) for name, colour in chosen.items()}
    return {name: platform.request("led", number, dir="-") for name, number in chosen.items()}


def sdram_pins(board: Board) -> dict[str, str]:
    """Return the names of `SdramPins`' outputs by those of amaranth-boards.

    The data lines are called ``dq`` there. A board may have no pins for ``clk_en`` and ``cs``.
    """
    without = set() if board.sdram and board.sdram.masks else {"dqm"}
    return {name: member for name, member in _SDRAM_PINS.items() if name not in without}


class PowerOn(Elaboratable):
    """Holds ``reset`` at 1 until ``steady`` has been 1 for ``cycles`` of ``clock``.

    The only registers of a board that rely on their values after configuration.
    """

    def __init__(self, clock: Value, steady: Value, cycles: int) -> None:
        self._clock = clock
        self._steady = steady
        self._cycles = cycles
        self.reset = Signal()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.domains.power = ClockDomain("power", reset_less=True, local=True)
        steady = Signal()
        waited = Signal(range(self._cycles))
        ready = Signal()
        m.submodules.steady = FFSynchronizer(self._steady, steady, o_domain="power")
        m.d.comb += [ClockSignal("power").eq(self._clock), self.reset.eq(~ready)]
        with m.If(~steady):
            m.d.power += [waited.eq(0), ready.eq(0)]
        with m.Elif(waited == self._cycles - 1):
            m.d.power += ready.eq(1)
        with m.Else():
            m.d.power += waited.eq(waited + 1)
        return m


class BoardTop(Elaboratable):
    """The top level of the FPGA: a `Top` with its clock, its reset and its pins.

    Raises ``PllError`` when elaborated if the board's clock cannot be made.
    """

    def __init__(self, board: Board) -> None:
        self._board = board

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.top = top = Top(self._board)
        if self._board.ethernet:
            self._line_clocks(m, platform)
            m.submodules.rgmii = rgmii = RgmiiPort(self._board.ethernet)
            wiring.connect(m, rgmii.received, top.received)
            wiring.connect(m, top.sent, rgmii.sent)
        else:
            self._clock(m, platform)
            uart = platform.request("uart", dir="-")
            m.submodules.rx = rx = io.Buffer(io.Direction.Input, uart.rx)
            m.submodules.tx = tx = io.Buffer(io.Direction.Output, uart.tx)
            m.d.comb += [top.rx.eq(rx.i), tx.o.eq(top.tx)]
        for name, port in leds(self._board, platform).items():
            led = io.Buffer(io.Direction.Output, port)
            m.submodules[f"led_{name}"] = led
            m.d.comb += led.o.eq(getattr(top, name))
        if self._board.sdram:
            self._sdram(m, platform.request("sdram", dir="-"), top.sdram)
        for resource, part in self._board.drive_high:
            pin = io.Buffer(io.Direction.Output, getattr(platform.request(resource, dir="-"), part))
            m.submodules[f"{resource}_{part}"] = pin
            m.d.comb += pin.o.eq(1)
        return m

    def _sdram(self, m: Module, ports: Any, pins: Any) -> None:
        """Connect the pins of the SDRAM chip, whose clock is half a cycle late.

        Commands, which change at edges of ``sync``, are stable at the chip's edges. Data from the
        chip is valid at the next edge of ``sync`` if the delay to the chip and back is at least
        half a cycle minus tOH and at most one and a half cycles minus tAC.
        """

        def drive(name: str, levels: Value) -> None:
            port = getattr(ports, name)
            # No inverter may be between a register and its pin.
            pin = io.Buffer(io.Direction.Output, ~port if port.invert[0] else port)
            m.submodules[f"sdram_{name}"] = pin
            m.d.comb += pin.o.eq(levels)

        clock: Any = io.DDRBuffer(io.Direction.Output, ports.clk)
        m.submodules.sdram_clk = clock
        m.d.comb += [clock.o[0].eq(0), clock.o[1].eq(1)]
        for name, member in sdram_pins(self._board).items():
            drive(name, getattr(pins, member))
        for name, level in (("clk_en", 1), ("cs", 0)):
            if hasattr(ports, name):
                drive(name, Const(level))
        m.submodules.sdram_dq = lines = io.Buffer(io.Direction.Bidir, ports.dq)
        m.d.comb += [lines.o.eq(pins.o), lines.oe.eq(pins.oe), pins.i.eq(lines.i)]

    def _clock(self, m: Module, platform: Any) -> None:
        """Add the domain ``sync``, in reset until the clock is steady and block RAM works."""
        board = self._board
        pin = platform.request(platform.default_clk, dir="-")
        in_hz, out_hz = int(platform.default_clk_frequency), board.clock_hz
        make = _PLLS[board.family][1]
        clock = Signal()
        locked: Value = Const(1)
        if in_hz != out_hz and board.pll_pad:
            clock, locked = make(m, pin.io, in_hz, out_hz)
        else:
            m.submodules.clock = buffer = io.Buffer(io.Direction.Input, pin)
            m.d.comb += clock.eq(buffer.i)
            if in_hz != out_hz:
                clock, locked = make(m, buffer.i, in_hz, out_hz)

        self._reset(m, clock, locked)

    def _line_clocks(self, m: Module, platform: Any) -> None:
        """Add the domains ``sync``, ``tx`` and ``rx``, which are reset together.

        The clock of ``rx`` comes from the PHY and may stand still. Its registers begin with the
        values of the reset, so that it does not matter if they see its end late.
        """
        pin = platform.request(platform.default_clk, dir="-")
        m.submodules.clock = buffer = io.Buffer(io.Direction.Input, pin)
        in_hz = int(platform.default_clk_frequency)
        line, clock, locked = ecp5_pll_pair(m, buffer.i, in_hz, LINE_HZ, self._board.clock_hz)
        reset = self._reset(m, clock, locked)
        m.domains.tx, m.domains.rx = ClockDomain("tx"), ClockDomain("rx")
        m.d.comb += ClockSignal("tx").eq(line)
        for domain in ("tx", "rx"):
            m.submodules[f"{domain}_reset"] = FFSynchronizer(
                reset, ResetSignal(domain), o_domain=domain, init=1
            )

    def _reset(self, m: Module, clock: Value, locked: Value) -> Signal:
        """Add the domain ``sync`` with ``clock``; return its reset."""
        cycles = int(RESET_SECONDS * self._board.clock_hz) + 1
        m.domains.sync = ClockDomain("sync")
        m.submodules.power = power = PowerOn(clock, locked, cycles)
        m.d.comb += [ClockSignal("sync").eq(clock), ResetSignal("sync").eq(power.reset)]
        return power.reset
