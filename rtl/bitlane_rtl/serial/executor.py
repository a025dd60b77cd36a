"""Executes requests on memory and control window, one after the other, and answers them.

It executes a request only if all of it is allowed, and never a repeated write.
"""

from typing import Any

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..abi.frames import RECEIVE_BYTES
from ..configuration import Configuration
from ..link.memory_bounds import MemoryBounds
from ..link.sequence_check import Complaint
from ..ports.signatures import CONTROL_ADDRESS_WIDTH, ByteAccess, ControlPort
from ..primitives import ALWAYS, one_hot_fsm
from .access_check import AccessCheck
from .answer_source import AnswerSource
from .byte_counter import SIZE_BITS, ByteCounter
from .data_access import DataAccess
from .request_header import RequestHeader
from .transmitter import AnswerByte

__all__ = ["DataTransfer", "RequestExecutor"]


class DataTransfer(wiring.Signature):
    """Signature of an order to move all data of a request to memory, from the executor's side.

    Members
    -------
    valid : ``Out(1)``; done : ``In(1)``
        Move the data of a request. ``valid`` is held until ``done``, the others while ``valid``.
    address : ``Out(address_width)``; size_less_1 : ``Out(SIZE_BITS)``
        The first byte in the memory, and the number of bytes less one.
    write : ``Out(1)``
        The request is a WRITE.
    execute : ``Out(1)``
        Write the data that are taken; while 0, they are dropped. Undefined of a READ.
    """

    def __init__(self, address_width: int) -> None:
        super().__init__(
            {
                "valid": Out(1),
                "done": In(1),
                "address": Out(address_width),
                "size_less_1": Out(SIZE_BITS),
                "write": Out(1),
                "execute": Out(1),
            }
        )


class _State(data.Struct):
    """The states of `RequestExecutor`, one hot."""

    header: 1 = 1
    start: 1
    check: 1
    decide: 1
    next_byte: 1
    take: 1
    fetch: 1
    load: 1
    send_byte: 1
    send_number: 1
    send_status: 1
    transfer: 1


