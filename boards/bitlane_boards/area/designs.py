"""The configurations whose area and clock are measured, what each comprises, and its goals."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from amaranth.lib import wiring

from bitlane_rtl.bit_unit.bit_unit import BitUnit
from bitlane_rtl.bit_unit.popcount import Popcount
from bitlane_rtl.bit_unit.shift import Shifter
from bitlane_rtl.bus.axi4_lite import Axi4LiteControl
from bitlane_rtl.configuration import Configuration
from bitlane_rtl.configurations import copy, full, small
from bitlane_rtl.control.registers import Registers
from bitlane_rtl.control.sequencer import Sequencer
from bitlane_rtl.core import Core
from bitlane_rtl.datapath.joiner import Joiner
from bitlane_rtl.datapath.reader import Reader
from bitlane_rtl.datapath.repack import Repack
from bitlane_rtl.datapath.writer import Writer
from bitlane_rtl.ports.read_arbiter import ReadArbiter
from bitlane_rtl.walk.walker import Walker

from .copier import Copier

__all__ = ["BLOCKS", "DESIGNS", "ON_REQUEST", "Design"]


@dataclass(frozen=True, slots=True)
class Design:
    """A circuit to place.

    ``scope`` says in words what it comprises; ``most_lut4`` and ``least_mhz``: the goals, None
    where the contract has none; ``beside``: whether peers of its width are comparable.
    """

    name: str
    family: str
    width: int
    scope: str
    build: Callable[[], wiring.Component]
    most_lut4: int | None = None
    least_mhz: float | None = None
    beside: bool = False

    @property
    def has_goal(self) -> bool:
        return self.most_lut4 is not None or self.least_mhz is not None


def _block_ram(family: str) -> bool:
    return family == "ice40"


_COPY = (
    "NOT, one reader, one loop, dense runs from and to any byte; AXI4 manager, descriptor port,"
    " status, bus errors, time-outs and recovery; no ring, no registers (as axi_cdma)"
)
_DEEP = "the same with a FIFO of 64 beats, which 30 cycles of latency need"
_CORE = "the same with command ring, checks of each command, registers, counters and AXI4-Lite"
_FULL = (
    "all operators, lanes and modes, two readers, four loops; command ring, registers, counters,"
    " two AXI4 managers, AXI4-Lite"
)

_SMALL = (
    "as the HX8K board's engine, behind AXI4 and with 32 address bits: logic and count, all modes,"
    " two readers, two loops; command ring, registers, AXI4-Lite"
)


def _copier(width: int, family: str, **goals: float) -> Design:
    def build() -> wiring.Component:
        return Copier(copy(width, block_ram=_block_ram(family)))

    return Design(f"copy-{width}", family, width, _COPY, build, beside=True, **goals)  # type: ignore[arg-type]


def _deep_copier(width: int, family: str) -> Design:
    def build() -> wiring.Component:
        return Copier(replace(copy(width, block_ram=_block_ram(family)), fifo_beats=64))

    return Design(f"copy-{width}-deep", family, width, _DEEP, build)


def _copy_core(width: int, family: str) -> Design:
    def build() -> wiring.Component:
        return Core(copy(width, block_ram=_block_ram(family)))

    return Design(f"copy-{width}-core", family, width, _CORE, build)


def _small_core(width: int, family: str, least_mhz: float) -> Design:
    def build() -> wiring.Component:
        return Core(small(width, block_ram=_block_ram(family)))

    return Design(f"small-{width}", family, width, _SMALL, build, least_mhz=least_mhz)


def _full_core(width: int, family: str, least_mhz: float | None = None) -> Design:
    def build() -> wiring.Component:
        return Core(full(width, block_ram=_block_ram(family)))

    return Design(f"full-{width}", family, width, _FULL, build, least_mhz=least_mhz)


DESIGNS = (
    _copier(32, "ecp5", most_lut4=522, least_mhz=150.0),
    _deep_copier(32, "ecp5"),
    _copy_core(32, "ecp5"),
    _copier(64, "ecp5"),
    _copy_core(64, "ecp5"),
    _full_core(64, "ecp5", least_mhz=125.0),
    _copier(32, "ice40"),
    _small_core(32, "ice40", least_mhz=90.0),
    _copier(32, "gowin"),
    _copy_core(32, "gowin"),
)

ON_REQUEST = (
    _copier(128, "ecp5"),
    _full_core(32, "ecp5"),
    _full_core(128, "ecp5"),
    _full_core(32, "ice40"),
    _full_core(32, "gowin"),
)
"""Measured only when named: slow, or larger than their chip with the flip-flops around them."""

_PARTS: Mapping[str, Callable[[Configuration], wiring.Component]] = {
    "reader": Reader,
    "walker": lambda config: Walker(config, has_offset=True),
    "joiner": Joiner,
    "bit unit": lambda config: BitUnit(config.data_width, config.ops, config.lanes),
    "shifter": lambda config: Shifter(config.data_width, config.ops, config.lanes),
    "popcount": lambda config: Popcount(config.data_width, config.lanes),
    "repack": lambda config: Repack(config.data_width, config.lanes, config.ops),
    "writer": Writer,
    "sequencer": Sequencer,
    "registers": Registers,
    "read arbiter": lambda config: ReadArbiter(
        config.address_width, config.data_width, 2 * config.bursts, block_ram=config.block_ram
    ),
    "AXI4-Lite": lambda config: Axi4LiteControl(),
}


def _block(name: str, width: int, family: str) -> Design:
    def build() -> wiring.Component:
        return _PARTS[name](full(width, block_ram=_block_ram(family)))

    return Design(name, family, width, "a part of the full engine, by itself", build)


BLOCKS = tuple(
    _block(name, width, family)
    for family, width in (("ecp5", 64), ("ice40", 32), ("gowin", 32))
    for name in _PARTS
)
