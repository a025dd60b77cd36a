"""Arrays through a simulated stream unit, compared with NumPy. Each row of an array is a packet."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from amaranth.lib import stream
from numpy.typing import NDArray

from bitlane_rtl.abi import Lane, Mode, Op
from bitlane_rtl.stream_unit import PacketReduction, StreamConfiguration, StreamUnit
from cppsim.errors import SimulationError

from .numpy_device.operations import DTYPES, LOGIC, computation

if TYPE_CHECKING:
    from amaranth.sim import TestbenchContext  # type: ignore[attr-defined]  # stubs lag

__all__ = ["Pauses", "StreamOperation", "StreamRun", "run_stream"]

_Beat = tuple[int, int, int]
"""``data``, ``keep`` and ``last``."""

_LEAST_CYCLES = 1000
"""Cycles without a transfer after which a unit hangs, if no stream pauses."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StreamOperation:
    """The control inputs of all packets, but for the lanes, which are the types of the arrays.

    ``out_lane``: the lane of counts; None: that of the operands.
    """

    op: Op
    out_lane: Lane | None = None
    saturate: bool = False
    arithmetic: bool = False
    test: bool = False
    negate: bool = False
    reduction: PacketReduction = PacketReduction.NONE


@dataclass(frozen=True, slots=True)
class Pauses:
    """Each stream pauses in a cycle with ``probability``, 0 or more and less than 1."""

    probability: float
    seed: int = 0


@dataclass(frozen=True, slots=True)
class StreamRun:
    """The results, and the clock cycles from the first beat offered to the last result."""

    result: NDArray[Any]
    cycles: int


def run_stream(
    operation: StreamOperation,
    a: NDArray[Any],
    b: NDArray[Any] | None = None,
    *,
    configuration: StreamConfiguration | None = None,
    pauses: Pauses | None = None,
) -> StreamRun:
    """Send each row of ``a``, with that of ``b``, through a simulated unit; compare with NumPy.

    ``a`` and ``b`` have one or two axes and the same shape and unsigned type, which is the lane.
    The result has their shape, without the last axis after a reduction. ``configuration`` is by
    default 64 bits wide, with the operation alone.

    Raises ``ValueError`` for arrays or an operation that the unit cannot take, and
    ``SimulationError`` if it hangs, flags a packet, or differs from NumPy.
    """
    config = configuration or StreamConfiguration(ops=frozenset({operation.op}))
    rows = [np.atleast_2d(x) for x in (a, b) if x is not None]
    _expect(operation, config, rows)
    lane = _lane(rows[0])
    expected = _expected(operation, lane, rows)
    bench = _Bench(StreamUnit(config), operation, lane, pauses or Pauses(0.0))
    packets = bench.run([[row.tobytes() for row in each] for each in rows])
    for number, (found, want) in enumerate(zip(packets, expected, strict=True)):
        if found != want.tobytes():
            got = np.frombuffer(found, expected.dtype)
            raise SimulationError(
                f"packet {number} of {operation.op.name}: {got}; NumPy has {want}"
            )
    result = expected.view(np.bool_) if operation.reduction is PacketReduction.ANY else expected
    if operation.reduction is not PacketReduction.NONE:
        result = result[:, 0]
    return StreamRun(result if a.ndim > 1 else result[0], bench.cycles)


def _lane(rows: NDArray[Any]) -> Lane:
    return Lane(rows.dtype.itemsize.bit_length() - 1)


def _expect(
    operation: StreamOperation, config: StreamConfiguration, rows: Sequence[NDArray[Any]]
) -> None:
    """Raise ``ValueError`` unless the unit can take ``rows``."""
    if (len(rows) == 2) != operation.op.reads_b:
        raise ValueError(
            f"b: {operation.op.name} has {1 + operation.op.reads_b} operands; got {len(rows)}"
        )
    for name, row in zip("ab", rows, strict=False):
        if row.dtype not in DTYPES.values() or row.ndim != 2 or not row.shape[1]:
            raise ValueError(
                f"{name}: {row.dtype} of shape {row.shape}; expected rows of uint8, uint16, uint32"
                " or uint64, none of them empty"
            )
        if row.dtype != rows[0].dtype or row.shape != rows[0].shape:
            raise ValueError(
                f"b: {row.dtype} of shape {row.shape}; expected {rows[0].dtype} of shape"
                f" {rows[0].shape}, as a"
            )
    if operation.op not in config.ops:
        raise ValueError(f"operation: {operation.op.name} is not in the configuration's ops")


