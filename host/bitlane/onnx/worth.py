"""Which groups of nodes are worth a transfer to the device: the one rule of it."""

from collections.abc import Iterable
from typing import Final

from .model import BitNode
from .operators import OPERATORS

RULE: Final = "a group that only moves elements is not worth a transfer to the device"
"""The rule in words, for `explain` and pages. Operators that move elements are marked so."""

NOT_WORTH: Final = "its group only moves elements, which is not worth a transfer to the device"


def is_worth(nodes: Iterable[BitNode]) -> bool:
    """Return whether a group of ``nodes`` is computed on the device, if another backend could."""
    return any(not OPERATORS[node.operator].moves for node in nodes)
