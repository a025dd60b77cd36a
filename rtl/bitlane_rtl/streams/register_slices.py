"""Register slices: stream buffers of one or two registers, by the paths that they cut.

=================== ======================= ================ =======
Class               Cuts the paths of       Payloads a cycle Latency
=================== ======================= ================ =======
`Wire`              nothing                 1                0
`ForwardRegister`   ``valid``, ``payload``  1                1
`ReverseRegister`   ``ready``               1                0
`HalfRateRegister`  all three               1/2              1
`PingPongBuffer`    all three               1                1
`SkidBuffer`        all three               1                1
=================== ======================= ================ =======
"""

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import wiring

from .buffer import StreamBuffer

__all__ = [
    "ForwardRegister",
    "HalfRateRegister",
    "PingPongBuffer",
    "ReverseRegister",
    "SkidBuffer",
    "Wire",
]


class Wire(StreamBuffer):
    """A wire from ``i`` to ``o``.

    Members
    -------
    i, o
        The same payloads, in the same cycle.

    Latency: 0 cycles. Throughput: 1 payload a cycle. Holds none. Area: none.
    """

    def elaborate(self, platform: object) -> Module:
        m = Module()
        wiring.connect(m, wiring.flipped(self.i), wiring.flipped(self.o))
        return m


class ForwardRegister(StreamBuffer):
    """A forward register slice: one entry, which cuts the paths of ``valid`` and ``payload``.

    Members
    -------
    i
        ``ready`` depends combinationally on ``o.ready``.
    o
        ``valid`` and ``payload`` are registers.

    Latency: 1 cycle. Throughput: 1 payload a cycle. Holds 1 payload.
    Undefined: ``o.payload`` while ``o.valid`` is 0.
    Area: ``width + 1`` flip-flops and 1 LUT4; none where ``o.ready`` is always 1.
    """

    def elaborate(self, platform: object) -> Module:
        m = Module()
        entering, leaving = Value.cast(self.i.payload), Value.cast(self.o.payload)
        held = Signal(len(leaving), reset_less=True)
        full = Signal()
        m.d.comb += [
            self.i.ready.eq(~full | self.o.ready),
            self.o.valid.eq(full),
            leaving.eq(held),
        ]
        with m.If(self.i.ready):
            m.d.sync += [full.eq(self.i.valid), held.eq(entering)]
        return m


class ReverseRegister(StreamBuffer):
    """A reverse register slice: one spare entry, which cuts the path of ``ready``.

    Members
    -------
    i
        ``ready`` is a register.
    o
        ``valid`` and ``payload`` pass from ``i``, or come from the spare entry.

    Latency: 0 cycles. Throughput: 1 payload a cycle. Holds 1 payload.
    Undefined: ``o.payload`` while ``o.valid`` is 0.
    Area: ``width + 1`` flip-flops and about ``width + 2`` LUT4.
    """

    def elaborate(self, platform: object) -> Module:
        m = Module()
        entering, leaving = Value.cast(self.i.payload), Value.cast(self.o.payload)
        spare = Signal(len(leaving), reset_less=True)
        full = Signal()
        m.d.comb += [
            self.i.ready.eq(~full),
            self.o.valid.eq(full | self.i.valid),
            leaving.eq(Mux(full, spare, entering)),
        ]
        m.d.sync += full.eq(self.o.valid & ~self.o.ready)
        with m.If(~full):
            m.d.sync += spare.eq(entering)
        return m


