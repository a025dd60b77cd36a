"""Acceptance test of a device: link, memory, operators and faults, step by step.

Everything is compared with the NumPy model; the device's memory is overwritten.
"""

from .link import check_bandwidth, check_link
from .report import validate
from .session import Session

__all__ = [
    "Session",
    "check_bandwidth",
    "check_link",
    "validate",
]
