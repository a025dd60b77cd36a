"""Coverage: which statements, branches and changes of bits of a design its simulations had."""

from ..netlist.covered import Measured
from .coverage import Coverage, current_coverage
from .points import CoveragePoint

__all__ = ["Coverage", "CoveragePoint", "Measured", "current_coverage"]