def _expected(operation: StreamOperation, lane: Lane, rows: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Return the elements of each packet of results, as NumPy computes them."""
    if operation.reduction is PacketReduction.ANY:
        found = LOGIC[operation.op.counted](*rows).any(axis=-1, keepdims=True)
        return np.asarray(found ^ operation.negate, np.uint8)
    sums = operation.reduction is PacketReduction.SUM
    fields = {
        "OP": operation.op,
        "LANE": lane,
        "SATURATE": operation.saturate,
        "ARITHMETIC": operation.arithmetic,
        "TEST": operation.test,
        "NEGATE": operation.negate,
        "Y_MODE": Mode.SUM if sums else Mode.DENSE,
    }
    out_lane = lane if operation.out_lane is None else operation.out_lane
    shape = (len(rows[0]), 1) if sums else rows[0].shape
    result = np.empty(shape, DTYPES[Lane.BITS_32 if sums else out_lane])
    computation(fields)(*rows, result)
    return result


class _Bench:
    """A unit, and a testbench that sends packets to it and receives those of Y."""

    def __init__(
        self, unit: StreamUnit, operation: StreamOperation, lane: Lane, pauses: Pauses
    ) -> None:
        self._unit = unit
        self._operation = operation
        self._lane = lane
        self._pauses = pauses
        self.cycles = 0

    def run(self, packets: Sequence[Sequence[bytes]]) -> list[bytes]:
        """Return the packets of Y. ``packets``: those of A, and of B if there are any."""
        import cppsim  # Amaranth and its simulator, of which the operations above know nothing

        found: list[bytes] = []

        async def testbench(ctx: "TestbenchContext") -> None:
            await self._exchange(ctx, packets, found)

        simulator = cppsim.Simulator(self._unit)
        simulator.add_clock(1e-6)
        simulator.add_testbench(testbench)
        simulator.run()
        return found

    def _beats(self, packets: Sequence[bytes]) -> list[_Beat]:
        """Return the beats of all packets."""
        size = self._unit.configuration.data_bytes
        beats = []
        for packet in packets:
            for at in range(0, len(packet), size):
                part = packet[at : at + size]
                last = at + size >= len(packet)
                beats.append((int.from_bytes(part, "little"), (1 << len(part)) - 1, int(last)))
        return beats

    async def _exchange(
        self, ctx: "TestbenchContext", packets: Sequence[Sequence[bytes]], found: list[bytes]
    ) -> None:
        unit, generator = self._unit, random.Random(self._pauses.seed)
        self._control(ctx)
        ports = (unit.a,) if len(packets) == 1 else (unit.a, unit.b)
        senders = [
            _Sender(ctx, port, self._beats(each)) for port, each in zip(ports, packets, strict=True)
        ]
        beat = unit.y.p
        tick = ctx.tick().sample(
            *(sender.port.ready for sender in senders),
            *(unit.y.valid, beat.data, beat.keep, beat.last, beat.flags.as_value()),
        )
        most = int(_LEAST_CYCLES / (1 - self._pauses.probability))
        packet, idle = bytearray(), 0
        while len(found) < len(packets[0]):
            goes = [generator.random() >= self._pauses.probability for _ in range(3)]
            for sender, send in zip(senders, goes, strict=False):
                sender.offer(send)
            ctx.set(unit.y.ready, goes[2])
            _, _, *ready, valid, data, keep, last, flags = await tick
            moved = [sender.moved(bool(each)) for sender, each in zip(senders, ready, strict=True)]
            idle = 0 if any(moved) or (valid and goes[2]) else idle + 1
            self.cycles += 1
            if idle > most:
                raise SimulationError(f"the unit hangs: no transfer in {most} cycles")
            if not (valid and goes[2]):
                continue
            if flags:
                raise SimulationError(f"packet {len(found)}: flags {flags:#06b}; expected none")
            content = data.to_bytes(unit.configuration.data_bytes, "little")
            packet += bytes(x for k, x in enumerate(content) if keep >> k & 1)
            if last:
                found.append(bytes(packet))
                packet.clear()

    def _control(self, ctx: "TestbenchContext") -> None:
        operation = self._operation
        out_lane = self._lane if operation.out_lane is None else operation.out_lane
        values = {"op": operation.op, "lane": self._lane, "out_lane": out_lane}
        for name in ("saturate", "arithmetic", "test", "negate", "reduction"):
            values[name] = getattr(operation, name)
        for name, bits in self._unit.configuration.control.items():
            if bits:
                ctx.set(getattr(self._unit.control, name), int(values[name]))


class _Sender:
    """Offers beats to a stream; a beat stays until it is taken."""

    def __init__(
        self, ctx: "TestbenchContext", port: stream.Interface, beats: Sequence[tuple[int, int, int]]
    ) -> None:
        self._ctx = ctx
        self.port = port
        self._beats = iter(beats)
        self._next = next(self._beats, None)
        self._valid = False

    def offer(self, send: bool) -> None:
        """Offer the next beat, if ``send``, or go on with the one that was offered."""
        if self._valid or self._next is None or not send:
            return
        self._valid = True
        beat = self.port.p
        for field, value in zip((beat.data, beat.keep, beat.last), self._next, strict=True):
            self._ctx.set(field, value)
        self._ctx.set(self.port.valid, 1)

    def moved(self, ready: bool) -> bool:
        """Return whether the beat was taken; withdraw it then."""
        if not (self._valid and ready):
            return False
        self._next = next(self._beats, None)
        self._valid = False
        self._ctx.set(self.port.valid, 0)
        return True
