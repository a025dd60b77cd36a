"""`bitlane soak`: random commands, faults and stalls on random circuits, against the NumPy model.

All of a case follows from its seed and its configuration, so that a failure can be replayed.
"""

from .command import add_soak

__all__ = ["add_soak"]
