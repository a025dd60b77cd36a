"""A plugin for pytest: ``--cppsim=always`` runs a suite for ``amaranth.sim`` in compiled code.

``--cppsim-cover`` measures the coverage of all tests there.

pytest loads it wherever cppsim is installed; without ``--cppsim`` it changes nothing and imports
nothing. The summary counts the cycles in compiled code, gives the reason for simulations without
it, and names the tests in which Python ran at every edge, with the lines at which they waited.
Tests and their imports need no change.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from .mode import Mode, set_default_mode

_NAME = "cppsim"
_COVER = "cppsim coverage"
_FILE = "cppsim.info"
_MOST_AT_ONCE = 32
_SLOW = 1_000
"""A test in which Python ran less often, some 3 ms, is not named."""
_NAMED = 10
_LINES = 2
"""Most tests that the summary names, and lines of each."""
_OUTSIDE = "outside of tests"
_CURE = "tick().until(…) and .repeat(n) wait in compiled code"
_CHECKS = (
    "mode check compares both simulators at every point in time, which takes 6 to 8 times the time"
    " of Amaranth's alone (off)"
)


class Tally:
    """Counts simulations, and the cycles of their clocks.

    Attributes
    ----------
    reasons : Counter
        The simulations by the reason why compiled code did not run them, empty if it did.
    cycles : Counter
        ``"all"`` cycles, and those in ``"compiled"`` code.
    test : str
        The test that makes simulations now.
    waiting : dict
        By test: how often Python ran, the cycles, and samples by line.
    """

    def __init__(self) -> None:
        self.reasons: Counter[str] = Counter()
        self.cycles: Counter[str] = Counter()
        self.test = _OUTSIDE
        self.waiting: dict[str, tuple[int, int, dict[str, int]]] = {}
        self._open: list[Any] = []

    def add(self, engine: Any) -> None:
        """Register the engine of a simulation that has not run yet."""
        self._open.append(engine)
        if len(self._open) > _MOST_AT_ONCE:
            self._count(self._open.pop(0))

    def close(self) -> None:
        """Count all simulations, and release them."""
        while self._open:
            self._count(self._open.pop())

    def _count(self, engine: Any) -> None:
        compiled, total = engine.cycles()
        self.cycles.update(compiled=compiled, all=total)
        self.reasons[engine.reason] += 1
        if engine.compiled:
            # Amaranth is imported if there is an engine.
            from .running.stops import text_of

            stops, cycles, lines = self.waiting.get(self.test, (0, 0, {}))
            found = {text_of(line): count for line, count in engine.stops.lines.items()}
            merged = dict(Counter(lines) + Counter(found))
            self.waiting[self.test] = stops + engine.stops.count, cycles + total, merged

    def add_counts(self, counts: Mapping[str, Mapping[str, Any]]) -> None:
        """Add the `counts` of another tally, which has other tests."""
        self.reasons.update(counts.get("reasons", {}))
        self.cycles.update(counts.get("cycles", {}))
        self.waiting.update(counts.get("waiting", {}))

    def counts(self) -> dict[str, dict[str, Any]]:
        """Return all counts as plain data."""
        waiting = {test: x for test, x in self.waiting.items() if _is_slow(*x[:2])}
        return {"reasons": dict(self.reasons), "cycles": dict(self.cycles), "waiting": waiting}

    def lines(self) -> Iterator[str]:
        """Yield the lines of the summary, the most frequent reason first."""
        compiled, total = self.reasons[""], self.reasons.total()
        yield (
            f"compiled code ran {self.cycles['compiled']:,} of {self.cycles['all']:,} cycles,"
            f" in {compiled} of {total} simulations"
        )
        for reason, count in self.reasons.most_common():
            if reason:
                yield f"{count} in Amaranth's simulator: {reason}"

    def slow_lines(self) -> Iterator[str]:
        """Yield lines for the tests that ran in Python at every edge, the slowest first."""
        slow = [(stops, test) for test, (stops, n, _) in self.waiting.items() if _is_slow(stops, n)]
        if not slow:
            return
        slow.sort(key=lambda x: (-x[0], x[1]))
        most = f", and most in these {_NAMED}" if len(slow) > _NAMED else ""
        yield f"Python ran in at least every other cycle of {len(slow)} tests{most};"
        yield _CURE
        for stops, test in slow[:_NAMED]:
            _, cycles, lines = self.waiting[test]
            yield f"{test}: {stops:,} times in {cycles:,} cycles"
            for line, _ in Counter(lines).most_common(_LINES):
                yield f"  {line}"


def _is_slow(stops: int, cycles: int) -> bool:
    """Return whether a test is named: Python ran often, and at most of the edges."""
    return stops >= max(_SLOW, cycles / 2)


class _Covering:
    """The hooks of a process with tests whose coverage goes to ``file``."""

    def __init__(self, file: str, *, toggles: bool) -> None:
        from .coverage import Coverage  # Amaranth, which only these runs need

        self._file = file
        self._coverage = Coverage(toggles=toggles)
        self._coverage.__enter__()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._coverage.test = item.nodeid
        try:
            return (yield)
        finally:
            self._coverage.test = ""

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output[_COVER] = self._coverage.data()
        else:
            self._coverage.write_lcov(self._file)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Add the counts of a worker of pytest-xdist."""
        data = getattr(node, "workeroutput", {}).get(_COVER)
        if data is not None:
            self._coverage.add_data(data)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        terminalreporter.section(f"cppsim, coverage in {self._file}")
        terminalreporter.write(self._coverage.table())

    def pytest_unconfigure(self) -> None:
        self._coverage.__exit__()