class HalfRateRegister(StreamBuffer):
    """A half-rate register slice: one entry, which cuts every path between its two sides.

    Members
    -------
    i
        ``ready`` is a register.
    o
        ``valid`` and ``payload`` are registers.

    Latency: 1 cycle. Throughput: a payload every 2 cycles. Holds 1 payload.
    Undefined: ``o.payload`` while ``o.valid`` is 0.
    Area: ``width + 1`` flip-flops and 2 LUT4.
    """

    def elaborate(self, platform: object) -> Module:
        m = Module()
        entering, leaving = Value.cast(self.i.payload), Value.cast(self.o.payload)
        held = Signal(len(leaving), reset_less=True)
        full = Signal()
        m.d.comb += [self.i.ready.eq(~full), self.o.valid.eq(full), leaving.eq(held)]
        with m.If(~full):
            m.d.sync += [full.eq(self.i.valid), held.eq(entering)]
        with m.Elif(self.o.ready):
            m.d.sync += full.eq(0)
        return m


class PingPongBuffer(StreamBuffer):
    """A ping-pong buffer: two entries that take turns, which cut every path between its two sides.

    Unlike in a `SkidBuffer`, no payload moves: ``o.ready`` reaches three flip-flops, and not the
    enables of ``width``. In return, ``o.payload`` has a multiplexer behind its registers.

    Members
    -------
    i
        ``ready`` is a register.
    o
        ``valid`` is a register; ``payload`` is one of two registers.

    Latency: 1 cycle from ``i`` to ``o``. Throughput: 1 payload a cycle. Holds 2 payloads.
    Undefined: ``o.payload`` while ``o.valid`` is 0.
    Area: ``2 * width + 3`` flip-flops and about ``width + 6`` LUT4.
    """

    def elaborate(self, platform: object) -> Module:
        m = Module()
        entering, leaving = Value.cast(self.i.payload), Value.cast(self.o.payload)
        front_full, spare_full = _hold_two(m, self)
        turn = Signal()
        entries = []
        for number in range(2):
            entry = Signal(len(leaving), name=f"entry_{number}", reset_less=True)
            # An empty entry loads whatever is at `i`, so that its enable depends on registers.
            with m.If(~Mux(turn == number, front_full, spare_full)):
                m.d.sync += entry.eq(entering)
            entries.append(entry)
        m.d.comb += leaving.eq(Mux(turn, entries[1], entries[0]))
        # Also while both are empty: then both have loaded the same payload.
        m.d.sync += turn.eq(turn ^ self.o.ready)
        return m


class SkidBuffer(StreamBuffer):
    """A skid buffer: two entries, which cut every path between its two sides.

    Members
    -------
    i
        ``ready`` is a register.
    o
        ``valid`` and ``payload`` are registers.

    Latency: 1 cycle from ``i`` to ``o``. Throughput: 1 payload a cycle. Holds 2 payloads.
    Undefined: ``o.payload`` while ``o.valid`` is 0.
    Area: ``2 * width + 2`` flip-flops and about ``width + 4`` LUT4; 386 MHz on ECP5-6 at 32 bits.
    """

    def elaborate(self, platform: object) -> Module:
        m = Module()
        entering, leaving = Value.cast(self.i.payload), Value.cast(self.o.payload)
        front_full, spare_full = _hold_two(m, self)
        front = Signal(len(leaving), reset_less=True)
        spare = Signal(len(leaving), reset_less=True)
        m.d.comb += leaving.eq(front)
        with m.If(~spare_full):
            m.d.sync += spare.eq(entering)
        with m.If(~front_full | self.o.ready):
            m.d.sync += front.eq(Mux(spare_full, spare, entering))
        return m


def _hold_two(m: Module, buffer: StreamBuffer) -> tuple[Signal, Signal]:
    """Count the payloads in a buffer of two entries, and drive ``i.ready`` and ``o.valid``.

    Return whether the entry at ``o`` is full, and whether the spare one is.
    """
    front_full = Signal()
    spare_full = Signal()
    m.d.comb += [buffer.i.ready.eq(~spare_full), buffer.o.valid.eq(front_full)]
    # Equations, not conditions: an enable and a reset would lie behind `ready`.
    waits = front_full & ~buffer.o.ready
    m.d.sync += [
        front_full.eq(waits | spare_full | buffer.i.valid),
        spare_full.eq(waits & (spare_full | buffer.i.valid)),
    ]
    return front_full, spare_full
