"""Assignments as nested choices, the way they were written, from Amaranth's flat lists of them.

A condition is then evaluated only in the branch that depends on it.
"""

from collections.abc import Collection, Sequence
from itertools import groupby, pairwise
from typing import Any

from .cells import CellWriter, bits_of
from .design import Bits, NotPlain

_Branch = tuple[int, int]
"""The number of a switch's cell, and of a branch there."""

_Step = tuple[tuple[_Branch, ...], Bits]
"""An assignment: the branches that lead to it, the outermost first, and the value."""

_Matched = tuple[Bits | None, Collection[str]]

_MOST = 1 << 15
"""The most choices of one signal."""

_SWITCHES = ("PriorityMatch", "Match")


class Decisions:
    """Writes lists of assignments of the netlist ``cells`` by means of ``writer``."""

    def __init__(self, cells: Sequence[Any], writer: CellWriter) -> None:
        self._cells = cells
        self._writer = writer
        self._known: dict[_Branch, _Matched] = {}
        self._values: dict[Bits, Bits] = {}
        """One object for each value that is matched: equal ones are then found by identity."""

    def result(self, cell: Any) -> Bits:
        """Return the result of an ``AssignmentList``.

        Raises ``NotPlain`` if it has no switch, or if it has more than `_MOST` choices: each bit
        has one for each position of an assignment to a part of a signal.
        """
        default = bits_of(cell.default)
        written = [
            (x.start, min(x.start + len(x.value), len(default)), self._path(int(x.cond)), x.value)
            for x in cell.assignments
        ]
        cuts = sorted({0, len(default)}.union(*((low, high) for low, high, *_ in written)))
        numbers = {cut: number for number, cut in enumerate(cuts)}
        if sum(numbers[high] - numbers[low] for low, high, *_ in written) > _MOST:
            text = f"{len(default)} bits are assigned at {len(written)} places"
            raise NotPlain(f"{text}; assign a shifted value instead")
        result: list[int] = []
        for low, high in pairwise(cuts):
            steps = [
                (path, bits_of(value[low - start : high - start]))
                for start, end, path, value in written
                if start <= low and high <= end
            ]
            result += self._after(default[low:high], steps, 0)
        return tuple(result)

    def _path(self, condition: int) -> tuple[_Branch, ...]:
        """Return the branches around the place where ``condition`` is 1, the outermost first."""
        path: list[_Branch] = []
        while condition != 1:
            switch = self._cells[condition >> 16]
            if type(switch).__name__ not in _SWITCHES:
                raise NotPlain("an assignment without a switch that leads to it is not known here")
            path.append((condition >> 16, condition & 0xFFFF))
            condition = int(switch.en)
        return tuple(reversed(path))

    def _after(self, before: Bits, steps: Sequence[_Step], depth: int) -> Bits:
        """Apply ``steps`` to ``before``; a later one overrides the earlier ones."""

        def switch_of(step: _Step) -> int:
            path, _ = step
            return path[depth][0] if len(path) > depth else 0

        bits = before
        for switch, group in groupby(steps, switch_of):
            if switch:
                bits = self._switched(switch, bits, list(group), depth)
            else:
                *_, (_, bits) = group
        return bits

    def _switched(self, number: int, before: Bits, steps: Sequence[_Step], depth: int) -> Bits:
        """Apply ``steps``, all of them in branches of one switch, to ``before``."""
        branches: dict[int, list[_Step]] = {}
        for step in steps:
            path, _ = step
            branches.setdefault(path[depth][1], []).append(step)
        conditions = self._writer.conditions(self._cells[number])
        choices = [
            (conditions[branch], self._after(before, branches.get(branch, ()), depth + 1))
            for branch in range(max(branches) + 1)
            # Branches without an assignment count where they keep a later one from being taken.
            if branch in branches or any(self._meet(number, branch, x) for x in branches)
        ]
        result = self._writer.new(len(before))
        self._writer.select(before, choices, result)
        return result

    def _meet(self, number: int, branch: int, later: int) -> bool:
        """Whether the conditions of two branches of a switch may be 1 at once."""
        if later < branch:
            return False
        value, patterns = self._matched(number, branch)
        other, others = self._matched(number, later)
        if value is None or (value is not other and value != other):
            return True
        if isinstance(patterns, frozenset) and isinstance(others, frozenset):
            return not patterns.isdisjoint(others)
        return any(
            all(x == y or "-" in (x, y) for x, y in zip(a, b, strict=True))
            for a in patterns
            for b in others
        )

    def _matched(self, number: int, branch: int) -> _Matched:
        """Return the value that a branch matches and its patterns, or None and no patterns.

        Patterns without wild cards are a set.
        """
        known = self._known.get((number, branch))
        if known is None:
            value, patterns = self._patterns(number, branch)
            if value is not None:
                value = self._values.setdefault(value, value)
            exact = not any("-" in x for x in patterns)
            known = value, frozenset(patterns) if exact else patterns
            self._known[number, branch] = known
        return known

    def _patterns(self, number: int, branch: int) -> tuple[Bits | None, Sequence[str]]:
        switch = self._cells[number]
        if type(switch).__name__ == "Match":
            return bits_of(switch.value), switch.patterns[branch]
        cell = self._cells[int(switch.inputs[branch]) >> 16]
        if type(cell).__name__ != "Matches":
            return None, ()
        return bits_of(cell.value), cell.patterns
