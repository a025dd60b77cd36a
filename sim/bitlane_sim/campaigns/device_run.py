"""Run cases: steps of random trials on a simulated device, whose memory stalls, fails and hangs.

A case is a seed, and the configuration of a circuit as in the URL of a simulator. Every byte of the
memory is compared with the model's after each step. Never goes on after a failure.
"""

import os
from collections.abc import Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from urllib.parse import urlencode

import numpy as np

from bitlane.api import Device
from bitlane.command_line.workers import first_done
from bitlane.driver import Command, Driver, encode
from bitlane.errors import BitlaneError, DeviceFault, LayoutError, UnsupportedError
from bitlane.terminal import show
from bitlane_rtl.abi import BIT_OPS, Lane, Mode, Status

from ..device.link import open_link
from ..device.simulator import Simulator
from ..system import Hang, Response
from .arrays import Bytes
from .trials import SIZE, Trial, random_trial

MEMORY = "64KiB"
"""Memory of every random circuit."""


@dataclass(frozen=True, slots=True)
class Case:
    """A case; ``configuration`` holds the options of a simulator's URL.

    ``instance``: the number of one of many that were run at once.
    """

    seed: int
    configuration: str
    instance: int | None = None

    @property
    def url(self) -> str:
        """The device's URL."""
        return f"sim:compiled?{self.configuration}"

    def __str__(self) -> str:
        number = "" if self.instance is None else f"/{self.instance}"
        return f"{self.seed}{number}:{self.configuration}"


def parse_case(text: str) -> Case:
    """Return the case that ``text`` describes. Raises ``BitlaneError``."""
    head, colon, configuration = text.partition(":")
    seed, slash, instance = head.partition("/")
    if not colon or not seed.isdecimal() or (slash and not instance.isdecimal()):
        raise BitlaneError(
            f"case: {text!r}; expected SEED:CONFIGURATION, like '7:width=32', or"
            " SEED/INSTANCE:CONFIGURATION"
        )
    return Case(int(seed), configuration, int(instance) if slash else None)


def random_case(seed: int) -> Case:
    """Return a case with a circuit of random size and, mostly, all features."""
    random = np.random.default_rng(seed)

    def some(names: list[str], least: int) -> str:
        count = int(random.integers(least, len(names) + 1))
        return ",".join(sorted(random.permutation(names)[:count].tolist()))

    options: dict[str, object] = {
        "width": random.choice([32, 32, 64, 64, 128]),
        "ports": random.integers(1, 3),
        "loops": random.integers(1, 7),
        "slots": random.choice([2, 4, 16, 32]),
        "memory": MEMORY,
    }
    if random.random() < 0.3:
        options["ops"] = some([op.name.lower() for op in BIT_OPS], 1)
    if random.random() < 0.3:
        options["lanes"] = some([str(lane.bits) for lane in Lane], 1)
    if random.random() < 0.3:
        others = some([mode.name.lower() for mode in Mode if mode is not Mode.DENSE], 0)
        options["modes"] = f"dense,{others}".strip(",")
    if random.random() < 0.2:
        options["width"] = random.choice([32, 64])
        sizes = [[1, 2, 3, 8], [64, 128, 512], [2, 16], [1, 4, 16]]
        options["search"] = ",".join(str(random.choice(each)) for each in sizes)
    return Case(seed, urlencode(options, safe=","))


_PATIENCE = 500
"""Value of TIMEOUT, in cycles, for a memory that hangs."""

_PATIENT = 1 << 20
"""The same for a memory that only stalls."""


_CASE_SECONDS = 1800.0
"""Seconds that a case may take."""


class Mismatch(Exception):
    """The device and the model differ."""


@dataclass(slots=True)
class Outcome:
    """The outcome of a case: the amount of work, and the failure, if any."""

    case: Case
    steps: int = 0
    commands: int = 0
    faults: int = 0
    failure: str = ""

    def __str__(self) -> str:
        """The line that replays a failure."""
        return f"bitlane soak --replay '{self.case}'  # step {self.steps}: {self.failure}"


def run_apart(case: Case, steps: int) -> Outcome:
    """Execute `run_case` with a temporary cache, because the circuit is used only once."""
    with TemporaryDirectory(prefix="bitlane-soak-") as folder, _caches_in(folder):
        return run_case(case, steps)


