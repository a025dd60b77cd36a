"""Amaranth's own simulator, as ``Any``, because Amaranth's stubs lack the argument ``engine``."""

from typing import Any

import amaranth.sim

Simulator: Any = amaranth.sim.Simulator
