"""The contract of records, for many instances at once, on arrays of NumPy or CuPy.

Executes the commands of all instances on arrays of bytes, one command after the other. Written
from the contract alone: it knows no lowering, no driver and no circuit. `fields` takes records
apart, and finds why one is refused; `walk` has the addresses that streams touch.

What the contract does not promise is marked: bytes that may hold anything, bytes that may be old.

It shares only its table of logic with the device `numpy`, because each element here has a command
of its own, where that device computes one command on views of its memory.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from bitlane_rtl.abi import COUNT_OPS, LOGIC_OPS, Op, Status
from bitlane_rtl.configuration import Configuration

from ...fields import Fields, Limits, refusals
from ...numpy_device.operations import LOGIC
from ..arrays import Array, Namespace, namespace, tally
from .walk import Elements, elements, leaving, shape_of

_ONE = np.uint64(1)

# CuPy takes no enumeration as an operand.
_LEFT, _RIGHT = int(Op.SHIFT_LEFT), int(Op.SHIFT_RIGHT)

_FROM_LOGIC = [Op(x) if x in LOGIC_OPS | COUNT_OPS else Op.COPY for x in range(max(Op) + 1)]
_BASES = np.array([op.base for op in _FROM_LOGIC], np.uint8)
_NEGATES = np.array([op.negates for op in _FROM_LOGIC])
"""By code: the logic that an operation begins with, and whether it inverts the result."""


@dataclass(frozen=True, slots=True)
class Computation:
    """The operation on each element: ``op`` on ``bits`` bits. Arrays of (elements,).

    ``saturate`` and ``arithmetic`` are masks: how shifts are done. So are ``test`` and ``negate``:
    where a count becomes 1 if it is not 0, and if it is.
    """

    op: Array
    bits: Array
    saturate: Array
    arithmetic: Array
    test: Array
    negate: Array

    @property
    def mask(self) -> Array:
        """Masks of 8 to 64 ones."""
        return np.uint64((1 << 64) - 1) >> (np.uint64(64) - self.bits.astype(np.uint64))


def compute(how: Computation, a: Array, b: Array) -> Array:
    """Return the results for elements ``a`` and ``b``, (elements,); a count is a number of ones."""
    xp, op, mask = namespace(how.op), how.op, how.mask
    first, logic = xp.asarray(_BASES)[op], a
    for base, function in LOGIC.items():
        if base is not Op.COPY:
            logic = xp.where(first == int(base), function(a, b), logic)
    logic = xp.where(xp.asarray(_NEGATES)[op], ~logic, logic) & mask
    shifts = (op == _LEFT) | (op == _RIGHT)
    tested = ((logic == 0) == how.negate).astype(logic.dtype)
    counts = xp.where(how.test, tested, ones_in(logic))
    result = xp.where(op >= 12, counts, logic)
    if bool(shifts.any()):
        result = xp.where(shifts, _shifted(how, a, b), result)
    return result


def ones_in(values: Array) -> Array:
    """Return the number of ones in each of ``values``."""
    five, three, four = 0x5555_5555_5555_5555, 0x3333_3333_3333_3333, 0x0F0F_0F0F_0F0F_0F0F
    values = values - ((values >> _ONE) & np.uint64(five))
    values = (values & np.uint64(three)) + ((values >> np.uint64(2)) & np.uint64(three))
    values = (values + (values >> np.uint64(4))) & np.uint64(four)
    return (values * np.uint64(0x0101_0101_0101_0101)) >> np.uint64(56)


def _shifted(how: Computation, a: Array, b: Array) -> Array:
    xp, mask, width = namespace(how.op), how.mask, how.bits.astype(np.uint64)
    beyond = how.saturate & (b >= width)
    count = b & (width - _ONE)
    left = (a << count) & mask
    negative = how.arithmetic & ((a >> (width - _ONE)) & _ONE != 0)
    fill = xp.where(negative, mask, np.uint64(0))
    # What comes in from above: ones where the sign is one.
    right = (a >> count) | (fill & ~(mask >> count))
    left = xp.where(beyond, np.uint64(0), left)
    right = xp.where(beyond, fill, right)
    return xp.where(how.op == _LEFT, left, right)


_ELEMENTS = 1 << 21
"""Elements that are computed at a time, about."""

_BYTES = 1 << 24
"""Bytes of memories that are looked at, at a time."""

_NEVER = (1 << 31) - 1

_OK = int(Status.OK)
"""CuPy takes no enumeration as an operand."""


@dataclass(slots=True)
class Expected:
    """The expected state of each instance: arrays of (instances,) or, if noted, (instances, bytes).

    ``memory`` (bytes) is right where the contract says what is right; ``optional`` (bytes): may
    also be as before; ``loose`` (bytes): may hold anything. ``status`` and ``index`` are those of
    FAULT; ``ports`` has the bits of those that it may name, 1 of A, 2 of B, 4 of Y, or is 0: NONE.
    ``elements``: how many were walked, up to the end, the fault, or as many as were looked at.
    """

    memory: Array
    optional: Array
    loose: Array
    status: Array
    index: Array
    ports: Array
    elements: Array


def execute(
    memory: Array, records: Array, counts: Array, configuration: Configuration, most: int = 1 << 20
) -> Expected:
    """Execute the first ``counts`` of ``records``, (instances, commands, 32), on ``memory``.

    ``memory`` is (instances, bytes) and stays as it is. No more than ``most`` elements of a command
    are looked at. More ``counts`` than the ring has slots are a DOORBELL that is refused.
    """
    return _Execution(memory, records, counts, configuration, most).expected


class _Execution:
    def __init__(
        self, memory: Array, records: Array, counts: Array, configuration: Configuration, most: int
    ) -> None:
        self._xp = xp = namespace(memory)
        self._configuration = configuration
        self._most = most
        none = xp.zeros(len(memory), np.int64)
        no_bytes = xp.zeros(memory.shape, bool)
        self.expected = Expected(
            memory.copy(), no_bytes, no_bytes.copy(), none, none.copy(), none.copy(), none.copy()
        )
        # Commands that have not retired for sure: what they read and write.
        self._reading, self._writing = no_bytes.copy(), no_bytes.copy()
        self._begun = False
        self.expected.status[counts > configuration.slots] = int(Status.BAD_DOORBELL)
        for number in range(records.shape[1]):
            words = records[:, number].transpose().astype(np.int64)
            active = xp.flatnonzero((counts > number) & self._goes_on(Fields(words)))
            if len(active):
                self._command(number, active, Fields(words[:, active]))
            self._begun = True

    def _goes_on(self, fields: Fields) -> Array:
        """Whether a command may be started: behind one that left the memory without FENCE only."""
        stopped = self.expected.status != _OK
        left = stopped & (self.expected.ports != 0)
        return ~stopped | (left & (fields.control("FENCE") == 0))

    def _command(self, number: int, active: Array, fields: Fields) -> None:
        """Command ``number`` of the instances ``active``, whose ``fields`` these are."""
        expected = self.expected
        status = refusals(fields, Limits.of(self._configuration))
        first = expected.status[active] == _OK
        refused = (status != _OK) & first
        expected.status[active[refused]] = status[refused]
        expected.index[active[refused]] = number
        good = status == _OK
        active, fields = active[good], Fields(fields.words[:, good])
        fenced = active[fields.control("FENCE") != 0]
        self._reading[fenced] = False
        self._writing[fenced] = False
        for part in self._parts(fields):
            self._part(number, active[part], Fields(fields.words[:, part]))

    def _parts(self, fields: Fields) -> Iterator[Array]:
        """Split the instances into ranges whose elements fit into `_BYTES` of memory."""
        if not fields.words.size:
            return
        xp = self._xp
        sizes = xp.minimum(shape_of(fields).total, self._most)
        room = max(1, _BYTES // self.expected.memory.shape[1])
        chunks = (xp.cumsum(sizes) // _ELEMENTS) * len(sizes) + xp.arange(len(sizes)) // room
        changes = xp.flatnonzero(chunks[1:] != chunks[:-1]) + 1
        starts = [0, *(int(x) for x in changes), len(chunks)]
        for start, end in pairwise(starts):
            yield slice(start, end)

    def _part(self, number: int, active: Array, fields: Fields) -> None:
        xp, expected = self._xp, self.expected
        shape = shape_of(fields)
        last, ports = leaving(shape, self._configuration, self._most)
        some = elements(shape, last * 0, last)
        streams = _Streams(xp, some, shape, expected.memory[active], self._configuration)
        how = Computation(
            fields.op[some.owner],
            8 * shape.sizes["A"][some.owner],
            fields.control("SATURATE")[some.owner] != 0,
            fields.control("ARITHMETIC")[some.owner] != 0,
            fields.control("TEST")[some.owner] != 0,
            fields.control("NEGATE")[some.owner] != 0,
        )
        streams.store(compute(how, streams.load("A"), streams.load("B")), shape.sums)
        left = (ports != 0) & (expected.status[active] == _OK)
        endless = (ports == 0) & (shape.total > self._most)
        expected.status[active[left]] = int(Status.PAST_MEMORY)
        expected.index[active[left]] = number
        expected.ports[active[left]] = ports[left]
        expected.elements[active] += last
        self._note(active, streams, endless)

    def _note(self, active: Array, streams: "_Streams", endless: Array) -> None:
        """Take over the memory, and what is not promised of it."""
        expected = self.expected
        written, read = streams.written, streams.read
        expected.memory[active] = streams.memory
        unsure = (expected.status[active] != _OK) | endless
        if bool(unsure.any()):
            expected.optional[active] |= written & unsure[:, None]
        wrong, loose = streams.hazard, written
        if self._begun:
            # Masks of bytes are the greater part of the work: not where there is nothing yet.
            reading, writing = self._reading[active], self._writing[active]
            crossed = ((read | written) & writing).any(axis=1) | (written & reading).any(axis=1)
            wrong = wrong | crossed | (read & expected.loose[active]).any(axis=1)
            loose = written | (writing & crossed[:, None])
            read, written = reading | read, writing | written
        if bool(wrong.any()):
            expected.loose[active] |= loose & wrong[:, None]
        self._reading[active] = read
        self._writing[active] = written


class _Streams:
    """Loads and stores of elements, in a copy of the memory of each instance.

    ``read`` and ``written``: (instances, bytes) that were. ``hazard``: a byte is written twice, or
    read by a later step than the one that writes it.
    """

    def __init__(
        self,
        xp: Namespace,
        some: Elements,
        shape: Array,
        memory: Array,
        configuration: Configuration,
    ) -> None:
        self._xp = xp
        self._some = some
        self._shape = shape
        self._bytes = memory.shape[1]
        self._base = configuration.memory_base
        self.memory = memory.copy()
        self.read = xp.zeros(memory.shape, bool)
        self.written = xp.zeros(memory.shape, bool)
        self.hazard = xp.zeros(len(memory), bool)
        self._loads: list[tuple[Array, Array]] = []

    def _places(self, stream: str) -> tuple[Array, Array]:
        """Return each element's offset in the concatenated memories, and its size in bytes."""
        owner = self._some.owner
        at = owner * self._bytes + self._some.addresses[stream] - self._base
        return at, self._shape.sizes[stream][owner]

    def load(self, stream: str) -> Array:
        """Return the elements as ``uint64``; 0 for a command without this stream."""
        places, sizes = self._places(stream)
        steps = self._some.step
        taken = None
        if stream == "B":
            taken = self._xp.flatnonzero(self._shape.with_b[self._some.owner])
            places, sizes, steps = places[taken], sizes[taken], steps[taken]
        values = self._xp.zeros(len(places), np.uint64)
        memory, read = self.memory.reshape(-1), self.read.reshape(-1)
        for number in range(int(sizes.max()) if len(sizes) else 0):
            has = self._xp.flatnonzero(sizes > number)
            at = places[has] + number
            values[has] |= memory[at].astype(np.uint64) << np.uint64(8 * number)
            read[at] = True
            self._loads.append((at, steps[has]))
        if taken is None:
            return values
        result = self._xp.zeros(len(self._some.owner), np.uint64)
        result[taken] = values
        return result

    def store(self, values: Array, sums: Array) -> None:
        """Write the elements, or the sums of runs; find what relies on an order."""
        xp, some = self._xp, self._some
        places, sizes = self._places("Y")
        steps = some.step
        summed = sums[some.owner]
        if bool(sums.any()):
            values = xp.where(summed, self._run_sums(values), values)
            taken = xp.flatnonzero(~summed | some.ends)
            places, sizes, steps, values = places[taken], sizes[taken], steps[taken], values[taken]
        writer = xp.full(self.memory.size, _NEVER, np.int32)
        memory = self.memory.reshape(-1)
        stored = xp.zeros(len(self.memory), np.int64)
        for number in range(int(sizes.max()) if len(sizes) else 0):
            has = xp.flatnonzero(sizes > number)
            at = places[has] + number
            memory[at] = (values[has] >> np.uint64(8 * number)).astype(np.uint8)
            writer[at] = steps[has].astype(np.int32)
            stored += tally(at // self._bytes, len(stored))
        self.written = (writer != _NEVER).reshape(self.memory.shape)
        self.hazard = stored != self.written.sum(axis=1)
        for at, own in self._loads:
            early = at[writer[at] < own]
            self.hazard |= tally(early // self._bytes, len(stored)) > 0

    def _run_sums(self, values: Array) -> Array:
        """At the end of each run the sum of its ``values``, as 32 bits."""
        xp, some = self._xp, self._some
        total = xp.cumsum(values.astype(np.int64))
        run = self._shape.counts[0][some.owner]
        start = xp.arange(len(values)) - run + 1
        before = xp.where(start > 0, total[xp.maximum(start, 1) - 1], 0)
        return ((total - before) & 0xFFFF_FFFF).astype(np.uint64)