@contextmanager
def _caches_in(folder: str) -> Iterator[None]:
    names = ("BITLANE_CACHE", "CPPSIM_CACHE")
    before = {name: os.environ.get(name) for name in names}
    os.environ |= dict.fromkeys(names, folder)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def run_case(case: Case, steps: int, vcd: Path | None = None) -> Outcome:
    """Run ``case`` up to its end, or its first failure; waveforms go to ``vcd``.

    Raises ``LinkError`` for a bad one.
    """
    outcome = Outcome(case)
    link = open_link(case.url + (f"&{urlencode({'vcd': vcd})}" if vcd else ""))
    with Driver(link) as driver:
        soak = _Soak(driver, link.simulator, outcome)
        for number in range(steps):
            outcome.steps = number
            try:
                soak.step(np.random.default_rng([case.seed, number]))
            except Exception as error:  # noqa: BLE001, whatever it is, it is to be replayed
                kind = "" if isinstance(error, Mismatch) else f"{type(error).__name__}: "
                outcome.failure = " ".join(f"{kind}{error}".split())
                return outcome
        outcome.steps = steps
    return outcome


class _Soak:
    """A simulated device, the place of trials in its memory, and what can be done with it."""

    def __init__(self, driver: Driver, simulator: Simulator, outcome: Outcome) -> None:
        self._driver = driver
        self._device = Device(driver)
        self._simulator = simulator
        self._place = driver.allocate(SIZE)
        start = self._place.address - driver.geometry.memory_base
        self._memory: Bytes = self._simulator.memory[start : start + SIZE]
        self._outcome = outcome

    def step(self, random: np.random.Generator) -> None:
        """Slow the memory down or not, fill it, and do one of the things below."""
        if random.random() < 0.3:
            self._simulator.set_latency(int(random.choice([0, 1, 7, 30, 100])))
            chance = float(random.choice([0, 0.1, 0.5, 0.9]))
            self._simulator.set_stalls(chance, seed=int(random.integers(1 << 31)))
        self._memory[:] = random.integers(0, 256, SIZE, np.uint8)
        kind = random.random()
        if self._driver.geometry.search and kind < 0.1:
            self._search(random)
        elif kind < 0.2:
            self._fail(random)
        elif kind < 0.202:
            self._hang(random)
        elif kind < 0.25:
            self._flip(random)
        else:
            self._work(random)

    def _trials(self, random: np.random.Generator, most: int) -> tuple[list[Trial], list[Command]]:
        """Trials that this circuit can do, and their commands."""
        trials: list[Trial] = []
        commands: list[Command] = []
        wanted = int(random.integers(1, most + 1))
        while len(trials) < wanted:
            trial = random_trial(random, self._driver.geometry)
            try:
                commands += trial.commands(self._driver.geometry, self._place.address)
            except (LayoutError, UnsupportedError):
                continue
            trials.append(trial)
        self._outcome.commands += len(commands)
        return trials, commands

    def _work(self, random: np.random.Generator) -> None:
        """Some trials, one behind the other."""
        trials, commands = self._trials(random, 4)
        expected = self._memory.copy()
        for trial in trials:
            trial.apply(expected)
        self._driver.run(commands)
        self._compare(expected, trials)

    def _search(self, random: np.random.Generator) -> None:
        """The nearest rows, of those in the memory itself."""
        geometry = self._driver.geometry
        assert geometry.search is not None
        width = geometry.search.row_bytes
        rows, queries = (
            random.integers(0, 256, (count, width), np.uint8) & 3
            for count in random.integers(1, [200, 20])
        )
        count = int(random.integers(1, geometry.search.nearest + 1))
        found = self._device.search(queries, rows, count)
        distances = np.bitwise_count(queries[:, None] ^ rows).sum(axis=-1, dtype=np.int32)
        order = np.argsort(distances, axis=1, kind="stable")[:, :count]
        wanted = np.take_along_axis(distances, order, axis=1), order
        for got, want in zip(found, wanted, strict=True):
            if not np.array_equal(got[:, : want.shape[1]], want):
                raise Mismatch(f"search of {queries.shape} in {rows.shape}, {count} nearest")
        self._outcome.commands += 1

    def _fail(self, random: np.random.Generator) -> None:
        """A trial while a byte of the memory cannot be read, or not be written."""
        (trial,), commands = self._trials(random, 1)
        read = bool(random.integers(2))
        touched = trial.read() if read else trial.written()
        some = np.flatnonzero(touched) if random.random() < 0.8 else np.arange(SIZE)
        offset = int(random.choice(some))
        response = Response(random.choice([Response.SLVERR, Response.DECERR]))
        self._simulator.inject_error(
            self._place.address + offset, read=read, write=not read, response=response
        )
        code = Status.READ_ERROR if read else Status.WRITE_ERROR
        try:
            came = self._run_faulty(trial, commands, code)
        finally:
            self._simulator.inject_error()
        if touched[offset] and not came:
            raise Mismatch(f"no {code.name} at {offset:#x}: {trial}")

    def _hang(self, random: np.random.Generator) -> None:
        """A trial while the memory does not answer at all."""
        (trial,), commands = self._trials(random, 1)
        hang = Hang(random.choice([Hang.NO_ANSWER, Hang.NO_ACCEPT]))
        self._driver.write_register("TIMEOUT", _PATIENCE)
        self._simulator.inject_hang(**{str(random.choice(["read", "write"])): hang})
        try:
            came = self._run_faulty(trial, commands, Status.TIMEOUT)
        finally:
            self._simulator.inject_hang()
            self._driver.clear()
            self._driver.write_register("TIMEOUT", _PATIENT)
        if not came:
            raise Mismatch(f"no TIMEOUT: {trial}")

    def _run_faulty(self, trial: Trial, commands: list[Command], code: Status) -> bool:
        """Whether the trial ended with ``code``; every byte must be as before, or as after it."""
        before = self._memory.copy()
        expected = before.copy()
        trial.apply(expected)
        try:
            self._driver.run(commands)
        except DeviceFault as fault:
            if fault.code != code:
                raise Mismatch(f"{fault}; expected {code.name}: {trial}") from fault
            self._outcome.faults += 1
            changed = self._memory != before
            expected = np.where(changed, expected, before)
            self._compare(expected, [trial])
            return True
        self._compare(expected, [trial])
        return False

    def _flip(self, random: np.random.Generator) -> None:
        """A record with a wrong bit, which must be refused and change nothing."""
        _, commands = self._trials(random, 1)
        words = encode(commands[0])
        # One of CONTROL may lengthen the record by words that are in the ring and make it good.
        bit = int(random.integers(32, 32 * words.size))
        words[bit // 32] ^= np.uint32(1 << bit % 32)
        before = self._memory.copy()
        try:
            self._driver.run([words])
        except DeviceFault as fault:
            if not Status.OK < fault.code < Status.READ_ERROR:
                raise Mismatch(
                    f"{fault}; expected a refusal: bit {bit} of {commands[0]}"
                ) from fault
            self._outcome.faults += 1
        else:
            raise Mismatch(f"not refused: bit {bit} of {commands[0]}")
        if not np.array_equal(self._memory, before):
            raise Mismatch(f"refused, and executed: bit {bit} of {commands[0]}")

    def _compare(self, expected: Bytes, trials: list[Trial]) -> None:
        wrong = np.flatnonzero(self._memory != expected)
        if wrong.size:
            raise Mismatch(f"{wrong.size} bytes differ, the first at {wrong[0]:#x}: {trials}")


def run_cases(
    executor: Executor, workers: int, deadline: float, work: tuple[int, int, str | None]
) -> list[Outcome]:
    """Run cases that begin before ``deadline``, until one fails; return their outcomes.

    ``work``: the first seed, the steps of a case, and the configuration of every case, or None for
    random ones. At least one case for each worker is run.
    """
    first, steps, configuration = work
    outcomes: list[Outcome] = []
    running: dict[Future[Outcome], Case] = {}
    seeds = count(first)
    while True:
        begun = bool(running or outcomes)
        in_time = monotonic() < deadline and not any(outcome.failure for outcome in outcomes)
        more = in_time or not begun
        while more and len(running) < workers:
            seed = next(seeds)
            if configuration is None:
                run, case = run_apart, random_case(seed)
            else:
                run, case = run_case, Case(seed, configuration)
            running[executor.submit(run, case, steps)] = case
        if not running:
            return outcomes
        done = first_done(running, _CASE_SECONDS)
        outcomes += [_outcome(each, running.pop(each)) for each in done]
        left = max(0.0, deadline - monotonic()) / 60
        show(f"soak: {sum(x.commands for x in outcomes):,} commands, {left:.1f} minutes left")


def _outcome(done: Future[Outcome], case: Case) -> Outcome:
    """Return the outcome of ``case``; the end of its process is a failure, too."""
    try:
        return done.result()
    except BitlaneError:
        raise
    except Exception as error:  # noqa: BLE001, any error can be replayed
        return Outcome(case, failure=f"{type(error).__name__}: {' '.join(str(error).split())}")


def summary(outcomes: list[Outcome], minutes: float) -> str:
    """Return one line: what was run in ``minutes``."""
    circuits = len({outcome.case.configuration for outcome in outcomes})
    commands, steps, faults = (
        sum(getattr(outcome, name) for outcome in outcomes)
        for name in ("commands", "steps", "faults")
    )
    return (
        f"{circuits:,} configurations, {steps:,} steps, {faults:,} faults, {commands:,} commands"
        f" in {minutes:.1f} minutes, {commands / minutes:,.0f} a minute"
    )
