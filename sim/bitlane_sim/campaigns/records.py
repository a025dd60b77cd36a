"""Records of short commands with each bit, and each pair of bits, flipped, and a valid seal.

The engine has to refuse such a record or to execute it exactly as the model does. After CLEAR the
engine must accept commands again.
"""

import numpy as np

from bitlane_rtl.abi import RECORD, RECORD_SEAL, RECORD_WORDS, Status

from ..fields import CONTROL, Fields
from .arrays import Numbers, noise
from .folder import geometry_of
from .jobs import ShortJob, jobs_of
from .plan import CampaignPlan, Portion, Stage
from .scoreboard import Observed, Verdict, compare, expect_answers, expect_cleared
from .stimulus import Workload, recover, submit

_LIMIT = 6000
"""Cycles that a record may take: more than two walks over the whole memory."""

_TIMEOUT = 96
_DRAIN = 1000

_SEAL = CONTROL["SEAL"]

_BEHIND = {"COUNT": 2, "STRIDE": 8, "JUMP": 16}
"""Values of the words that a command does not use, unless a flipped bit enables them."""


class RecordPlan(CampaignPlan):
    """``most`` instances, spread evenly over all, or all of them if it is None.

    Attributes
    ----------
    jobs : list of ShortJob
        With one record each.
    codes : ndarray
        (jobs, codes of `Status`): instances that ended with each code.
    slow : ndarray
        (jobs,): instances that were still running at the limit.
    """

    def __init__(self, stage: Stage, most: int | None) -> None:
        self.circuit = stage.circuit
        jobs = jobs_of(geometry_of(self.circuit.configuration))
        self.jobs = [job for job in jobs if len(job.records) == 1]
        self.replay = (
            f"bitlane campaign records --config '{self.circuit.options}' --replay {{number}}"
        )
        self._bits = np.array([32 * int(job.used[0]) - _SEAL.width for job in self.jobs])
        # One wrong bit counts as a pair of the bit with itself.
        self._pairs = self._bits * (self._bits + 1) // 2
        self.instances = int(self._pairs.sum())
        self.most = most
        self._ram = noise(1, np.arange(1), self.circuit.ram_bytes)[0]
        self._records = np.stack([_filled(job) for job in self.jobs])
        self.codes = np.zeros((len(self.jobs), len(Status)), np.int64)
        self.slow = np.zeros(len(self.jobs), np.int64)

    def numbers(self) -> Numbers:
        """Return the numbers of the instances to run."""
        if self.most is None or self.most >= self.instances:
            return np.arange(self.instances)
        return np.linspace(0, self.instances - 1, self.most).astype(np.int64)

    def bits(self, numbers: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        """Return the job of each number, and two bits of its record, which may be equal."""
        ends = np.cumsum(self._pairs)
        jobs = np.searchsorted(ends, numbers, side="right")
        place = numbers - (ends - self._pairs)[jobs]
        # Rows of a triangle: row k has k + 1 places, and begins at k (k + 1) / 2.
        high = ((np.sqrt(8.0 * place + 1) - 1) / 2).astype(np.int64)
        high -= high * (high + 1) // 2 > place
        high += (high + 1) * (high + 2) // 2 <= place
        low = place - high * (high + 1) // 2
        return jobs, _beside_seal(low), _beside_seal(high)

    def portion(self, numbers: Numbers) -> Portion:
        jobs, low, high = self.bits(numbers)
        records = self._records[jobs].astype(np.int64)
        places = np.arange(len(numbers))
        records[places, low // 32] ^= 1 << low % 32
        records[places, high // 32] ^= np.where(low == high, 0, 1 << high % 32)
        used = _sealed(records)
        work = Workload(
            records[:, None].astype(np.uint32),
            used[:, None],
            np.ones(len(numbers), np.int64),
            _TIMEOUT,
            _LIMIT,
            may_go_on=True,
        )
        return Portion(numbers, self._ram, [recover(submit(work), _DRAIN)], work)

    def judge(self, stage: Stage, portion: Portion, observed: list[Observed]) -> dict[int, str]:
        (found,) = observed
        verdict = Verdict(len(portion.numbers))
        most = _LIMIT * self.circuit.configuration.data_bytes
        expected = stage.expected(self._ram, portion.work, most)
        expect_answers(verdict, found)
        slow = compare(verdict, self._ram, portion.work, expected, found)
        expect_cleared(verdict, found)
        jobs, low, high = self.bits(portion.numbers)
        np.add.at(self.codes, (jobs[~slow], found.field("CODE")[~slow] % len(Status)), 1)
        np.add.at(self.slow, jobs, slow)
        return {
            place: f"{self.jobs[jobs[place]].name}, bits {low[place]} and {high[place]}: {reason}"
            for place, reason in verdict.reasons.items()
        }

    def rows(self) -> list[dict[str, object]]:
        """Return the instances that ran, by job."""
        result: list[dict[str, object]] = []
        for number, job in enumerate(self.jobs):
            refused = self.codes[number, Status.BAD_SEAL : Status.PAST_MEMORY + 1]
            result.append(
                {
                    "record": job.name,
                    "words": int(job.used[0]),
                    "pairs": int(self._pairs[number]),
                    "instances": int(self.codes[number].sum() + self.slow[number]),
                    "executed": int(self.codes[number, Status.OK]),
                    "refused or stopped": int(refused.sum()),
                    "still running": int(self.slow[number]),
                }
            )
        return result


def _beside_seal(bits: Numbers) -> Numbers:
    """Return the numbers in a record of the bits that are not in the seal."""
    return np.asarray(bits + _SEAL.width * (bits >= _SEAL.low))


def _filled(job: ShortJob) -> Numbers:
    """Return the record of ``job``, followed by words that a flipped bit can enable."""
    record = job.records[0].astype(np.int64)
    for name, field in RECORD.items():
        if field.word >= job.used[0]:
            record[field.word] = next((value for part, value in _BEHIND.items() if part in name), 0)
    return record


def _sealed(records: Numbers) -> Numbers:
    """Seal (instances, 32) words in place; return the number of words in use of each."""
    records[:, 0] &= (1 << _SEAL.low) - 1
    used = np.asarray(Fields(records.T).used)
    folded = np.where(np.arange(RECORD_WORDS) < used[:, None], records, 0)
    folded = np.bitwise_xor.reduce(folded, axis=1)
    folded ^= folded >> 16
    folded ^= folded >> 8
    records[:, 0] |= (folded & 0xFF ^ RECORD_SEAL) << _SEAL.low
    return used
