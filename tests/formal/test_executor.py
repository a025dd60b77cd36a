"""The executor accesses what a request names, all of it or nothing, and no write twice."""

from typing import Any

from amaranth.hdl import Assert, Assume, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data

from bitlane_rtl.abi import CONTROL_BASE, CONTROL_SIZE, FRAME_DATA_BYTES, RECEIVE_BYTES, WORD_BYTES
from bitlane_rtl.configuration import Configuration
from bitlane_rtl.link import Mark, RequestExecutor, RequestHead
from bitlane_rtl.ports import CONTROL_ADDRESS_WIDTH
from support.formal.proof import Claim, Contract, Induction, before, proofs, taken

WIDTH = 16
"""Bits of an address of the memory."""

STATES = (
    "head",
    "address",
    "check",
    "compare",
    "begin",
    "take",
    "settle",
    "answer",
    "read",
    "fetch",
    "put",
)
"""Of `RequestExecutor`."""


class OnlyWhatIsAllowed(Contract):
    """Each byte that is accessed is one of an allowed request; a repeated WRITE accesses none.

    The memory begins at ``base`` and has ``size`` bytes. The host may send anything.
    """

    def __init__(self, base: int = 0x40, size: int = 0x40) -> None:
        super().__init__()
        self._base, self._size = base, size

    def claim(self, m: Module) -> None:
        configuration = Configuration(
            data_width=32, address_width=WIDTH, memory_base=self._base, memory_bytes=self._size
        )
        m.submodules.executor = executor = RequestExecutor(configuration, RECEIVE_BYTES)
        self._surround(m, executor)
        request = self._follow(m, executor)
        memory, control, answer = executor.memory, executor.control, executor.o
        kind, size = request.head.kind, request.head.size
        with m.If(memory.start):
            m.d.comb += [
                Assert(request.executes & request.in_memory),
                Assert(memory.address == request.address[:WIDTH]),
                Assert(memory.size_less_1 + 1 == size),
                Assert(memory.write == kind.write),
            ]
        with m.If(memory.words.valid):
            m.d.comb += Assert(request.executes & request.in_memory & kind.write)
            for lane in range(WORD_BYTES):
                byte = Cat(Const(lane, 2), memory.address[2:])
                inside = (byte >= request.address) & (byte <= request.last)
                m.d.comb += Assert(memory.words.p.strobe[lane] == inside)
        at = CONTROL_BASE | control.address
        with m.If(control.write | control.read):
            m.d.comb += [
                Assert(request.executes & request.in_window),
                Assert(control.write == kind.write),
                Assert(control.read == ~kind.write),
                Assert((at >= request.address) & (at <= request.last)),
            ]
        with m.If(answer.valid & self._state.answer):
            has_data = request.allowed & ~kind.write
            m.d.comb += [
                Assert(answer.p.data[:8] == request.head.number_low),
                Assert(answer.p.data[8:15] == ~request.allowed),
                Assert(answer.p.data[16:26] == Mux(has_data, size, 0)),
                Assert(answer.p.data[26:] == request.head.number_high),
                Assert(answer.p.last == ~(has_data & (size != 0))),
            ]
        m.d.comb += Assert(~self._state.put | answer.ready)
        self._remembers(m, request)

    def _surround(self, m: Module, executor: RequestExecutor) -> None:
        """Let line, memory and window do all that they may."""
        memory, o = executor.memory, executor.o
        self.offers(m, executor.i)
        self.offers(m, memory.read)
        self.takes(m, o)
        m.d.comb += [
            Assume(~before(m, o.ready & ~o.valid) | o.ready),
            memory.words.ready.eq(self.anything(1, "memory_ready")),
            memory.done.eq(self.anything(1, "done")),
            executor.control.read_data.eq(self.anything(32, "window")),
            executor.interrupt.eq(self.anything(1, "interrupt")),
        ]

    def _follow(self, m: Module, executor: RequestExecutor) -> "_Asked":
        """Return the request that was taken last, and what the contract says of it."""
        self._state: Any = data.View(
            data.StructLayout(dict.fromkeys(STATES, 1)), self.inside(len(STATES), "executor.state")
        )
        i, asked = executor.i, _Asked(self._base, self._size)
        self._at_address = at_address = Signal()
        self._due = due = Signal(9)  # words of data
        incoming: Any = data.View(RequestHead, i.p.data)
        is_head = ~at_address & (due == 0) & (i.p.mark == Mark.WORD)
        kind = incoming.kind
        # The receiver and the reader see to that.
        m.d.comb += Assume(~(is_head & i.valid & kind.hello & (kind.unknown | kind.write)))
        # All words of a request have one mark.
        m.d.comb += Assume(~i.valid | ~at_address & (due == 0) | (i.p.mark == Mark.WORD))
        with m.If(taken(i)):
            with m.If(at_address):
                offset = i.p.data[:2]
                words = (offset + asked.head.size + 3)[2:]
                data_follow = asked.head.kind.write & (asked.head.size != 0)
                m.d.sync += [
                    asked.address.eq(i.p.data),
                    at_address.eq(0),
                    due.eq(Mux(data_follow, words, 0)),
                ]
            with m.Elif(due != 0):
                m.d.sync += due.eq(due - 1)
            with m.Elif(is_head):
                m.d.sync += [Value.cast(asked.head).eq(i.p.data), at_address.eq(1)]
        return asked

    def _remembers(self, m: Module, request: "_Asked") -> None:
        """Claim what the executor remembers of the request, for induction."""
        state, head = self._state, request.head
        address, left = self.inside(32, "executor._address"), self.inside(9, "executor._left")
        is_first = self.inside(1, "executor._is_first")
        bits = CONTROL_ADDRESS_WIDTH
        one_hot = state.as_value()
        hello, write, none = head.kind.hello, head.kind.write, head.size == 0
        offset = Mux(hello, 0, request.address[:2])
        behind = Signal(9)  # words behind the first one
        moved = Signal(9)
        same = address == request.address
        loaded = same & (left == behind) & is_first
        moving = state.take | state.read | state.fetch | state.put
        m.d.comb += [
            behind.eq((offset + (head.size - 1)[:10])[2:11]),
            moved.eq(behind - left),
            Assert(one_hot.any() & ~(one_hot & (one_hot - 1)).any()),
            Assert(self._at_address == state.address),
            Assert(~state.head | (self._due == 0)),
            Assert(~state.settle | (write & ~none)),
        ]
        with m.If(~state.head):
            m.d.comb += [
                Assert(self.inside(32, "executor.head") == head.as_value()),
                Assert(~(hello & (head.kind.unknown | write))),
            ]
        with m.If(state.check | state.compare | state.begin):
            m.d.comb += Assert(self._due == Mux(write & ~none, behind + 1, 0))
        with m.If(state.check):
            m.d.comb += Assert(same)
        with m.If(state.compare | state.begin | (state.answer & ~write)):
            m.d.comb += Assert(loaded)
        with m.If(~(state.head | state.address | state.check)):
            last = self.inside(bits + 1, "executor._last_address")
            m.d.comb += Assert(none | (last == request.last[: bits + 1]))
        with m.If(state.begin | moving | state.settle | state.answer):
            in_control = request.address[bits:] == CONTROL_BASE >> bits
            m.d.comb += [
                Assert(self.inside(1, "executor.refused") == ~request.allowed),
                Assert(self.inside(1, "executor.to_control") == in_control),
            ]
        with m.If(moving):
            at = (request.address[2:bits] + Mux(hello, 0, moved))[: bits - 2]
            m.d.comb += [
                Assert(left <= behind),
                Assert(is_first == (moved == 0)),
                Assert(address[2:bits] == at),
                Assert(
                    Cat(address[:2], address[bits:])
                    == Cat(request.address[:2], request.address[bits:])
                ),
                Assert(self._due == Mux(state.take, left + 1, 0)),
                Assert(~none),
                Assert(state.take == write),
                Assert(write | request.allowed),
                Assert(~state.read | (request.in_memory & ~hello)),
                Assert(~(state.fetch | state.put) | request.in_window | hello),
            ]
        with m.If(state.settle | state.answer):
            m.d.comb += Assert(self._due == 0)


