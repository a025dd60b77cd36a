"""Amaranth's own simulator, of whose engines its stubs do not know."""

from typing import Any

import amaranth.sim

__all__ = ["Simulator"]

Simulator: Any = amaranth.sim.Simulator