class RequestExecutor(wiring.Component):
    """Takes a request, checks it, accesses memory or control window, and outputs the answer.

    A READ and a HELLO are answered first and then read byte by byte; a WRITE is written byte by
    byte and then answered. A refused or repeated WRITE passes the same states and writes nothing.
    With ``transfers``, the data of a request to memory are moved by another circuit, as a whole.

    ===========  ====================================================  =============================
    State        What happens                                          Next
    ===========  ====================================================  =============================
    header       a header is read, or a complaint                      start; send_number after a
                                                                       complaint
    start        the counters load ADDRESS and SIZE                    check
    check        first and last address are compared with the bounds   decide
    decide       the request is allowed or refused                     WRITE: next_byte or transfer;
                                                                       else: send_number
    next_byte    a byte is counted, for a READ or a HELLO once         WRITE: take, or send_number
                 ``o.ready`` is 1                                      after the last byte; else:
                                                                       fetch, or header after it
    take         a byte of a WRITE is taken and written                next_byte
    fetch        a byte or a word is read                              send_byte; load after a word
    load         the word is loaded                                    send_byte
    send_byte    a byte of data is output                              next_byte
    send_number  SEQUENCE is output                                    send_status
    send_status  the status is output                                  next_byte or transfer if data
                                                                       follow, else header
    transfer     all data of a request to memory are moved             WRITE: send_number; else:
                                                                       header
    ===========  ====================================================  =============================

    Parameters
    ----------
    configuration
        Its ``memory_base`` and ``memory_bytes`` bound the addresses that are allowed.
    receive_bytes
        RECEIVE_BYTES of the answer to a HELLO.
    transfers
        Leave the data of requests to memory to the circuit behind ``transfer``.

    Members
    -------
    i : ``In(stream.Signature(8))``
        Requests, as `receiver.RequestReceiver` outputs them; without the data of transfers.
    complaint : ``In(Complaint())``
        Answered between two requests.
    o : ``Out(stream.Signature(AnswerByte))``
        Answers, without the data of transfers. ``ready`` must stay 1 until a byte is transferred.
    memory : ``Out(ByteAccess(address_width))``
        Only without ``transfers``.
    transfer : ``Out(DataTransfer(address_width))``
        Only with ``transfers``.
    control : ``In(ControlPort())``
        Port of the controlled circuit.
    interrupt : ``In(1)``
        Level of the interrupt line; the level when an answer's first byte is transferred is
        reported.

    Latency: with a header's last byte transferred in cycle 0, the answer to a READ or a HELLO
    begins in cycle 4, to a WRITE of ``n`` bytes in cycle ``5 + 2 * n``. A READ's first byte is
    output 3 cycles after its answer's second byte, a first word of the control window 4.
    Throughput: a byte of a WRITE every 2 cycles, of a READ every 3; a word of the control window
    takes a cycle more when it is read. While the memory, ``i`` or ``o`` is not ready or valid,
    the executor waits.
    Path through it: from ``memory.ready`` to ``i.ready``.
    Area (128 KiB of memory): 176 LUT4 and 93 flip-flops on iCE40. Registers that a request loads
    before it uses them have no reset: with one it would be 181, because the enable of an iCE40
    flip-flop gates its reset, too.
    """

    def __init__(
        self,
        configuration: Configuration,
        receive_bytes: int = RECEIVE_BYTES,
        *,
        transfers: bool = False,
    ) -> None:
        self._transfers = transfers
        width = configuration.address_width
        bounds = MemoryBounds(configuration)
        bits = max(bounds.bits, CONTROL_ADDRESS_WIDTH)
        self._header = RequestHeader()
        self._counter = ByteCounter(bits)
        self._check = AccessCheck(bounds, bits)
        self._access = DataAccess(bounds, bits, width)
        self._answer = AnswerSource(receive_bytes)
        memory = {"transfer": DataTransfer(width)} if transfers else {"memory": ByteAccess(width)}
        super().__init__(
            {name: Out(signature) for name, signature in memory.items()}
            | {
                "i": In(stream.Signature(8)),
                "complaint": In(Complaint()),
                "o": Out(stream.Signature(AnswerByte)),
                "control": In(ControlPort()),
                "interrupt": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.header = header = self._header
        m.submodules.counter = counter = self._counter
        m.submodules.check = self._check
        m.submodules.access = access = self._access
        m.submodules.answer = answer = self._answer
        state: Any = Signal(_State)
        write = header.kind.write
        self._connect_request(m, state)
        self._connect_data(m, state)
        transitions: dict[str, list[tuple[Value, str]]] = {
            "header": [(header.complaint.answered, "send_number"), (header.complete, "start")],
            "start": [(ALWAYS, "check")],
            "check": [(ALWAYS, "decide")],
            "decide": [(write, "next_byte"), (ALWAYS, "send_number")],
            "next_byte": [
                (counter.done & write, "send_number"),
                (counter.done, "header"),
                (write, "take"),
                (self.o.ready, "fetch"),
            ],
            "take": [(access.taken, "next_byte")],
            "fetch": [(access.loads, "load"), (access.fetched, "send_byte")],
            "load": [(ALWAYS, "send_byte")],
            "send_byte": [(ALWAYS, "next_byte")],
            "send_number": [(answer.sent, "send_status")],
            "send_status": [(answer.sent & answer.more, "next_byte"), (answer.sent, "header")],
        }
        if self._transfers:
            # In place of next_byte.
            moves = self._check.to_memory & ~counter.done
            transitions["decide"].insert(0, (write & moves, "transfer"))
            transitions["send_status"].insert(0, (answer.sent & answer.more & moves, "transfer"))
            done = self.transfer.done
            transitions["transfer"] = [(done & write, "send_number"), (done, "header")]
        one_hot_fsm(m, state, transitions)
        return m

    def _connect_request(self, m: Module, state: Any) -> None:
        """Connect the units that read, count and check a request."""
        header, counter, check = self._header, self._counter, self._check
        counted = ~counter.done & (header.kind.write | self.o.ready)
        wiring.connect(m, wiring.flipped(self.complaint), header.complaint)
        m.d.comb += [
            header.enable.eq(state.header),
            header.i.valid.eq(self.i.valid),
            header.i.payload.eq(self.i.payload),
            counter.size_low.eq(header.size_low),
            counter.size_high.eq(header.size_high),
            counter.byte.eq(self.i.payload),
            counter.start.eq(state.start),
            counter.first.eq(self._access.word),
            counter.hello.eq(state.decide & header.kind.hello),
            counter.count.eq(state.next_byte & counted),
            counter.advance.eq(self._access.taken | state.send_byte),
            counter.compute_last.eq(state.check),
            check.kind.eq(header.kind),
            check.oversize.eq(header.oversize),
            check.minus_left.eq(counter.minus_left),
            check.done.eq(counter.done),
            check.first.eq(self._access.word),
            check.last.eq(counter.last),
            check.compare.eq(state.check),
            check.decide.eq(state.decide),
        ]

    def _connect_data(self, m: Module, state: Any) -> None:
        """Connect the units that access memory and control window, and answer."""
        header, counter, check = self._header, self._counter, self._check
        access, answer = self._access, self._answer
        if self._transfers:
            self._connect_transfer(m, state)
        else:
            wiring.connect(m, access.memory, wiring.flipped(self.memory))
            m.d.comb += [
                access.to_memory.eq(check.to_memory),
                answer.to_memory.eq(check.to_memory),
                answer.done.eq(counter.done),
                answer.memory_byte.eq(self.memory.read_data),
            ]
        wiring.connect(m, access.control, wiring.flipped(self.control))
        wiring.connect(m, answer.o, wiring.flipped(self.o))
        m.d.comb += [
            access.address.eq(counter.address),
            access.to_control.eq(check.to_control),
            access.write.eq(header.kind.write),
            access.execute.eq(~check.refused & ~header.kind.repeated),
            access.take.eq(state.take),
            access.fetch.eq(state.fetch),
            access.load.eq(state.load),
            access.shift_in.eq(header.address_byte),
            access.shift_out.eq(answer.shift_word),
            access.i.valid.eq(self.i.valid),
            access.i.payload.eq(self.i.payload),
            self.i.ready.eq(header.i.ready | access.i.ready),
            answer.send_number.eq(state.send_number),
            answer.send_status.eq(state.send_status),
            answer.send_byte.eq(state.send_byte),
            answer.number.eq(header.number),
            answer.complained.eq(header.complained),
            answer.refused.eq(check.refused),
            answer.minus_left.eq(counter.minus_left),
            answer.hello.eq(header.kind.hello),
            answer.interrupt.eq(self.interrupt),
            answer.word_byte.eq(access.word[:8]),
        ]

    def _connect_transfer(self, m: Module, state: Any) -> None:
        """Connect ``transfer``. No byte of it is counted."""
        header, counter, access = self._header, self._counter, self._access
        m.d.comb += [
            self._answer.done.eq(counter.done | header.kind.write),
            self.transfer.valid.eq(state.transfer),
            self.transfer.address.eq(access.memory.address),
            self.transfer.size_less_1.eq(~counter.minus_left),
            self.transfer.write.eq(header.kind.write),
            self.transfer.execute.eq(access.execute),
        ]
