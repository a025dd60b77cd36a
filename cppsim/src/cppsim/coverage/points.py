"""The points of a design that coverage counts, with their names and lines in source files."""

import contextlib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from amaranth import hdl
from amaranth.lib import data, enum

from ..amaranth_internals import ast, named_signals, statements_of

_AMARANTH = str(Path(str(hdl.__file__)).parent)

_VIEWS = (data.__file__, enum.__file__)
"""The files of `View.eq` and `EnumView.eq`, whose lines all assignments to views have."""


class CoveragePoint(NamedTuple):
    """A statement, a branch, or a change of one bit of a signal.

    Attributes
    ----------
    kind : str
        ``statement``, ``branch`` or ``toggle``.
    path : str
        The names of the modules from the top level down to the one with the point, with dots.
    file, line : str and int
        Where the statement, the branch or the signal is in a source file.
    name : str
        The clock domain of a statement; the domain and the case of a branch; the signal, the bit
        and the change of a toggle.
    group, number : int
        The number of the statement, or of the switch or bit, among those of one module on this
        line; and the number of the case or change, of a statement 0.
    """

    kind: str
    path: str
    file: str
    line: int
    name: str
    group: int
    number: int


_Derived = tuple[int, int, tuple[int, ...]]
"""A condition among those of a design: the statement, the condition, and those to subtract."""


class DesignPoints:
    """The points of a prepared design, and how their counts follow from its counters.

    Points without a line in a file of a user are left out.
    """

    def __init__(self, design: Any, *, toggles: bool) -> None:
        self._sources: list[_Derived] = []
        self._bits: list[bool] = []
        self._statement = 0
        self._groups: Counter[tuple[str, str, int]] = Counter()
        self.points: list[CoveragePoint] = []
        for path, domain, statements in statements_of(design):
            self._walk(path, domain, statements)
        for path, name, signal in named_signals(design) if toggles else ():
            self._toggles(path, name, signal)

    def counts(
        self, toggles: Sequence[tuple[int, int]], conditions: Sequence[Sequence[int]]
    ) -> Iterator[int]:
        """Yield the count of each of `points`; arguments are what `Counters.take` returns."""
        for statement, number, others in self._sources:
            found = conditions[statement]
            yield found[number] - sum(found[other] for other in others)
        for pair, shown in zip(toggles, self._bits, strict=True):
            if shown:
                yield from pair

    def _walk(self, path: str, domain: str, statements: Sequence[Any]) -> None:
        for statement in statements:
            number, self._statement = self._statement, self._statement + 1
            if isinstance(statement, ast.Switch):
                self._branches(path, domain, number, statement)
                for _, inner, _ in statement.cases:
                    self._walk(path, domain, inner)
            elif _is_users(statement.src_loc) and statement.src_loc[0] not in _VIEWS:
                group = self._group(f"{path}:statements", statement.src_loc)
                self._add("statement", path, statement.src_loc, domain, group, 0)
                self._sources.append((number, 0, ()))

    def _branches(self, path: str, domain: str, number: int, switch: Any) -> None:
        if not _is_users(switch.src_loc):
            return
        group, cases = self._group(path, switch.src_loc), switch.cases
        tests = _tests_of(switch)
        for index, (patterns, _, src_loc) in enumerate(cases):
            name = f"{domain}: {_case(switch, patterns, index, tests)}"
            self._add("branch", path, src_loc or switch.src_loc, name, group, index)
            self._sources.append((number, index + 1, ()))
        if tests and cases[-1][0] is not None:
            self._add("branch", path, switch.src_loc, f"{domain}: else", group, len(cases))
            self._sources.append((number, 0, tuple(range(1, len(cases) + 1))))

    def _toggles(self, path: str, name: str, signal: Any) -> None:
        shown = _is_users(signal.src_loc)
        for bit in range(len(signal)):
            self._bits.append(shown)
            if shown:
                group = self._group(path, signal.src_loc)
                for change, text in enumerate(("0->1", "1->0")):
                    about = f"{name}[{bit}] {text}" if len(signal) > 1 else f"{name} {text}"
                    self._add("toggle", path, signal.src_loc, about, group, change)

    def _group(self, path: str, src_loc: Any) -> int:
        key = (path, *src_loc)
        self._groups[key] += 1
        return self._groups[key] - 1

    def _add(self, kind: str, path: str, src_loc: Any, name: str, group: int, number: int) -> None:
        file, line = src_loc
        self.points.append(CoveragePoint(kind, path, file, line, name, group, number))


def _is_users(src_loc: Any) -> bool:
    """Return whether ``src_loc`` is a line of the user's own files.

    `amaranth.hdl` adds statements with its own lines. The signal of a state machine is made when a
    ``with`` block ends, and has a line of `contextlib`.
    """
    return src_loc is not None and not str(src_loc[0]).startswith((_AMARANTH, contextlib.__file__))


def _tests_of(switch: Any) -> int:
    """Return the number of tests of an ``m.If`` with its ``m.Elif``; 0 for another switch.

    Amaranth has one bit for each test, the first one in the lowest.
    """
    if not isinstance(switch.test, ast.Concat):
        return 0
    size, cases = len(switch.test), [patterns for patterns, _, _ in switch.cases]
    tests = [x for x in cases if x is not None]
    expected = [(("1" + "-" * index).rjust(size, "-"),) for index in range(size)]
    return size if tests == expected and cases[: len(tests)] == tests else 0


def _case(switch: Any, patterns: Any, index: int, tests: int) -> str:
    """Return the name of a case."""
    if tests:
        return "else" if patterns is None else "elif" if index else "if"
    if patterns is None:
        return "default"
    return f"case {', '.join(patterns)}"