class _Asked:
    """A request, and what the contract says of it."""

    def __init__(self, base: int, size: int) -> None:
        self.head: Any = Signal(RequestHead)
        self.address = Signal(32)
        count, kind = self.head.size, self.head.kind
        self.last = (self.address + count - 1)[:34]
        """The last byte, of a request for some."""
        first = self.address
        none = count == 0
        self.in_memory = (first >= base) & (self.last < base + size)
        self.in_window = (
            (first >= CONTROL_BASE)
            & (self.last < CONTROL_BASE + CONTROL_SIZE)
            & (first[:2] == 0)
            & (count[:2] == 0)
        )
        reached = (count <= FRAME_DATA_BYTES) & (self.in_memory | self.in_window)
        self.allowed = ~kind.unknown & (none | kind.hello | reached)
        self.executes = self.allowed & ~none & ~kind.hello & ~(kind.write & kind.repeated)


"""First address and size of memories."""


BUGS = {
    "a repeated WRITE is executed": (
        "refused | (head.kind.write & head.kind.repeated)",
        "refused",
    ),
    "a request past the end is allowed": ("& no_carry", ""),
    "the window is written in parts of words": (
        "~first[:_WORD_BITS].any() & ~head.size[:_WORD_BITS].any()",
        "~first[:_WORD_BITS].any()",
    ),
    "bytes before the first one are written": ("~self._is_first | (begin <= byte)", "ALWAYS"),
    "bytes behind the last one are written": ("(~self._is_last | (finish >= byte))", "ALWAYS"),
    "a refused WRITE is executed": ("& in_memory & ~drops & ~none", "& in_memory & ~none"),
    "a refused answer has data": (
        "~(head.kind.write | refused | none)",
        "~(head.kind.write | none)",
    ),
}


test_it_holds, test_a_planted_bug_is_found = proofs(
    Claim(OnlyWhatIsAllowed, Induction(2), module="link.executor", bugs=BUGS, within=14),
    Claim(OnlyWhatIsAllowed, Induction(2), base=0x1000, size=0x2C00),
)
