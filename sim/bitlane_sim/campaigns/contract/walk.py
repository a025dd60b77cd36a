"""The addresses that streams touch, in closed form, for all elements of all instances in one row.

What belongs to elements lies in flat arrays, the elements of an instance side by side; ``owner`` is
the instance of each.
"""

from dataclasses import dataclass

import numpy as np

from bitlane_rtl.abi import LOGIC_OPS, Mode
from bitlane_rtl.configuration import Configuration

from ...fields import Fields, is_one_of
from ..arrays import Array, namespace, tally

_MODULUS = 1 << 32
_MOST_LOOPS = 6
_STAGES = (64, 512, 4096, 1 << 62)
"""Elements of an instance that are looked at, at a time, for one outside of the memory."""

_AHEAD = 4096
"""Elements that a stream can be ahead of another: more than FIFOs hold."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The loop nest of each instance's streams: sizes, and steps in bytes, modulo 2**32.

    A dense logic command is one of bytes, whatever its lane, as its result does not depend on it.
    """

    counts: list[Array]
    """Iterations of each loop, (instances,), the innermost first."""
    bases: dict[str, Array]
    steps: dict[str, list[Array]]
    sizes: dict[str, Array]
    with_b: Array
    sums: Array

    @property
    def total(self) -> Array:
        """Elements of A."""
        xp, total = namespace(self.counts[0]), self.counts[0]
        for count in self.counts[1:]:
            # Nobody walks as far: 2**62 is as good as any number beyond.
            total = xp.minimum(total * 1.0 * count, 2.0**62).astype(np.int64)
        return total

    def of(self, some: Array) -> "Shape":
        """Return the shape of ``some`` instances: numbers, or a mask."""
        return Shape(
            [x[some] for x in self.counts],
            {name: x[some] for name, x in self.bases.items()},
            {name: [step[some] for step in x] for name, x in self.steps.items()},
            {name: x[some] for name, x in self.sizes.items()},
            self.with_b[some],
            self.sums[some],
        )


def shape_of(fields: Fields) -> Shape:
    """Return the shape of commands that are not refused."""
    plain = ~fields.any_mode({Mode.STRIDED, Mode.REPEAT, Mode.SUM})
    bytewise = plain & is_one_of(fields.op, LOGIC_OPS)
    run = fields.run * (1 + (fields.size("A") - 1) * bytewise)
    counts = [run, *(fields.count(loop) for loop in range(1, _MOST_LOOPS))]
    bases, steps, sizes = {}, {}, {}
    for stream in "ABY":
        size = 1 + (fields.size(stream) - 1) * ~bytewise
        strided = fields.has_mode(stream, Mode.STRIDED)
        stride = fields.word(f"{stream}_STRIDE") * strided
        own = [stride + size * fields.has_mode(stream, Mode.DENSE)]
        # How far the loops inside one have gone when it advances.
        gone = stride * (run - 1)
        for loop in range(1, _MOST_LOOPS):
            step = (fields.jump(stream, loop) + gone) % _MODULUS
            gone = (gone + step * (counts[loop] - 1)) % _MODULUS
            own.append(step)
        bases[stream], steps[stream], sizes[stream] = fields.word(f"{stream}_BASE"), own, size
    return Shape(counts, bases, steps, sizes, fields.with_b, fields.sums)


@dataclass(frozen=True, slots=True)
class Elements:
    """Elements ``first`` to ``last - 1`` of each instance, flat.

    ``addresses`` by stream; of a sum Y's is that of its run. ``ends``: the last one of its run.
    ``step``: the number of the step that it belongs to, which of a sum is the run.
    """

    owner: Array
    number: Array
    step: Array
    ends: Array
    addresses: dict[str, Array]


def elements(shape: Shape, first: Array, last: Array) -> Elements:
    """``first`` and ``last`` are of (instances,), from 0 on."""
    xp = namespace(first)
    ends = xp.cumsum(last - first)
    total = int(ends[-1]) if len(ends) else 0
    flat = xp.arange(total)
    owner = xp.searchsorted(ends, flat, side="right")
    number = flat - (ends - (last - first))[owner] + first[owner]
    digits, rest = [], number
    for count in shape.counts:
        own = count[owner]
        digits.append(rest % own)
        rest = rest // own
    addresses = {}
    for stream in "ABY":
        address = shape.bases[stream][owner]
        for digit, step in zip(digits, shape.steps[stream], strict=True):
            address = address + digit * step[owner]
        addresses[stream] = address % _MODULUS
    run = shape.counts[0][owner]
    sums = shape.sums[owner]
    step = number + (number // run - number) * sums
    return Elements(owner, number, step, digits[0] == run - 1, addresses)


def leaving(shape: Shape, configuration: Configuration, most: int) -> tuple[Array, Array]:
    """The first element of each instance that is not all in the memory, and which streams leave.

    Looks at ``most`` elements; where there is none, the number of elements, or ``most``. The
    streams are bits, 1 of A, 2 of B, 4 of Y: those that leave there or soon after, of which any may
    be the first in time, as some run ahead.
    """
    xp = namespace(shape.with_b)
    limit = xp.minimum(shape.total, most)
    found, streams = limit.copy(), limit * 0
    active = xp.arange(len(limit))
    seen = xp.zeros(len(limit), np.int64)
    for stage in _STAGES:
        active = active[seen[active] < limit[active]]
        if not len(active):
            break
        part = shape.of(active)
        first = seen[active]
        last = xp.minimum(limit[active], stage)
        some = elements(part, first, last)
        outside = _outside(part, some, configuration)
        # The first place of each instance's part that is outside, if there is one.
        places = xp.flatnonzero(outside != 0)
        ends = xp.cumsum(last - first)
        place = xp.searchsorted(places, ends - (last - first))
        place = places[xp.minimum(place, max(0, len(places) - 1))] if len(places) else ends
        left = (place < ends) & (place >= ends - (last - first))
        found[active[left]] = some.number[place[left]]
        streams[active[left]] = 1
        seen[active] = last
        active = active[~left]
    left = xp.flatnonzero(streams)
    part = shape.of(left)
    some = elements(part, found[left], xp.minimum(limit[left], found[left] + _AHEAD))
    outside = _outside(part, some, configuration)
    streams = streams * 0
    for bit in (1, 2, 4):
        leaves = tally(some.owner[(outside & bit) != 0], len(left)) > 0
        streams[left] += bit * leaves
    return found, streams


def _outside(shape: Shape, some: Elements, configuration: Configuration) -> Array:
    result = some.owner * 0
    for bit, stream in enumerate("ABY"):
        address = some.addresses[stream] - configuration.memory_base
        size = shape.sizes[stream][some.owner]
        out = (address < 0) | (address + size > configuration.memory_bytes)
        if stream == "B":
            out = out & shape.with_b[some.owner]
        result = result | (out * (1 << bit))
    return result
