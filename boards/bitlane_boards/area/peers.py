"""Recorded area and clock of other open-source circuits, placed by the same method.

From sources of November 2026 (verilog-axi 516bd5d, wb2axip df8e764) with Yosys 0.70 and nextpnr
0.11.1: byte-unaligned where said, 32 address bits, lengths of 20 bits, bursts of 16 beats, FIFO of
32 words, core cells, the ends of carry chains as nextpnr makes them, median of seeds 1 to 3.
Features differ: axi_cdma has a descriptor port and no registers, axidma has registers and an abort;
neither computes. axis_register and axis_broadcast (verilog-axis 48ff7a7), with TKEEP, TLAST and one
bit of TUSER, are the floor for a stream unit: a skid buffer, and one with two outputs.
"""

from dataclasses import dataclass

__all__ = ["DMA", "PEERS", "STREAM", "Peer"]

DMA, STREAM = "DMA", "stream"
"""Kinds of circuits, of which peers and designs are comparable."""


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
    kind: str = DMA

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
    Peer("axis_register", "ecp5", 64, 154, 0, 151, 0, 304.1, STREAM),
    Peer("axis_broadcast to 2", "ecp5", 64, 314, 0, 152, 0, 230.4, STREAM),
    Peer("axis_register", "ice40", 32, 46, 0, 79, 0, 190.8, STREAM),
)
