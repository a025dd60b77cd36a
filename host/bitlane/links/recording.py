"""The activity of a device's buses, cycle by cycle. Simulated devices record it."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Flags = Mapping[str, NDArray[np.bool_]]
Numbers = Mapping[str, NDArray[np.int64]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Recording:
    """Entries, each of which holds from its cycle to the cycle of the next one.

    Channels are AXI4's: ``aw``, ``w`` and ``b`` of the port that writes, ``ar`` and ``r`` of the
    one that reads A, and B too if it is the only one; else ``ar_b`` and ``r_b`` read B. An entry
    in which an address is taken, or something happens to a command, lasts one cycle.
    """

    cycles: NDArray[np.int64]
    """First cycle of each entry."""
    end: int
    """The cycle behind the last entry."""
    cut: bool
    """The recording was full at ``end``; later activity is missing."""
    valid: Flags
    ready: Flags
    """By channel."""
    addresses: Numbers
    beats: Numbers
    """By address channel: the requested address and beats, where it is valid."""
    doorbell: NDArray[np.bool_]
    """The host submits commands."""
    started: NDArray[np.bool_]
    retired: NDArray[np.bool_]
    faulted: NDArray[np.bool_]
    """The next command in order goes to work, ends, or stops the circuit."""
