"""Data sheets of SDRAM chips, and their times in cycles of a clock. Plain data only."""

from dataclasses import dataclass, replace
from math import ceil, floor
from types import MappingProxyType

from .abi import Rows

__all__ = ["AS4C16M16SA_7", "EM638325_6H", "W9816G6JH_6_PAIR", "SdramPart", "SdramTiming"]


@dataclass(frozen=True, kw_only=True, slots=True)
class SdramPart:
    """A chip. Times are in nanoseconds, the shortest allowed unless noted."""

    name: str
    width: int
    """Bits in a word, a multiple of 8."""
    masks: bool = True
    """Whether the FPGA drives the chip's masks (DQM). Without them a word is written as a whole, so
    the controller first reads a beat of which only some bytes are written."""
    row_bits: int
    column_bits: int
    """A row has ``2**column_bits`` words."""
    bank_bits: int
    clocks: MappingProxyType[int, float]
    """The shortest clock period by CAS latency."""
    activate_to_access: float
    """tRCD: ACTIVATE to READ or WRITE."""
    precharge: float
    """tRP: PRECHARGE to ACTIVATE or REFRESH."""
    active: float
    """tRAS: ACTIVATE to PRECHARGE of the bank."""
    longest_active: float
    """tRAS, the longest allowed."""
    row_cycle: float
    """tRC: ACTIVATE to ACTIVATE of the bank."""
    refresh_cycle: float
    """tRFC: REFRESH to the next command."""
    activate_to_activate: float
    """tRRD: ACTIVATE to ACTIVATE of another bank."""
    write_recovery: float
    """tWR: a WRITE's last word to PRECHARGE of the bank."""
    mode_cycle: float
    """tMRD: SET MODE to the next command."""
    retention: float
    """tREF: the longest allowed time in which each row is refreshed once."""
    pause: float
    """Time from power-up to the first command."""
    first_refreshes: int
    """Number of REFRESH commands before the first access."""
    output_hold: float
    """tOH: a word stays valid after the clock edge that samples it."""
    access: float
    """tAC, the longest: a word is valid after the clock edge before the one that samples it."""

    @property
    def size(self) -> int:
        """Size of the chip in bytes."""
        return self.width // 8 << self.row_bits + self.column_bits + self.bank_bits

    @property
    def rows(self) -> Rows:
        """Row layout of the chip, for `Configuration.rows`."""
        word = (self.width // 8).bit_length() - 1  # a power of two; boards load without Amaranth
        return Rows(
            size_log2=self.bank_bits + self.column_bits + word,
            banks_log2=self.bank_bits,
            word_bytes_log2=word,
        )

    def cas_latency(self, clock_hz: int) -> int:
        """Return the lowest CAS latency for a clock. Raises ``ValueError`` if it is too fast."""
        for latency, period in sorted(self.clocks.items()):
            if 1e9 / clock_hz >= period - 1e-6:
                return latency
        raise ValueError(f"clock: {clock_hz} Hz is too fast for {self.name}")


@dataclass(frozen=True, kw_only=True, slots=True)
class SdramTiming:
    """The times of a part in cycles, under the names of `SdramPart`."""

    cas: int
    """CAS latency: READ to its first word."""
    activate_to_access: int
    precharge: int
    active: int
    """tRAS, or more so that this and tRP add up to tRC."""
    refresh_cycle: int
    activate_to_activate: int
    write_recovery: int
    mode_cycle: int
    refresh_interval: int
    """REFRESH to REFRESH on average, one cycle less than allowed: a reserve for late ones."""
    pause: int
    first_refreshes: int

    @classmethod
    def of(cls, part: SdramPart, clock_hz: int) -> "SdramTiming":
        """Return the times of ``part`` at a clock. Raises ``ValueError`` if it is too fast."""

        def cycles(nanoseconds: float) -> int:
            return max(1, ceil(nanoseconds * clock_hz / 1e9 - 1e-6))

        precharge, row_cycle = cycles(part.precharge), cycles(part.row_cycle)
        return cls(
            cas=part.cas_latency(clock_hz),
            activate_to_access=cycles(part.activate_to_access),
            precharge=precharge,
            active=max(cycles(part.active), row_cycle - precharge),
            refresh_cycle=cycles(part.refresh_cycle),
            activate_to_activate=cycles(part.activate_to_activate),
            write_recovery=cycles(part.write_recovery),
            mode_cycle=cycles(part.mode_cycle),
            refresh_interval=floor(part.retention * clock_hz / 1e9 / (1 << part.row_bits)) - 1,
            pause=cycles(part.pause),
            first_refreshes=part.first_refreshes,
        )


AS4C16M16SA_7 = SdramPart(
    name="AS4C16M16SA-7",
    width=16,
    row_bits=13,
    column_bits=9,
    bank_bits=2,
    clocks=MappingProxyType({2: 10, 3: 7}),
    activate_to_access=21,
    precharge=21,
    active=42,
    longest_active=120_000,
    row_cycle=63,
    refresh_cycle=63,
    activate_to_activate=14,
    write_recovery=14,
    mode_cycle=14,
    retention=64e6,
    pause=200_000,
    first_refreshes=8,
    output_hold=2.5,
    access=6,
)
"""32 MiB, Alliance AS4C16M16SA rev. 3.0, tables 16 and 17, the slower grade. At 100 MHz its cycles
are also enough for IS42S16160G-7, MT48LC16M16A2-75 and W9825G6KH-6, which boards have in its place.
"""

EM638325_6H = SdramPart(
    name="EM638325-6H",
    width=32,
    masks=False,
    row_bits=11,
    column_bits=8,
    bank_bits=2,
    clocks=MappingProxyType({2: 10, 3: 6}),
    activate_to_access=18,
    precharge=18,
    active=42,
    longest_active=100_000,
    row_cycle=60,
    refresh_cycle=60,
    activate_to_activate=12,
    write_recovery=15,
    mode_cycle=12,
    retention=32e6,
    pause=200_000,
    first_refreshes=8,
    output_hold=2,
    access=6,
)
"""8 MiB, Etron EM638325 rev. 1.4, on the Colorlight i5, which holds DQM low. No time is shorter
than that of M12L64322A, which fits in its place. The data sheet asks for 4,096 refreshes in 64 ms:
each of the 2,048 rows once in 32 ms.
"""

W9816G6JH_6_PAIR = replace(EM638325_6H, name="2 x W9816G6JH-6", bank_bits=1)
"""4 MiB, two chips of 16 bits side by side on the Colorlight 5A-75B, which holds DQM low. Winbond
W9816G6JH rev. A01, table 9.5, but for the clock of CAS latency 2, the access time and the write
recovery: they are those of slower chips, because M12L16161A-5T is mounted as well.
"""
