"""The fault matrix: each kind of fault, on each channel, from each cycle of short jobs on.

A fault is reported with its kind and port, unless it begins after the job's last handshake that it
affects. Every byte is unchanged or right. After CLEAR the same job writes the right bytes.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from bitlane_rtl.abi import Port, Status, register

from ..system import AXI_CHANNELS, Hang, Response
from ..system.ports import MEMORY_CHANNELS
from .arrays import Mask, Numbers, draw, noise
from .folder import geometry_of
from .jobs import jobs_of
from .plan import CampaignPlan, JobFailed, Portion, Stage
from .scoreboard import (
    Observed,
    Verdict,
    compare,
    compare_disturbed,
    expect_answers,
    expect_cleared,
    expect_fault,
)
from .stimulus import Workload, packed, recover, stalls, submit, traffic_of

_A, _B, _Y = (1 << port for port in (Port.READ_A, Port.READ_B, Port.WRITE))

_READS, _DATA = ("ar", "ar_b"), ("r", "r_b")


@dataclass(frozen=True, slots=True)
class FaultKind:
    """A kind of fault: ``settings`` of the harness, for good or, without ``ever``, for one cycle.

    Accesses to the bytes of ``stream`` fail. FAULT may report ``code`` and one of ``ports``, a
    bit mask. A hang must be reported if it begins up to the last handshake on the channels
    ``asks``, and cannot be reported if it begins after the last one on ``answers``.
    """

    name: str
    settings: dict[str, int]
    stream: str = ""
    code: Status = Status.OK
    ports: int = 0
    ever: bool = True
    asks: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()


def _silence(name: str, port: str, value: int, asks: tuple[str, ...], *more: str) -> FaultKind:
    """Return a hang: ``port`` of the harness; ``more``: channels of answers unless ``asks``."""
    ports = _A | _B if "ar" in asks else _Y
    return FaultKind(
        name, {port: value}, "", Status.TIMEOUT, ports, asks=asks, answers=more or asks
    )


def _errors() -> list[FaultKind]:
    kinds = []
    for response in (Response.SLVERR, Response.DECERR):
        for stream, port in (("A", _A), ("B", _B), ("Y", _Y)):
            way = "write" if stream == "Y" else "read"
            code = Status.WRITE_ERROR if stream == "Y" else Status.READ_ERROR
            settings = {f"memory__error_{way}": 1, "memory__error_response": int(response)}
            for ever in (True, False):
                name = f"{response.name} of {stream}{'' if ever else ', for a cycle'}"
                kinds.append(FaultKind(name, settings, stream, code, port, ever))
    return kinds


def _silences() -> list[FaultKind]:
    read, write = "memory__hang_read", "memory__hang_write"
    one = {name: 1 << bit for bit, name in enumerate(MEMORY_CHANNELS)}
    return [
        _silence("reads NO_ACCEPT", read, Hang.NO_ACCEPT, _READS),
        _silence("reads NO_ANSWER", read, Hang.NO_ANSWER, _READS, *_DATA),
        _silence("writes NO_ACCEPT", write, Hang.NO_ACCEPT, ("aw", "w")),
        _silence("writes NO_ANSWER", write, Hang.NO_ANSWER, ("aw", "w"), "b"),
        _silence("silence of AR", "mute", one["ar"], _READS),
        _silence("silence of R", "mute", one["r"], _READS, *_DATA),
        _silence("silence of AW", "mute", one["aw"], ("aw",)),
        _silence("silence of W", "mute", one["w"], ("w",)),
        _silence("silence of B", "mute", one["b"], ("aw", "w"), "b"),
    ]


KINDS = [FaultKind("reset", {"reset": 1}, ever=False), *_errors(), *_silences()]
"""All kinds, in the order of tables; the first is the reset."""


_TIMEOUT = 96
"""Value of TIMEOUT, in cycles."""

_DRAIN = 600
"""Cycles after CLEAR in which the memory recovers."""

_CLEAN = 20_000
"""Most cycles of a job without a fault."""

_GRACE = 40
"""Most cycles from a fault to its report, in which open bursts end."""

_EVER = (1 << 32) - 1


class FaultPlan(CampaignPlan):
    """All faults of all jobs, each job with ``seeds`` timings: 0 is a memory without waits.

    Attributes
    ----------
    jobs : list of ShortJob
    cycles : ndarray
        Of each job with each timing, (jobs, seeds), where nothing goes wrong.
    ran, seen : ndarray
        (jobs, kinds): instances, and instances that reported a fault.
    """

    def __init__(self, stage: Stage, seeds: int) -> None:
        self.circuit = stage.circuit
        self.jobs = jobs_of(geometry_of(self.circuit.configuration))
        self.replay = (
            f"bitlane campaign faults --config '{self.circuit.options}' --seeds {seeds}"
            " --replay {number}"
        )
        self._seeds = seeds
        two = self.circuit.configuration.two_ports
        self._channels = [x for x in AXI_CHANNELS if two or not x.endswith("_b")]
        self._ram = noise(1, np.arange(1), self.circuit.ram_bytes)[0]
        self._limit = _CLEAN
        self._run_clean(stage)
        self._list()
        shape = len(self.jobs), len(KINDS)
        self.ran, self.seen = np.zeros(shape, np.int64), np.zeros(shape, np.int64)

    def _run_clean(self, stage: Stage) -> None:
        """Measure the duration of each job and the cycles of its handshakes."""
        jobs = np.repeat(np.arange(len(self.jobs)), self._seeds)
        work = self._work(jobs, np.tile(np.arange(self._seeds), len(self.jobs)))
        program = recover(traffic_of(submit(work), self._channels), _DRAIN)
        (observed,) = stage.run(self._ram, [program], work.instances)
        verdict = Verdict(work.instances)
        expected = stage.expected(self._ram, work, self._limit)
        expect_answers(verdict, observed)
        compare(verdict, self._ram, work, expected, observed)
        for place, reason in verdict.reasons.items():
            raise JobFailed(f"{self.jobs[jobs[place]].name} without a fault: {reason}")
        shape = len(self.jobs), self._seeds
        began = observed.results["began"].astype(np.int64)
        self.cycles: Numbers = observed.results["came"].astype(np.int64).reshape(shape)
        # Cycles by the count of the harness; before 0 where there was none.
        self._first, self._last = (
            {
                name: (observed.results[f"{name}__{part}"].astype(np.int64) - began).reshape(shape)
                for name in self._channels
            }
            for part in ("first", "last")
        )
        self._limit = int(self.cycles.max()) + 2 * (_TIMEOUT + _GRACE)

    def _list(self) -> None:
        """List the job, timing, kind and cycle of each instance."""
        rows = []
        for job, seed in np.ndindex(self.cycles.shape):
            has_b = self.jobs[job].extent("B") is not None
            count = int(self.cycles[job, seed]) + 1
            for kind, each in enumerate(KINDS):
                if has_b or each.stream != "B":
                    rows.append(np.stack(np.broadcast_arrays(job, seed, kind, np.arange(count))))
        self._table: Numbers = np.concatenate(rows, axis=1).astype(np.int64)
        self.instances = self._table.shape[1]

    def _work(self, jobs: Numbers, seeds: Numbers) -> Workload:
        """Return the workload of ``jobs`` with the timings of ``seeds``."""
        records, used, counts = packed([job.commands for job in self.jobs])
        waits = seeds != 0
        settings = stalls(lambda channel: draw(2, seeds, channel, 100) * waits)
        settings["memory__latency"] = draw(2, seeds, "latency", 12) * waits
        settings["memory__seed"] = seeds
        return Workload(records[jobs], used[jobs], counts[jobs], _TIMEOUT, self._limit, settings)

    def portion(self, numbers: Numbers) -> Portion:
        jobs, seeds, kinds, cycles = self._table[:, numbers]
        work = self._work(jobs, seeds)
        names = sorted({name for kind in KINDS for name in kind.settings})
        for name in names:
            values = np.array([kind.settings.get(name, 0) for kind in KINDS])
            work.settings[name] = values[kinds]
        for place, name in enumerate(("error_first", "error_last")):
            extents = np.array(
                [
                    [(job.extent(kind.stream or "Y") or (0, 0))[place] for kind in KINDS]
                    for job in self.jobs
                ]
            )
            work.settings[f"memory__{name}"] = extents[jobs, kinds]
        ever = np.array([kind.ever for kind in KINDS])[kinds]
        work.settings["first"] = cycles
        work.settings["last"] = np.where(ever, _EVER, cycles)
        again = Workload(
            work.records,
            work.used,
            work.counts,
            work.timeout,
            self._limit,
            {"memory__seed": work.settings["memory__seed"], "first": _EVER},
        )
        return Portion(numbers, self._ram, [recover(submit(work), _DRAIN), submit(again)], work)

    def judge(self, stage: Stage, portion: Portion, observed: list[Observed]) -> dict[int, str]:
        disturbed, again = observed
        jobs, _, kinds, _ = self._table[:, portion.numbers]
        verdict = Verdict(len(portion.numbers))
        expected = stage.expected(self._ram, portion.work, self._limit)
        reset = kinds == 0
        others = Verdict(len(portion.numbers))
        expect_answers(others, disturbed)
        reported = compare_disturbed(others, self._ram, portion.work, expected, disturbed)
        codes = np.array([kind.code for kind in KINDS])[kinds]
        ports = np.array([kind.ports for kind in KINDS])[kinds]
        expect_fault(others, disturbed, codes, ports)
        self._expect_sense(others, portion.numbers, reported)
        self._expect_time(others, portion.numbers, disturbed)
        verdict.take(others, ~reset)
        self._expect_reset(verdict, reset, portion, disturbed, expected.memory)
        expect_cleared(verdict, disturbed)
        expect_answers(verdict, again)
        compare(verdict, self._ram, portion.work, expected, again)
        np.add.at(self.ran, (jobs, kinds), 1)
        np.add.at(self.seen, (jobs, kinds), reported & ~reset)
        return {
            place: f"{self._name(int(portion.numbers[place]))}: {reason}"
            for place, reason in verdict.reasons.items()
        }

    def _name(self, number: int) -> str:
        job, seed, kind, cycle = self._table[:, number].tolist()
        return f"{self.jobs[job].name}, timing {seed}, {KINDS[kind].name}, cycle {cycle}"

    def _expect_reset(
        self,
        verdict: Verdict,
        reset: Mask,
        portion: Portion,
        observed: Observed,
        right: NDArray[np.uint8],
    ) -> None:
        """Expect the state of power-on, unless the reset came after the job's end."""
        results = observed.results
        for name, value in (("STATUS", register("STATUS").reset), ("FAULT", 0)):
            verdict.expect(~reset | (results[name] == value), partial(_after_reset, name, results))
        retired = results["RETIRED"]
        verdict.expect(
            ~reset | (retired == 0) | (retired == portion.work.counts),
            lambda k: f"RETIRED is {int(retired[k])} after a reset",
        )
        old = observed.ram == self._ram
        verdict.expect_bytes((observed.ram == right) | old | ~reset[:, None], observed.ram, right)

    def _expect_time(self, verdict: Verdict, numbers: Numbers, observed: Observed) -> None:
        """Expect an end as early as without a fault, plus TIMEOUT for a silent channel."""
        jobs, seeds, kinds, _ = self._table[:, numbers]
        silent = np.array([kind.code is Status.TIMEOUT for kind in KINDS])[kinds]
        latest = self.cycles[jobs, seeds] + _TIMEOUT * silent + _GRACE
        came = observed.results["came"].astype(np.int64)
        verdict.expect(
            came <= latest, lambda k: f"an end after {came[k]} cycles, expected {latest[k]} at most"
        )

    def _expect_sense(self, verdict: Verdict, numbers: Numbers, reported: Mask) -> None:
        """Expect a report of every fault that began in time, and of none that began too late."""
        jobs, seeds, kinds, cycles = self._table[:, numbers]
        sure, never = np.zeros(len(numbers), bool), np.zeros(len(numbers), bool)
        for number, kind in enumerate(KINDS):
            mine = kinds == number
            if number == 0 or not mine.any():
                continue
            latest, possible = self._bounds(kind)
            sure |= mine & (cycles <= latest[jobs, seeds]) & kind.ever
            never |= mine & (cycles > possible[jobs, seeds])
        verdict.expect(reported | ~sure, lambda _: "no fault, though it began in time")
        verdict.expect(~reported | ~never, lambda _: "a fault, though it began too late")

    def _bounds(self, kind: FaultKind) -> tuple[Numbers, Numbers]:
        """Return the last cycles in which ``kind`` must be reported and in which it may be."""

        def last(*names: str) -> Numbers:
            return np.maximum.reduce([self._last[x] for x in names if x in self._last])

        if kind.code is Status.TIMEOUT:
            return last(*kind.asks), last(*kind.answers)
        if kind.stream == "Y":
            return last("w"), last("b")
        suffix = "_b" if kind.stream == "B" and "ar_b" in self._last else ""
        shared = "ar_b" not in self._last
        asked = self._first["ar"] if shared else last(f"ar{suffix}")
        return asked, last(f"r{suffix}")

    def rows(self) -> list[dict[str, object]]:
        """Return the instances that ran, by job and kind."""
        return [
            {
                "job": job.name,
                "kind": kind.name,
                "cycles": " to ".join(map(str, sorted({ends.min(), ends.max()}))),
                "instances": int(self.ran[number, place]),
                "seen": int(self.seen[number, place]),
            }
            for number, (job, ends) in enumerate(zip(self.jobs, self.cycles, strict=True))
            for place, kind in enumerate(KINDS)
            if self.ran[number, place]
        ]


def _after_reset(name: str, results: dict[str, NDArray[np.uint64]], instance: int) -> str:
    return f"{name} is {int(results[name][instance]):#x} after a reset"
