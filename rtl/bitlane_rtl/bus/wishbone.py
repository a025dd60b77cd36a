"""Wishbone B4, pipelined: the signature, the manager for the memory, the subordinate for control.

The standard calls them master and slave. Addresses count bytes.
"""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from ..abi import BEATS_PER_BLOCK
from ..ports import CONTROL_ADDRESS_WIDTH, ControlPort, ReadPort, WritePort
from ..streams import Credit, Fifo, SkidBuffer

__all__ = ["BURSTS_PER_TURN", "Wishbone", "WishboneControl", "WishboneManager"]

BURSTS_PER_TURN = 4
"""Bursts of one direction while the other one waits: a change of direction costs a round trip."""

ALL_BYTES = 0b1111


class Wishbone(wiring.Signature):
    """Signature of a pipelined Wishbone bus, seen from the manager.

    RTY, LOCK, CTI, BTE and tags, which the standard makes optional, are left out.

    Members
    -------
    The signals of Wishbone in lower case, without a prefix and with the direction of data as the
    manager sees it: ``dat_w`` is written, ``dat_r`` is read.
    """

    def __init__(self, address_width: int, data_width: int) -> None:
        super().__init__(
            {
                "cyc": Out(1),
                "stb": Out(1),
                "we": Out(1),
                "adr": Out(address_width),
                "sel": Out(data_width // 8),
                "dat_w": Out(data_width),
                "stall": In(1),
                "ack": In(1),
                "err": In(1),
                "dat_r": In(data_width),
            }
        )
        self._text = f"Wishbone({address_width}, {data_width})"

    def __repr__(self) -> str:
        return self._text


class WishboneManager(wiring.Component):
    """An adapter from a native read port and a native write port to one Wishbone bus.

    Reads and writes take turns on the bus. A turn ends when its direction has no beat to transfer,
    or after `BURSTS_PER_TURN` bursts if the other direction waits. The direction changes only when
    no answer is due, as many subordinates expect. CYC is 1 while an answer is due, errors included.

    Parameters
    ----------
    address_width, data_width
        Widths of the ports, in bits. The bus has the same.
    in_flight
        Highest number of beats that are requested and not yet accepted by their port: a power of
        two, 4 to 64, and at most 16 with ``block_ram``. Wishbone has no back-pressure for answers,
        so each has a place in a FIFO.
    block_ram
        Store answers in block RAM (see `Fifo`).

    Members
    -------
    read
        The reader. It must accept its beats without waiting for writes.
    write
        The writer. It must accept responses without waiting for reads.
    bus
        The memory. It answers each request with ACK or ERR, in order, in the cycle of the request
        or later. ERR becomes an error of the beat or of the written burst.

    Latency on an idle bus, if the memory never stalls and answers ``l`` cycles after a request: STB
    rises 1 cycle after a request is valid, of a write after its beat is valid, too. Of ``n`` beats
    that are read the first arrives ``l + 2`` cycles after their request and the last ``n + l + 1``
    cycles after it, when ``n`` beats that are written have their response. All answers are 1 cycle
    later with ``block_ram``. The first request of the other direction follows ``l + 2`` cycles
    after the last one of a direction.
    Throughput: a beat a cycle if ``l`` is at most ``in_flight - 4`` (``- 5`` with ``block_ram``).
    No combinational path leads from an input of ``bus`` to an output of it.
    Undefined: answers without a request. An answer with ACK and ERR is an error.
    Area (32 bits, 16 in flight, ECP5): 226 LUT4, 6 CCU2C, 10 LUT RAMs, 180 flip-flops.

    Raises ``ValueError`` if ``in_flight`` is outside its range.
    """

    def __init__(
        self, address_width: int, data_width: int, in_flight: int = 16, *, block_ram: bool = False
    ) -> None:
        most = 16 if block_ram else 64
        if in_flight not in (4, 8, 16, 32, 64) or in_flight > most:
            raise ValueError(
                f"in_flight: {in_flight}; expected a power of two, 4 to {most}"
                f" {'with' if block_ram else 'without'} block RAM"
            )
        self._in_flight = in_flight
        self._block_ram = block_ram
        self._byte_bits = ceil_log2(data_width // 8)
        self._access = data.StructLayout(
            {
                "beat": address_width - self._byte_bits,
                "strobe": data_width // 8,
                "data": data_width,
            }
        )
        self._answer = data.StructLayout({"data": data_width, "last": 1, "write": 1, "error": 1})
        super().__init__(
            {
                "read": In(ReadPort(address_width, data_width)),
                "write": In(WritePort(address_width, data_width)),
                "bus": Out(Wishbone(address_width, data_width)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bus = self.bus
        m.submodules.accesses = accesses = SkidBuffer(self._access)
        m.submodules.order = order = Fifo(1, self._in_flight)
        m.submodules.answers = answers = Fifo(
            self._answer, self._in_flight, block_ram=self._block_ram, credit=True
        )
        m.submodules.credit = credit = Credit(self._in_flight)
        # The direction of all requests in flight. WE, although STB may be 0 meanwhile.
        writing = Signal()
        access = accesses.o.p
        m.d.comb += [
            bus.cyc.eq(order.o.valid),
            bus.stb.eq(accesses.o.valid),
            bus.we.eq(writing),
            bus.adr.eq(access.beat << self._byte_bits),
            bus.sel.eq(access.strobe),
            bus.dat_w.eq(access.data),
            accesses.o.ready.eq(~bus.stall),
            order.o.ready.eq(bus.ack | bus.err),
            answers.i.valid.eq(order.o.valid & (bus.ack | bus.err)),
            answers.i.p.data.eq(bus.dat_r),
            answers.i.p.last.eq(order.o.payload),
            answers.i.p.write.eq(writing),
            answers.i.p.error.eq(bus.err),
            credit.returned.eq(answers.o.valid & answers.o.ready),
        ]
        may_enter = credit.room & accesses.i.ready
        enters, last = self._enter(m, accesses.i.p, writing, may_enter & ~order.o.valid, may_enter)
        m.d.comb += [
            accesses.i.valid.eq(enters),
            credit.taken.eq(enters),
            order.i.valid.eq(enters),
            order.i.payload.eq(last),
        ]
        self._give(m, answers)
        return m

    def _enter(
        self, m: Module, access: data.View, writing: Signal, may_turn: Value, may_enter: Value
    ) -> tuple[Signal, Value]:
        """Choose a beat and describe it in ``access``. Return whether there is one, and its burst's
        end.

        ``writing``: the direction of the beat before. A beat of this direction needs ``may_enter``,
        another ``may_turn``.
        """
        read, write = self.read.request, self.write.request
        offsets = [Signal.like(read.payload.length, name=f"{x}_offset", init=0) for x in "rw"]
        left = Signal(range(BURSTS_PER_TURN + 1), init=BURSTS_PER_TURN)
        can_write = Signal()
        current, other, turn, enters, last = (Signal() for _ in range(5))
        offset = Signal.like(offsets[0])
        m.d.comb += can_write.eq(write.valid & self.write.data.valid)
        begun = Mux(writing, offsets[1], offsets[0]).any()
        m.d.comb += [
            current.eq(Mux(writing, can_write, read.valid)),
            other.eq(Mux(writing, read.valid, can_write)),
            turn.eq(writing ^ (other & ~(current & (begun | left.any())))),
            offset.eq(Mux(turn, offsets[1], offsets[0])),
            last.eq(offset == Mux(turn, write.payload.length, read.payload.length)),
            enters.eq(Mux(turn == writing, current & may_enter, other & may_turn)),
            read.ready.eq(enters & ~turn & last),
            write.ready.eq(enters & turn & last),
            self.write.data.ready.eq(enters & turn),
        ]
        with m.If(enters):
            m.d.sync += writing.eq(turn)
            with m.If(turn ^ writing):
                m.d.sync += left.eq(BURSTS_PER_TURN - last)
            with m.Elif(last & left.any()):
                m.d.sync += left.eq(left - 1)
        for mine, counted in ((~turn, offsets[0]), (turn, offsets[1])):
            with m.If(enters & mine):
                m.d.sync += counted.eq(Mux(last, 0, counted + 1))
        address = Mux(turn, write.payload.address, read.payload.address)
        # A burst stays in its block, so the adder has no carry into the address above it.
        block_bits = self._byte_bits + ceil_log2(BEATS_PER_BLOCK)
        in_block = Signal.like(offset)
        sent = self.write.data.payload
        m.d.comb += [
            in_block.eq(address[self._byte_bits : block_bits] + offset),
            access.beat.eq(Cat(in_block, address[block_bits:])),
            access.strobe.eq(sent.strobe | ~turn.replicate(len(sent.strobe))),
            access.data.eq(sent.data),
        ]
        return enters, last

    def _give(self, m: Module, answers: Fifo) -> None:
        """Pass the answers to the ports: beats that were read, and a response for each burst."""
        answer, beat, response = answers.o.p, self.read.data, self.write.response
        failed = Signal()  # an earlier beat of the burst
        fails = answer.error | failed
        m.d.comb += [
            beat.valid.eq(answers.o.valid & ~answer.write),
            beat.payload.data.eq(answer.data),
            beat.payload.last.eq(answer.last),
            beat.payload.error.eq(answer.error),
            response.valid.eq(answers.o.valid & answer.write & answer.last),
            response.payload.eq(fails),
            answers.o.ready.eq(Mux(answer.write, ~answer.last | response.ready, beat.ready)),
        ]
        with m.If(answers.o.valid & answers.o.ready & answer.write):
            m.d.sync += failed.eq(fails & ~answer.last)


class WishboneControl(wiring.Component):
    """An adapter from Wishbone, as a subordinate, to a control port.

    It serves pipelined managers, and classic ones, which hold STB until ACK and ignore STALL.
    The answer is ERR, and the access has no effect, if a write selects some but not all of the four
    bytes, or if an address is not a multiple of 4. A write without any byte has no effect and gets
    ACK. A read returns the whole word. Addresses without a register read 0. An access that the
    manager gives up by CYC before its answer gets none, and is carried out if it was accepted.

    Latency: STALL falls for one cycle, 1 cycle after STB rises on an idle bus; the access takes
    place in that cycle. ACK or ERR rises 1 cycle later for a write, 2 cycles later for a read.
    Throughput: a write every 3 cycles, a read every 4.
    No combinational path leads from an input of ``bus`` to an output of it.
    Area: 20 LUT4 and 53 flip-flops on ECP5.

    The state machine has a flip-flop for each state:

    ============ ===================================== =========================================
    State        Signals                               Next
    ============ ===================================== =========================================
    idle         STALL                                 ``taken``, if STB and CYC
    taken        ``control.read`` or ``write``, if     ``fetching`` for a read, ``answering``
                 STB and CYC                           for a write; idle without STB or CYC
    fetching     STALL; ``control.read_data`` is valid ``answering``; idle without CYC
    answering    STALL; ACK or ERR                     idle
    ============ ===================================== =========================================
    """

    bus: In(Wishbone(CONTROL_ADDRESS_WIDTH, 32))
    """A manager holds STB and the rest of its request while STALL is 1."""
    control: In(ControlPort())
    """The controlled circuit."""

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bus, control = self.bus, self.control
        taken, fetching, answering = (Signal() for _ in range(3))
        good, legal = Signal(), Signal()
        address = Signal(CONTROL_ADDRESS_WIDTH, reset_less=True)
        writes = Signal(reset_less=True)
        error = Signal(reset_less=True)
        answer = Signal(32, reset_less=True)
        requested = bus.cyc & bus.stb
        aligned = bus.adr[:2] == 0
        accepted = taken & requested
        m.d.comb += [
            bus.stall.eq(~taken),
            bus.ack.eq(answering & ~error),
            bus.err.eq(answering & error),
            bus.dat_r.eq(answer),
            control.address.eq(address),
            control.write.eq(accepted & writes & good),
            control.write_data.eq(bus.dat_w),
            control.read.eq(accepted & ~writes & legal),
        ]
        m.d.sync += [
            taken.eq(requested & ~taken & ~fetching & ~answering),
            # Decoding starts from registers.
            address.eq(bus.adr),
            writes.eq(bus.we),
            good.eq(aligned & (bus.sel == ALL_BYTES)),
            legal.eq(aligned & (~bus.we | (bus.sel == ALL_BYTES) | (bus.sel == 0))),
            fetching.eq(accepted & ~writes),
            answering.eq((accepted & writes) | (fetching & bus.cyc)),
        ]
        with m.If(taken):
            m.d.sync += error.eq(~legal)
        with m.If(fetching):
            m.d.sync += answer.eq(control.read_data)
        return m
