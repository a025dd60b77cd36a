"""Recorded area and clock of other open-source DMA engines, placed by the same method.

From sources of November 2026 (verilog-axi 516bd5d, wb2axip df8e764) with Yosys 0.70 and nextpnr
0.11.1: byte-unaligned where said, 32 address bits, lengths of 20 bits, bursts of 16 beats, FIFO of
32 words, core cells, the ends of carry chains as nextpnr makes them, median of seeds 1 to 3.
Features differ: axi_cdma has a descriptor port and no registers, axidma has registers and an abort;
neither computes.
"""

from dataclasses import dataclass

__all__ = ["PEERS", "Peer"]


@dataclass(frozen=True, slots=True)
class Peer:
    """The figures of a peer. ``ram`` counts LUT RAMs or block RAMs; None means not recorded."""

    name: str
    family: str
    width: int
    lut4: int
    carry: int | None
    ff: int
    ram: int
    mhz: float

    @property
    def gigabytes(self) -> float:
        """Gigabytes a second of a port that carries a beat in every cycle."""
        return self.width * self.mhz / 8000


PEERS = (
    Peer("axi_cdma, unaligned", "ecp5", 32, 522, 164, 446, 28, 76.3),
    Peer("axi_cdma, unaligned", "ecp5", 64, 802, 161, 515, 46, 81.8),
    Peer("axi_cdma, unaligned", "ecp5", 128, 1480, 173, 652, 82, 77.3),
    Peer("axidma, unaligned", "ecp5", 32, 1165, 264, 656, 16, 103.6),
    Peer("axidma, unaligned", "ecp5", 64, 1786, 258, 796, 32, 105.7),
    Peer("axidma, unaligned", "ecp5", 128, 3267, 272, 1072, 64, 90.8),
    Peer("axi_cdma, aligned only", "ice40", 32, 764, None, 502, 4, 55.7),
    Peer("axidma, unaligned", "ice40", 32, 2422, None, 1678, 0, 74.8),
)
