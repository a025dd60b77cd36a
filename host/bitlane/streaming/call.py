"""A call whose tensors fit in the device's memory: their layout there, and its commands.

Looks at the layouts of arrays, never at their elements. All of it is the same for arrays of equal
layouts, so a call of a program's inner loop is planned once.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, islice
from math import prod
from typing import NamedTuple

from bitlane_rtl.abi import Op

from ..driver import Abilities, Command, Words, encode, round_up
from ..lowering import Options, Streams, View, lower, packed_strides
from .transfer import Layout, Source


class PackedResult(NamedTuple):
    """A packed result of operands of ``shape``. Without the last axis in ``order``: its sums."""

    shape: tuple[int, ...]
    order: tuple[int, ...]
    """The result's axes, outermost in memory first."""
    itemsize: int


class Call:
    """``op`` of tensors with the layouts of ``sources``, for a packed ``result``.

    All that is public is constant: offsets from the start of the call's memory, and sizes, in
    bytes.
    """

    def __init__(
        self,
        op: Op,
        result: PackedResult,
        sources: tuple[Source, ...],
        options: Options,
        abilities: Abilities,
    ) -> None:
        self.op = op
        self.shape, self.order, self.itemsize = result
        self.summed = len(self.order) < len(self.shape)
        """Whether results, which are counts, are added up along the last axis."""
        self._options = options
        self._abilities = abilities
        self._sources = sources
        self.axes = (*self.order, len(self.order)) if self.summed else self.order
        """All axes, those that are cut first in front."""
        self.layouts = tuple([Layout.of(source, self.shape) for source in sources])
        """Layout of each input on the device."""
        self._longest = abilities.longest_run // sources[0].itemsize if self.summed else None
        sizes = [round_up(layout.size) for layout in self.layouts]
        self.inputs = tuple([sum(sizes[:number]) for number in range(len(sizes))])
        """Offset of each input."""
        self.output = sum(sizes)
        """Offset of the result."""
        self.output_size = self.result_bytes(self.shape)
        self.strides = self.result_strides(self.shape)
        """Strides of the result."""
        self.size = self.output + round_up(self.output_size)
        self.line_bytes = max(self.output, self.size - self.output)
        """Bytes that a line carries in the busier direction."""
        # The next call most likely gets the memory of the one before: address, and record.
        self._latest: tuple[int, list[Words]] = (-1, [])

    def result_bytes(self, shape: Sequence[int]) -> int:
        """Return the bytes of the result of a tile of ``shape``."""
        return self.itemsize * prod(shape[:-1] if self.summed else shape)

    def result_strides(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the strides of the result of a tile of ``shape``."""
        return packed_strides(shape[: len(self.order)], self.order, self.itemsize)

    def adds(self, row: tuple[int, ...]) -> bool:
        """Return whether one command adds up as many elements as the last axis of a tile has."""
        return self._longest is None or row[0] <= self._longest

    def commands(self, address: int) -> Iterable[Command | Words]:
        """Return the commands for memory that starts at ``address``."""
        latest, record = self._latest
        if address == latest:
            return record
        views = [
            View(address + offset + layout.first, layout.strides, source.itemsize)
            for offset, layout, source in zip(self.inputs, self.layouts, self._sources, strict=True)
        ]
        commands = self.lower(self.shape, views, address + self.output)
        first, *more = islice(commands, 2)
        if more:
            return chain((first, *more), commands)
        record = [encode(first, interrupt=True)]
        self._latest = address, record
        return record

    def lower(
        self, shape: tuple[int, ...], views: Sequence[View], result: int
    ) -> Iterator[Command]:
        """Return commands for a tile of ``shape``: from ``views`` to a packed one at ``result``."""
        strides = self.result_strides(shape)
        y = View(result, strides, self.itemsize)
        streams = Streams(views[0], views[1] if len(views) > 1 else None, y)
        return lower(self.op, shape, streams, self._abilities, None, self._options)


call_of = lru_cache(maxsize=512)(Call)
"""Return the same call for equal arguments."""
