"""Jobs whose streams share rows of an SDRAM chip alike: they take equally long.

A row set is the rows of one number in all banks. An access depends on its place in the set, and on
whether a bank's open row is its own, never on the number of the row. So streams move by whole row
sets, as long as those that share one move together.
"""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import replace

from .cycles import CommandShape, Stream


class RowSets:
    """The row sets of a job, to renumber from 0 on in the order in which its streams use them.

    ``size``: bytes of a row set. ``used``: sets that the job uses beside its streams, and first.
    """

    def __init__(self, shapes: Iterable[CommandShape], size: int, used: int = 0) -> None:
        self._size = size
        reaches = [(0, used - 1)] if used else []
        reaches += [self._reach(stream) for shape in shapes for stream in shape.streams]
        groups: list[tuple[int, int]] = []
        for first, last in sorted(set(reaches)):
            if groups and first <= groups[-1][1]:
                first, last = groups[-1][0], max(last, groups[-1][1])
                groups.pop()
            groups.append((first, last))
        self._firsts = [first for first, _ in groups]
        self._shifts: list[int | None] = [None] * len(groups)
        free = 0
        for first, _ in reaches:
            number = self._group(first)
            if self._shifts[number] is None:
                first, last = groups[number]
                self._shifts[number] = free - first
                free += last - first + 1

    def _reach(self, stream: Stream) -> tuple[int, int]:
        """Return the first and the last row set that a stream may access."""
        walk = stream.walk
        low, high = walk.bounds()
        return (walk.base + low) // self._size, (walk.base + high - 1) // self._size

    def _group(self, row_set: int) -> int:
        return bisect_right(self._firsts, row_set) - 1

    def renumbered(self, shape: CommandShape) -> CommandShape:
        """Return a command of the job in the renumbered sets."""
        b = None if shape.b is None else self._moved(shape.b)
        return replace(shape, a=self._moved(shape.a), b=b, y=self._moved(shape.y))

    def _moved(self, stream: Stream) -> Stream:
        shift = self._shifts[self._group(self._reach(stream)[0])]
        assert shift is not None
        walk = stream.walk
        return replace(stream, walk=replace(walk, base=walk.base + shift * self._size))
