"""Many instances of one circuit, with random commands, data, waits and faults.

Instances of a group share their commands, which are random trials.
"""

from contextlib import suppress
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitlane.driver import Command
from bitlane.errors import LayoutError, UnsupportedError
from bitlane_rtl.abi import Port, Status

from ..fields import CONTROL
from ..system import Hang, Response
from .arrays import Numbers, draw, noise
from .contract import Expected
from .folder import CircuitOptions, geometry_of
from .plan import CampaignPlan, Portion, Stage
from .scoreboard import (
    Observed,
    Verdict,
    compare,
    compare_disturbed,
    expect_answers,
    expect_cleared,
    expect_fault,
)
from .stimulus import Workload, packed, recover, stalls, submit
from .trials import SIZE, random_trial

MEMORY = 16 << 10
"""Bytes of memory that trials need."""

_GROUP = 32
"""Instances with the same commands."""

_COMMANDS = 8
"""Most commands of an instance; writing records takes time, too."""

_TIMEOUT = 512
"""Value of TIMEOUT, in cycles."""

_LIMIT = 200_000
_DRAIN = 2000

_LATENCIES = np.array([0, 0, 1, 7, 30, 100])
_STALLS = np.array([0, 0, 26, 128, 192])
"""Chances in 256."""

_INTERRUPT = 1 << CONTROL["INTERRUPT"].low

_NOTHING, _READ_ERROR, _WRITE_ERROR, _READ_HANG, _WRITE_HANG, _FLIP = range(6)
_KINDS = np.repeat(
    [_NOTHING, _READ_ERROR, _WRITE_ERROR, _READ_HANG, _WRITE_HANG, _FLIP], [70, 10, 10, 2, 2, 6]
)
"""The kind of disturbance: each of the hundred entries is equally likely."""

_CODES = np.array(
    [Status.OK, Status.READ_ERROR, Status.WRITE_ERROR, Status.TIMEOUT, Status.TIMEOUT, Status.OK]
)
_READS, _WRITES = 1 << Port.READ_A | 1 << Port.READ_B, 1 << Port.WRITE
_PORTS = np.array([0, _READS, _WRITES, _READS, _WRITES, 0])

_EVER = (1 << 32) - 1


