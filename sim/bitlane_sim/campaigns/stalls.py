"""Cycles of the speed contract's jobs while the memory stalls, over many seeds.

Only time is judged: the RAM has a few words, so the bytes mean nothing.
"""

from collections.abc import Callable, Sequence

import numpy as np

from bitlane.driver import Command
from bitlane_rtl.abi import Lane, Op

from .. import commands
from .arrays import Numbers
from .plan import CampaignPlan, Portion, Stage
from .scoreboard import Observed, Verdict, expect_answers
from .stimulus import Workload, packed, stalls, submit, traffic_of

RAM = 512
"""Bytes."""

_STALL = 128
"""Chance in 256 that a channel stalls in a cycle, as in the speed contract."""

_LIMIT = 1 << 21
_TIMEOUT = 1 << 20
_SIZE = 1 << 16

Commands = Sequence[Command]

WORKS: dict[str, Callable[[], Commands]] = {
    "64 KiB NOT": lambda: [commands.logic(Op.NOT, _SIZE)],
    "64 KiB XOR": lambda: [commands.logic(Op.XOR, _SIZE)],
    "64 B NOT": lambda: [commands.logic(Op.NOT, 64)],
    "12 times 64 B NOT": lambda: commands.queue(Op.NOT, 12, 64),
    "12 times 64 B XOR": lambda: commands.queue(Op.XOR, 12, 64),
    "12 times 64 B NOT, Y at odd bytes": lambda: commands.queue(Op.NOT, 12, 64, y=1),
    "12 times 64 B NOT, A at odd bytes": lambda: commands.queue(Op.NOT, 12, 64, a=1),
    "256 rows of 64 B at odd addresses": lambda: [commands.rows(256)],
    "256 rows of 64 B at odd addresses, XOR": lambda: [commands.rows(256, Op.XOR)],
    "gather of 16-bit elements": lambda: [commands.gather(4096)],
    "scatter of 16-bit elements": lambda: [commands.scatter(4096)],
    "64 KiB COUNT, 8 to 32 bits": lambda: [commands.count(Lane.BITS_8, Lane.BITS_32, _SIZE)],
    "64 KiB COUNT, 64 to 8 bits": lambda: [commands.count(Lane.BITS_64, Lane.BITS_8, _SIZE)],
    "256 rows of 256 B against one, row sums": lambda: [commands.against_one(256, 256)],
    "256 pairs of rows of 256 B, row sums": lambda: [commands.pairs(256, 256)],
    "256 pairs of rows of 255 B at odd addresses, row sums": lambda: [commands.odd_pairs(256, 255)],
    "1024 rows of 8 B against one, row sums": lambda: [commands.against_one(1024, 8)],
}
"""The jobs of the contract, by name."""


class StallPlan(CampaignPlan):
    """Each of ``works``, all by default, with ``seeds`` seeds.

    Attributes
    ----------
    cycles : ndarray
        (works, seeds), from the doorbell to the last write response; 0 if it has not run.
    beats : ndarray
        (works,): beats of the busiest port.
    """

    def __init__(self, stage: Stage, seeds: int, works: Sequence[str] | None = None) -> None:
        self.circuit = stage.circuit
        self.works = list(WORKS if works is None else works)
        self.instances = len(self.works) * seeds
        self.replay = (
            f"bitlane campaign stalls --config '{self.circuit.options}' --seeds {seeds}"
            " --replay {number}"
        )
        self._seeds = seeds
        self._ports = ["r", "r_b", "w"] if self.circuit.configuration.two_ports else ["r", "w"]
        self._ram = np.zeros(self.circuit.ram_bytes, np.uint8)
        self.cycles = np.zeros((len(self.works), seeds), np.int64)
        self.beats = np.zeros(len(self.works), np.int64)
        self._records, self._used, self._counts = packed([WORKS[name]() for name in self.works])

    def portion(self, numbers: Numbers) -> Portion:
        works, seeds = np.divmod(numbers, self._seeds)
        settings = stalls(lambda _: _STALL) | {"memory__seed": seeds + 1}
        work = Workload(
            self._records[works], self._used[works], self._counts[works], _TIMEOUT, _LIMIT, settings
        )
        program = traffic_of(submit(work), ["doorbell", "b", *self._ports])
        return Portion(numbers, self._ram, [program], work)

    def judge(self, stage: Stage, portion: Portion, observed: list[Observed]) -> dict[int, str]:
        (found,) = observed
        verdict = Verdict(len(portion.numbers))
        expect_answers(verdict, found)
        verdict.expect(found.results["came"] != 0, lambda _: f"no end within {_LIMIT:,} cycles")
        verdict.expect(
            found.results["FAULT"] == 0, lambda k: f"FAULT is {int(found.results['FAULT'][k]):#x}"
        )
        works, seeds = np.divmod(portion.numbers, self._seeds)
        results = {name: x.astype(np.int64) for name, x in found.results.items()}
        self.cycles[works, seeds] = results["b__last"] - results["doorbell__last"]
        beats = np.maximum.reduce([results[f"{port}__count"] for port in self._ports])
        np.maximum.at(self.beats, works, beats)
        return {
            place: f"{self.works[works[place]]}, seed {seeds[place] + 1}: {reason}"
            for place, reason in verdict.reasons.items()
        }

    def rows(self) -> list[dict[str, object]]:
        """Return cycles by work, and the ratio of the median to the bound of the busiest port."""
        result: list[dict[str, object]] = []
        for work, cycles, beats in zip(self.works, self.cycles, self.beats.tolist(), strict=True):
            ran = cycles[cycles > 0]
            if not ran.size:
                continue
            median = float(np.median(ran))
            passed = 1 - _STALL / 256
            result.append(
                {
                    "work": work,
                    "seeds": int(ran.size),
                    "least": int(ran.min()),
                    "median": f"{median:,.1f}".removesuffix(".0"),
                    "most": int(ran.max()),
                    "of slowest port": f"{beats / passed / median:.4f}",
                    "at worst": f"{beats / passed / int(ran.max()):.4f}",
                }
            )
        return result
