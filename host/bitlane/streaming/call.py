"""A call whose tensors fit in the device's memory as wholes: where they go there, and its commands.

Looks at how arrays lie, never at what is in them. All of it is the same for arrays that lie alike,
so a call of a program's inner loop is planned once.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, islice
from math import prod

from bitlane_rtl.abi import Op

from ..driver.commands import Command, encode
from ..driver.geometry import Geometry
from ..driver.queue import Words
from ..lowering.lower import lower
from ..lowering.routes import View
from ..lowering.sums import longest_row, lower_sum
from .operands import packed_strides
from .transfer import Layout, Source, rounded


class Call:
    """``op`` of tensors of ``shape`` that lie like ``sources``; its result is packed.

    ``order``: the result's axes, outermost in memory first; ``summed``: results, which are counts,
    are added up along the last axis, which the result lacks. Shift counts saturate. All that is
    public is constant: offsets from the start of the call's memory, and sizes, in bytes.
    """

    def __init__(
        self,
        op: Op,
        shape: tuple[int, ...],
        order: tuple[int, ...],
        itemsize: int,
        sources: tuple[Source, ...],
        arithmetic: bool,
        geometry: Geometry,
        summed: bool = False,
    ) -> None:
        self.op = op
        self.summed = summed
        self._arithmetic = arithmetic
        self._geometry = geometry
        self._sources = sources
        self.shape = shape
        self.order = order
        self.axes = (*order, len(order)) if summed else order
        """All axes, those that are cut first in front."""
        self.itemsize = itemsize
        """Of the result."""
        self.layouts = tuple([Layout.of(source, shape) for source in sources])
        """How each input lies."""
        self._longest = longest_row(geometry) // sources[0][1] if summed else None
        sizes = [rounded(layout.size) for layout in self.layouts]
        self.inputs = tuple([sum(sizes[:number]) for number in range(len(sizes))])
        """Where each input starts."""
        self.output = sum(sizes)
        """Where the result starts."""
        self.output_size = self.result_bytes(shape)
        self.size = self.output + rounded(self.output_size)
        self.line_bytes = max(self.output, self.size - self.output)
        """What goes over a line in the busier direction."""
        # The next call most likely gets the memory of the one before: address, and record.
        self._latest: tuple[int, list[Words]] = (-1, [])

    def result_bytes(self, shape: Sequence[int]) -> int:
        """Bytes of the result of a piece of ``shape``."""
        return self.itemsize * prod(shape[:-1] if self.summed else shape)

    def adds(self, row: tuple[int, ...]) -> bool:
        """Whether a command adds up as many elements as the last axis of a piece has."""
        return self._longest is None or row[0] <= self._longest

    def commands(self, address: int) -> Iterable[Command | Words]:
        """What the device is to do when the call's memory starts at ``address``."""
        place, record = self._latest
        if address == place:
            return record
        views = [
            View(address + offset + layout.first, layout.strides, itemsize)
            for offset, layout, (_, itemsize, *_) in zip(
                self.inputs, self.layouts, self._sources, strict=True
            )
        ]
        commands = self.lowered(self.shape, views, address + self.output)
        first, *more = islice(commands, 2)
        if more:
            return chain((first, *more), commands)
        record = [encode(first, interrupt=True)]
        self._latest = address, record
        return record

    def lowered(
        self, shape: tuple[int, ...], views: Sequence[View], result: int
    ) -> Iterator[Command]:
        """Commands for a piece of ``shape``, from ``views`` to a packed result at ``result``."""
        a, *rest = views
        b = rest[0] if rest else None
        if self.summed:
            steps = (*packed_strides(shape[:-1], self.order, self.itemsize), 0)
            y = View(result, steps, self.itemsize)
            return lower_sum(self.op, shape, a, b, y, geometry=self._geometry)
        return lower(
            self.op,
            shape,
            a,
            b,
            View(result, packed_strides(shape, self.order, self.itemsize), self.itemsize),
            geometry=self._geometry,
            saturate=True,
            arithmetic=self._arithmetic,
        )


call_of = lru_cache(maxsize=512)(Call)
"""The call of these arguments: the same object for the same ones."""
