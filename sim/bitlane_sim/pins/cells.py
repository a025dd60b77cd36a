"""Models of vendors' cells for simulation, written for this. Text only."""

import functools
from importlib.resources import files

__all__ = ["spram_cells"]


@functools.cache
def spram_cells() -> str:
    """RTLIL of ``SB_SPRAM256KA``, the large RAM of iCE40 UltraPlus."""
    return (files("bitlane_sim.pins") / "sb_spram256ka.il").read_text(encoding="utf-8")