class _Plugin:
    """The hooks of a process that runs tests."""

    def __init__(self, mode: Mode) -> None:
        self.mode, self.tally = mode, Tally()
        # Amaranth, which only these runs need.
        from .simulator import substitute

        set_default_mode(mode)
        self._undo: Callable[[], None] = substitute(self.tally.add)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        self.tally.close()  # simulators that earlier fixtures made and did not run
        self.tally.test = item.nodeid

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Iterator[None]:
        try:
            return (yield)
        finally:
            self.tally.close()

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self.tally.close()
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output[_NAME] = self.tally.counts()

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Add the counts of a worker of pytest-xdist."""
        self.tally.add_counts(getattr(node, "workeroutput", {}).get(_NAME, {}))

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self.tally.reasons:
            terminalreporter.section(f"cppsim, mode {self.mode.value}")
            checked = self.mode is Mode.CHECK
            more = [_CHECKS] if checked else self.tally.slow_lines()
            for line in (*self.tally.lines(), *more):
                terminalreporter.write_line(line)

    def pytest_unconfigure(self) -> None:
        self._undo()
        set_default_mode(None)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup(_NAME, "Amaranth's simulator, compiled")
    group.addoption(
        "--cppsim",
        choices=[mode.value for mode in Mode],
        help="simulate in compiled code (always), in Amaranth's simulator (off), or in both and "
        "compare (check); default: off",
    )
    group.addoption(
        "--cppsim-cover",
        nargs="?",
        const=_FILE,
        metavar="FILE",
        help="simulate in compiled code, and write which statements and branches of the designs "
        f"were reached to FILE for LCOV; default: {_FILE}",
    )
    group.addoption(
        "--cppsim-cover-toggles",
        action="store_true",
        help="with --cppsim-cover: count the changes of each bit of each signal as well",
    )


def pytest_configure(config: pytest.Config) -> None:
    chosen = config.getoption("--cppsim")
    file, toggles = (config.getoption(x) for x in ("--cppsim-cover", "--cppsim-cover-toggles"))
    if toggles and file is None:
        raise pytest.UsageError("--cppsim-cover-toggles: expected --cppsim-cover before it")
    if file is not None:
        _expect_replaceable(Path(file))
        if chosen == Mode.OFF.value:
            raise pytest.UsageError("--cppsim-cover: needs compiled code; expected --cppsim=always")
        chosen = chosen or Mode.ALWAYS.value
    if chosen is None and _NAME in (config.getoption("plugins") or ()):
        raise pytest.UsageError("-p cppsim: loads the plugin and no more; expected --cppsim=always")
    if chosen not in (None, Mode.OFF.value):
        mode = Mode(chosen)
        config.pluginmanager.register(_Plugin(mode), f"{_NAME} in {mode.value}")
    if file is not None:
        config.pluginmanager.register(_Covering(file, toggles=bool(toggles)), _COVER)


def _expect_replaceable(file: Path) -> None:
    """Expect a tracefile or a new file: not the test that follows the option.

    Raises ``UsageError``.
    """
    if file.is_file():
        with file.open("rb") as content:
            good = content.read(3) in (b"", b"TN:")
    else:
        good = not file.exists() and file.parent.is_dir()
    if not good:
        raise pytest.UsageError(
            f"--cppsim-cover: {file} is not a tracefile of LCOV; expected a new file in a folder, "
            f"or none as in --cppsim-cover={_FILE}"
        )