class SoakPlan(CampaignPlan):
    """``instances`` that follow from ``seed``.

    Attributes
    ----------
    commands, faults : int
        Commands executed, and instances that reported a fault.
    """

    def __init__(self, circuit: CircuitOptions, instances: int, seed: int) -> None:
        self.circuit = circuit
        self.instances = instances
        self.replay = f"bitlane soak --replay '{seed}/{{number}}:{circuit.options}'"
        self.commands = 0
        self.faults = 0
        self._ran = 0
        self._failures = 0
        self._seed = seed
        self._geometry = geometry_of(circuit.configuration)
        self._most = min(_COMMANDS, self._geometry.slots)
        self._group = lru_cache(maxsize=4)(self._new_group)

    def _new_group(self, group: int) -> tuple[NDArray[np.uint32], Numbers, int, int]:
        """Return records, words in use, the number of commands, and those of the first trial."""
        random = np.random.default_rng([self._seed, group])
        commands: list[Command] = []
        first = 0
        trials = int(random.integers(1, 4))
        while trials or not commands:
            trial = random_trial(random, self._geometry)
            more: list[Command] = []
            with suppress(LayoutError, UnsupportedError):
                more = list(trial.commands(self._geometry, self._geometry.memory_base))
            if more and len(commands) + len(more) <= self._most:
                commands += more
                first = first or len(more)
            elif commands:
                break
            trials = max(0, trials - 1)
        records, used, _ = packed([commands], self._most, interrupt=False)
        return records[0], used[0], len(commands), first

    def portion(self, numbers: Numbers) -> Portion:
        groups, place = np.unique(numbers // _GROUP, return_inverse=True)
        parts = [self._group(int(group)) for group in groups]
        records = np.stack([part[0] for part in parts])[place]
        used = np.stack([part[1] for part in parts])[place]
        kinds = self._kinds(numbers)
        whole, first = (np.array([part[x] for part in parts])[place] for x in (2, 3))
        # The results of trials after a failed one depend on its progress.
        counts = np.where(kinds == _NOTHING, whole, first)
        # The seal covers CONTROL, so each flipped bit needs a second flip in the seal's byte.
        records[np.arange(len(numbers)), counts - 1, 0] ^= np.uint32(_INTERRUPT | _INTERRUPT << 8)
        self._flip(numbers, records, used, counts)
        work = Workload(records, used, counts, _TIMEOUT, _LIMIT, self._settings(numbers, records))
        ram = noise(self._seed, numbers, self.circuit.ram_bytes)
        return Portion(numbers, ram, [recover(submit(work), _DRAIN)], work)

    def _draw(self, numbers: Numbers, what: str, below: int) -> Numbers:
        return np.asarray(draw(self._seed, numbers, what, below))

    def _kinds(self, numbers: Numbers) -> Numbers:
        return _KINDS[self._draw(numbers, "kind", len(_KINDS))]

    def _flip(
        self, numbers: Numbers, records: NDArray[np.uint32], used: Numbers, counts: Numbers
    ) -> None:
        """Flip a bit of a record, but not its seal, in instances of the kind `_FLIP`."""
        some = np.flatnonzero(self._kinds(numbers) == _FLIP)
        command = self._draw(numbers, "command", 1 << 20)[some] % counts[some]
        # A flip in CONTROL could lengthen the record by words that make its seal right.
        bits = 32 * (used[some, command] - 1)
        bit = 32 + self._draw(numbers, "bit", 1 << 20)[some] % bits
        flip = np.left_shift(1, bit % 32).astype(np.uint32)
        records[some, command, bit // 32] ^= flip

    def _settings(self, numbers: Numbers, records: NDArray[np.uint32]) -> dict[str, ArrayLike]:
        kinds = self._kinds(numbers)
        settings = stalls(
            lambda channel: _STALLS[self._draw(numbers, f"stall {channel}", len(_STALLS))]
        )
        settings |= {
            "memory__latency": _LATENCIES[self._draw(numbers, "latency", len(_LATENCIES))],
            "memory__seed": self._draw(numbers, "seed", 1 << 31),
            "memory__error_read": (kinds == _READ_ERROR).astype(np.int64),
            "memory__error_write": (kinds == _WRITE_ERROR).astype(np.int64),
        }
        hang = self._draw(numbers, "hang", 2) + int(Hang.NO_ANSWER)
        settings["memory__hang_read"] = hang * (kinds == _READ_HANG)
        settings["memory__hang_write"] = hang * (kinds == _WRITE_HANG)
        responses = np.array([Response.SLVERR, Response.DECERR])
        settings["memory__error_response"] = responses[self._draw(numbers, "response", 2)]
        # A byte between the ends of A or Y of the first command.
        words = records[:, 0].astype(np.int64)
        base, last = (
            np.where(kinds == _WRITE_ERROR, words[:, 4 + k], words[:, 2 + k]) for k in (0, 1)
        )
        at = base + self._draw(numbers, "byte", 1 << 30) % np.maximum(1, np.abs(last - base) + 1)
        settings["memory__error_first"] = settings["memory__error_last"] = at
        settings["first"] = self._draw(numbers, "first", 200) * self._draw(numbers, "later", 2)
        settings["last"] = _EVER
        return settings

    def judge(self, stage: Stage, portion: Portion, observed: list[Observed]) -> dict[int, str]:
        (found,) = observed
        count = len(portion.numbers)
        kinds = self._kinds(portion.numbers)
        plain = (kinds == _NOTHING) | (kinds == _FLIP)
        expected = stage.expected(portion.ram, portion.work, 1 << 20)
        verdict, good, disturbed = (Verdict(count) for _ in range(3))
        expect_answers(verdict, found)
        compare(good, portion.ram, portion.work, expected, found)
        compare_disturbed(disturbed, portion.ram, portion.work, expected, found)
        expect_fault(disturbed, found, _CODES[kinds], _PORTS[kinds])
        verdict.take(good, plain)
        verdict.take(disturbed, ~plain)
        expect_cleared(verdict, found)
        self._expect_promised(verdict, expected, kinds)
        self._ran += count
        self._failures += len(verdict.reasons)
        self.commands += int(portion.work.counts.sum())
        self.faults += int((found.field("CODE") != Status.OK).sum())
        return verdict.reasons

    def rows(self) -> list[dict[str, object]]:
        """Return one row with the totals."""
        row: dict[str, object] = {
            "instances": self._ran,
            "commands": self.commands,
            "reported a fault": self.faults,
            "failures": self._failures,
        }
        return [row]

    @staticmethod
    def _expect_promised(verdict: Verdict, expected: Expected, kinds: Numbers) -> None:
        """Expect trials that rely only on the contract, and refusals of flipped records only."""
        verdict.expect(
            ~expected.loose.any(axis=1), lambda _: "commands rely on what is not promised"
        )
        verdict.expect(
            (expected.status == Status.OK) | (kinds == _FLIP),
            lambda k: f"commands that are refused with {Status(int(expected.status[k])).name}",
        )


assert SIZE <= MEMORY
