"""When commands start and retire on the circuit that is predicted; no bus is recorded."""

from collections.abc import Iterable

import numpy as np

from bitlane.links import Recording

_CHANNELS = "aw", "w", "b", "ar", "r", "ar_b", "r_b"
_ADDRESSES = "aw", "ar", "ar_b"


class PredictedCommands:
    """Collects DOORBELLs, starts and retirements until there are ``capacity`` of them."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._doorbells: list[int] = []
        self._started: list[int] = []
        self._retired: list[int] = []
        self._end = 0
        self._cut = False

    def add(self, doorbells: Iterable[int], started: Iterable[int], retired: Iterable[int]) -> None:
        """Add the cycles of a job, in which DOORBELL is written and commands start and retire."""
        rung, starts, ends = list(doorbells), list(started), list(retired)
        entries = map(len, (self._doorbells, self._started, self._retired, rung, starts, ends))
        if self._cut or sum(entries) > self._capacity:
            self._cut = True
            return
        self._doorbells += rung
        self._started += starts
        self._retired += ends
        self._end = ends[-1] + 1

    @property
    def recording(self) -> Recording:
        """The cycles collected so far, as a recording in which no channel transfers anything."""
        kinds = [
            np.array(kind, np.int64) for kind in (self._doorbells, self._started, self._retired)
        ]
        cycles = np.unique(np.concatenate(kinds))
        doorbell, started, retired = (np.isin(cycles, kind) for kind in kinds)
        never, none = np.zeros(len(cycles), np.bool_), np.zeros(len(cycles), np.int64)
        return Recording(
            cycles=cycles,
            end=self._end,
            cut=self._cut,
            valid=dict.fromkeys(_CHANNELS, never),
            ready=dict.fromkeys(_CHANNELS, never),
            addresses=dict.fromkeys(_ADDRESSES, none),
            beats=dict.fromkeys(_ADDRESSES, none),
            doorbell=doorbell,
            started=started,
            retired=retired,
            faulted=never,
        )
