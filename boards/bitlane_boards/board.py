"""The description of a board, with its reasons. It is data: it builds and opens nothing."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from bitlane_rtl.abi import DEFAULT_BAUD, LEAST_DIVIDER
from bitlane_rtl.board_addresses import BoardAddresses
from bitlane_rtl.configuration import Configuration
from bitlane_rtl.sdram_part import SdramPart

__all__ = ["CHOICES", "Board", "EthernetPort", "Family", "MemoryKind"]

CHOICES = ("clock", "data width", "operators", "memory", "link")
"""The choices for which a board states reasons."""

WORST_BAUD_ERROR = 0.015
"""The largest difference of two baud rates: half a bit in ten, less the sampling error."""

DELAY_STEP_PS, MOST_DELAY_PS = 25, 3175
"""The delays of a pin of an ECP5 (Lattice FPGA-TN-02035, DELAYG)."""


class Family(Enum):
    """Supported FPGA families; `families` has the tools of each."""

    ICE40 = "iCE40"
    ECP5 = "ECP5"
    GOWIN = "Gowin"


class MemoryKind(Enum):
    """Kinds of memory that hold the tensors."""

    SPRAM = "single-port RAM"
    BLOCK = "block RAM behind one port"
    BANKS = "block RAM in banks"
    SDRAM = "SDRAM"


@dataclass(frozen=True, kw_only=True)
class EthernetPort:
    """A gigabit PHY with RGMII that is the link of a board. Its registers are not changed.

    Raises ``ValueError`` for a delay that the pins of an ECP5 cannot make.
    """

    number: int = 0
    """The number of the resource ``eth_rgmii``."""

    receive_delay_ps: int = 0
    """Delay of data and control from the PHY in the FPGA's pins, in picoseconds."""

    transmit_delay_ps: int = 0
    """Delay of the clock to the PHY in the FPGA's pin, in picoseconds."""

    addresses: BoardAddresses = field(default_factory=BoardAddresses)

    def __post_init__(self) -> None:
        for name in ("receive_delay_ps", "transmit_delay_ps"):
            delay = getattr(self, name)
            if not 0 <= delay <= MOST_DELAY_PS:
                raise ValueError(f"{name}: {delay}; expected 0 to {MOST_DELAY_PS}")

    @property
    def url(self) -> str:
        """The value of ``--device`` on the board's network."""
        return f"udp://{self.addresses.ip}:{self.addresses.port}"

    @property
    def text(self) -> str:
        """All addresses, for reports."""
        return f"{self.url}, MAC address {self.addresses.mac.hex(':')}"


@dataclass(frozen=True, kw_only=True)
class Board:
    """A board, and the circuit that it gets.

    Raises ``ValueError`` for a link rate that the clock cannot make, and a memory that cannot be
    built.
    """

    name: str
    """The name of the board on the command line."""

    title: str
    """The maker's name of the board."""

    family: Family

    platform: str
    """``module:class`` of its description, in amaranth-boards or in `platforms`: pins, package and
    speed."""

    chip: bytes
    """Bytes that name the chip in a bitstream, directly behind its preamble."""

    clock_hz: int
    """The circuit's clock; a PLL makes it where it is not the board's own."""

    pll_pad: bool = False
    """iCE40: whether the clock comes in at the PLL's own pin."""

    configuration: Configuration

    memory: MemoryKind

    banks: int = 1
    """The number of banks of ``MemoryKind.BANKS``."""

    sdram: SdramPart | None = None
    """The chip of ``MemoryKind.SDRAM``, or the smallest and slowest chip of any revision."""

    baud: int = DEFAULT_BAUD
    """Bits a second of the serial line, which is the link unless ``ethernet`` is."""

    ethernet: EthernetPort | None = None

    busy_led: int | str = 0
    fault_led: int | str | None = 1
    """LEDs of the platform that show the engine's state: numbers, or colours of ``rgb_led``. A
    board with one LED has no ``fault_led``."""

    drive_high: tuple[tuple[str, str], ...] = ()
    """Pins that are driven to 1, each as a resource and a part of it."""

    usb_ids: tuple[tuple[int, int], ...] = ()
    """USB vendor and product numbers of its serial bridge."""

    usb_interface: int = 0
    """Number of the bridge's port that is the link, from 0."""

    loader: tuple[str, ...] = ()
    """Arguments of openFPGALoader that name the board."""

    why: Mapping[str, str] = field(default_factory=dict)
    """The reason for each of `CHOICES`."""

    def __post_init__(self) -> None:
        if self.ethernet is None:
            self._expect_baud()
        size = self.configuration.memory_bytes
        if size & (size - 1) or self.configuration.memory_base % size:
            raise ValueError(
                f"memory_bytes: {size}; expected a power of two that divides memory_base"
            )
        if (self.sdram is None) == (self.memory is MemoryKind.SDRAM):
            raise ValueError("sdram: expected with MemoryKind.SDRAM, and with no other memory")
        if self.sdram is not None and size > self.sdram.size:
            raise ValueError(f"memory_bytes: {size} is more than {self.sdram.name} has")
        if self.configuration.rows != (self.sdram and self.sdram.rows):
            raise ValueError(f"rows: {self.configuration.rows} are not those of the memory")

    def _expect_baud(self) -> None:
        if self.divider < LEAST_DIVIDER:
            raise ValueError(
                f"baud: {self.baud} from {self.clock_hz} Hz is {self.clock_hz / self.baud:.1f}"
                f" clocks a bit; expected {LEAST_DIVIDER} or more"
            )
        error = self.clock_hz / self.divider / self.baud - 1
        if abs(error) > WORST_BAUD_ERROR:
            raise ValueError(
                f"baud: {self.baud} from {self.clock_hz} Hz is off by {error:.1%};"
                f" expected {WORST_BAUD_ERROR:.1%} at most"
            )

    @property
    def divider(self) -> int:
        """Clocks in a bit of the serial line."""
        return round(self.clock_hz / self.baud)

    @property
    def words(self) -> int:
        """Beats that the memory holds."""
        return self.configuration.memory_bytes // self.configuration.data_bytes
