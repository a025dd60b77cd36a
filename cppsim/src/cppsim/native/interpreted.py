"""A design as programs that native code executes, from which the first steps do not wait for C++.

`write_interpretation` writes them; an `Interpreter` has the functions of a compiled library.
"""

import ctypes
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum, auto
from functools import cache
from typing import Any

from ..compiling import bind
from ..cpp import element_bits, words_of
from ..cpp.simulation import Postponed, SimulationSource
from ..errors import SimulationError
from ..netlist import WORD, Bits, Memory, NotPlain, word_count
from ..netlist.lowered import ClockEdge, DesignMessage, Lowered, clock_plan, edge_sides
from ..netlist.passes import Statement
from . import native
from .probe import Code, Instruction
from .programs import Locations, ProgramWriter


class Kind(IntEnum):
    """The kinds of actions; ``Kind`` of interpreter.h has the same numbers."""

    STORE = 0
    COPY = auto()
    WRITE_8 = auto()
    WRITE_16 = auto()
    WRITE_32 = auto()
    WRITE_64 = auto()
    MESSAGE = auto()
    VALUE = auto()


_Action = tuple[Kind, int, int, int, int, int, int]

_ITEM = struct.Struct("=6IQ")
"""An instruction, and an action: their fields in order."""

_POINTER = ctypes.sizeof(ctypes.c_void_p)

_ROWS = frozenset({Code.ROW_8, Code.ROW_16, Code.ROW_32, Code.ROW_64})


@dataclass(frozen=True, slots=True)
class WrittenPart:
    """A program, the instructions in it that hold the address of a memory, and the actions."""

    program: bytes = b""
    rows: tuple[int, ...] = ()
    actions: bytes = b""


@dataclass(frozen=True, slots=True)
class Interpretation:
    """``Interpretation`` of interpreter.h. ``memories`` are offsets of memories in the state."""

    parts: tuple[WrittenPart, ...]
    starts: tuple[int, ...]
    memories: tuple[int, ...]
    size: int


def write_interpretation(lowered: Lowered, source: SimulationSource) -> Interpretation:
    """Return the programs of a design whose C++ is ``source``.

    Raises ``NotPlain`` if it needs an operation on more than 64 bits, or a number that the layout
    of an instruction does not hold, such as 2**32 rows.
    """
    memories, size = _layout(lowered, source)
    writer = _Design(
        lowered, source, dict(zip(map(id, lowered.design.memories), memories, strict=True))
    )
    try:
        parts = (
            writer.active(),
            writer.edge(),
            writer.previous(),
            writer.levels(),
            writer.settle(),
        )
    except struct.error as error:
        raise NotPlain(str(error)) from None
    return Interpretation(parts, tuple(source.starts) or (0,), memories, size)


def _layout(lowered: Lowered, source: SimulationSource) -> tuple[tuple[int, ...], int]:
    """Return the offsets of the memories in ``Top``, and its size in bytes."""
    end, offsets = 8 * source.size + _POINTER + 1, []
    for memory in lowered.design.memories:
        element = element_bits(memory.width) // 8
        offsets.append(-(-end // element) * element)
        end = offsets[-1] + element * max(1, memory.depth) * max(1, word_count(memory.width))
    return tuple(offsets), -(-end // 8) * 8


class _PartWriter(ProgramWriter):
    """Writes a part; ``drivers`` has the number among ``steps`` of the driver of a bit."""

    def __init__(
        self,
        stored: Locations,
        offsets: dict[int, int],
        steps: Sequence[Statement],
        drivers: dict[int, int],
    ) -> None:
        super().__init__([stored], lambda memory: offsets[id(memory)])
        self._offsets, self._steps, self._drivers = offsets, steps, drivers
        self.actions: list[_Action] = []
        self.one = self._constant(1)

    def need(self, *roots: Iterable[int]) -> None:
        """Write the steps on which ``roots`` depend."""
        left, found = list(roots), set[int]()
        while left:
            for number in {self._drivers[bit] for bit in left.pop() if bit in self._drivers}:
                if number not in found:
                    found.add(number)
                    left += self._steps[number].operands
        for number in sorted(found):
            self.step(self._steps[number])

    def value(self, bits: Bits) -> int:
        return self._value(bits)

    def constant(self, value: int) -> int:
        return self._constant(value)

    def bit(self, word: int, index: int) -> int:
        return self._put(Code.FETCH, word, self._constant(0), low=index, mask=1)

    def rising(self, low: int, high: int) -> int:
        """Return 1 where ``low`` is 0 and ``high`` is 1."""
        return self._put(Code.AND, self._put(Code.NOT, low, low, mask=1), high, mask=1)

    def any(self, values: Sequence[int]) -> int:
        result, *others = values
        for other in others:
            result = self._put(Code.OR, result, other)
        return result

    def define(self, bit: int, value: int) -> None:
        self._define((bit,), value)

    def act(self, kind: Kind, target: int, value: int, enable: int = 0, *row: int) -> None:
        at, rows, step = row or (0, 0, 0)
        self.actions.append((kind, enable, value, at, rows, step, target))

    def written(self, result: int | None = None) -> WrittenPart:
        """Return the part, whose value is ``result``."""
        if result is None and not self.actions:
            return WrittenPart()
        zero = self._constant(0)
        code = list(self._instructions)
        if result is not None and result != len(code) - 1:
            code.append(Instruction(Code.PICK, result, zero))
        rows = tuple(number for number, x in enumerate(code) if x.code in _ROWS)
        pack = _ITEM.pack
        actions = b"".join(pack(*action) for action in self.actions)
        return WrittenPart(b"".join(pack(*x) for x in code), rows, actions)


class _Design:
    """Writes the parts of a design."""

    def __init__(self, lowered: Lowered, source: SimulationSource, offsets: dict[int, int]) -> None:
        self._lowered, self._source = lowered, source
        self._offsets = offsets
        self._stored = dict(source.stored)
        derived = [lowered.edges[number] for number in sorted(clock_plan(lowered).derived)]
        self._derived = list(zip(derived, source.due, strict=True))
        self._stored |= {edge.bit: (due, 0) for edge, due in self._derived}
        self._drivers = {
            bit: number for number, step in enumerate(source.steps) for bit in step.result
        }

    def _part(self) -> _PartWriter:
        return _PartWriter(self._stored, self._offsets, self._source.steps, self._drivers)

    def _edge(self, part: _PartWriter, edge: ClockEdge) -> int:
        """Return whether ``edge`` happens in a step."""
        for other, due in self._derived:
            if other is edge:
                return part.bit(due, 0)
        word, index = self._source.stored[edge.net]
        words = {previous: word for word, previous in self._source.previous.items()}
        word = words.get(word, word)
        before, after = part.bit(self._source.previous[word], index), part.bit(word, index)
        return part.rising(*edge_sides(edge, before, after))

    def active(self) -> WrittenPart:
        part = self._part()
        edges = [self._edge(part, edge) for edge in self._lowered.edges]
        return part.written(part.any(edges)) if edges else WrittenPart()

    def edge(self) -> WrittenPart:
        part, design = self._part(), self._lowered.design
        for edge in self._lowered.edges:
            part.define(edge.bit, self._edge(part, edge))
        writes = [(memory, x) for memory in design.memories for x in memory.writes if x.enable]
        part.need(
            *((x.enable, *bits) for x in self._lowered.edge_messages for bits in (*x.values, ())),
            *(bits for x in design.registers for bits in (x.following, x.conditions)),
            *(bits for _, x in writes for bits in (x.address, x.data, x.enable)),
        )
        self._report(part, self._lowered.edge_messages, 0)
        for register in design.registers:
            assert register.reset is None, "a register whose data has no reset"
            enable = part.one if register.enable is None else part.value((register.enable,))
            for low in range(0, len(register.result), WORD):
                piece = register.part(slice(low, low + WORD))
                word, _ = self._stored[piece.result[0]]
                part.act(Kind.STORE, word, part.value(piece.following), enable)
        for memory, write in writes:
            self._write(part, memory, write)
        return part.written()

    def _write(self, part: _PartWriter, memory: Memory, write: Any) -> None:
        size, row = element_bits(memory.width) // 8, part.value(write.address)
        count = max(1, word_count(memory.width))
        for number, low in enumerate(range(0, memory.width, WORD)):
            at = slice(low, low + WORD)
            value, enable = part.value(write.data[at]), part.value(write.enable[at])
            first = self._offsets[id(memory)] + number * size
            kind = Kind[f"WRITE_{8 * size}"]
            part.act(kind, first, value, enable, row, memory.depth, count)

    def _report(self, part: _PartWriter, messages: Sequence[DesignMessage], first: int) -> None:
        for number, message in enumerate(messages, first):
            values = [part.value(bits) for whole in message.values for bits in words_of(whole)]
            part.act(Kind.MESSAGE, number, len(values), part.value((message.enable,)))
            for value in values:
                part.act(Kind.VALUE, 0, value)

    def previous(self) -> WrittenPart:
        part = self._part()
        for word, previous in self._source.previous.items():
            part.act(Kind.COPY, previous, word)
        return WrittenPart(actions=part.written().actions)

    def levels(self) -> WrittenPart:
        part, watches = self._part(), self._lowered.comb_messages
        part.need(
            [edge.net for edge, _ in self._derived],
            *((x.enable, *bits) for x in watches for bits in (*x.values, ())),
        )
        pending = []
        for edge, due in self._derived:
            before, now = part.bit(due + 1, 0), part.value((edge.net,))
            pending.append(part.rising(*edge_sides(edge, before, now)))
            part.act(Kind.STORE, due, pending[-1], part.one)
            part.act(Kind.STORE, due + 1, now, part.one)
        self._report(part, watches, len(self._lowered.edge_messages))
        if not part.actions:
            return WrittenPart()
        return part.written(part.any(pending) if pending else part.constant(0))

    def settle(self) -> WrittenPart:
        part, source = self._part(), self._source
        settled = [bits for bits in source.fields if bits in source.settled]
        part.need(*settled)
        for bits in settled:
            for field, piece in zip(source.fields[bits], words_of(bits), strict=True):
                part.act(Kind.STORE, field.word, part.value(piece), part.one)
        return part.written()


# --- execution --------------------------------------------------------------------------------


class _Part(ctypes.Structure):
    _fields_ = (
        ("instructions", ctypes.c_void_p),
        ("values", ctypes.c_void_p),
        ("count", ctypes.c_size_t),
        ("actions", ctypes.c_void_p),
        ("size", ctypes.c_uint64),
    )


class _Interpretation(ctypes.Structure):
    _fields_ = (
        ("parts", _Part * 5),
        ("starts", ctypes.c_void_p),
        ("size", ctypes.c_uint64),
        ("bytes", ctypes.c_uint64),
    )


_ADDRESS, _SIZE = ctypes.c_void_p, ctypes.c_size_t

_FUNCTIONS = {
    "interpreter_create": (_ADDRESS, (_ADDRESS, ctypes.c_int64)),
    "interpreter_destroy": (None, (_ADDRESS,)),
    "interpreter_reset": (None, (_ADDRESS,)),
    "interpreter_state": (_ADDRESS, (_ADDRESS,)),
    "interpreter_step": (ctypes.c_int, (_ADDRESS,)),
    "interpreter_edge": (None, (_ADDRESS,)),
    "interpreter_levels": (ctypes.c_int, (_ADDRESS,)),
    "interpreter_settle": (None, (_ADDRESS,)),
    "interpreter_messages": (_SIZE, (_ADDRESS, ctypes.POINTER(ctypes.POINTER(ctypes.c_uint64)))),
}


@cache
def _library() -> Any:
    return bind(native(), _FUNCTIONS)


class Interpreter:
    """The functions of a compiled library for one instance of a design, which it interprets.

    Holds what native code reads.
    """

    def __init__(self, postponed: Postponed) -> None:
        self.postponed = postponed
        self._design: Interpretation = postponed.program
        library = _library()
        self.simulation_destroy = library.interpreter_destroy
        self.simulation_reset = library.interpreter_reset
        self.simulation_words = library.interpreter_state
        self.simulation_step = library.interpreter_step
        self.simulation_edge = library.interpreter_edge
        self.simulation_levels = library.interpreter_levels
        self.simulation_settle = library.interpreter_settle
        self.simulation_messages = library.interpreter_messages

    def simulation_create(self) -> int | None:
        """Return the handle of a new instance, None if memory is exhausted."""
        design = self._design
        programs = [bytearray(part.program) for part in design.parts]
        actions = [part.actions for part in design.parts]
        values = (ctypes.c_uint64 * (1 + max(map(len, programs)) // _ITEM.size))()
        starts = (ctypes.c_uint64 * len(design.starts))(*design.starts)
        views = [(ctypes.c_char * len(program)).from_buffer(program) for program in programs]
        parts = (
            _Part(
                ctypes.addressof(view),
                ctypes.addressof(values),
                len(program) // _ITEM.size,
                ctypes.cast(ctypes.c_char_p(action), ctypes.c_void_p),
                len(action) // _ITEM.size,
            )
            for view, program, action in zip(views, programs, actions, strict=True)
        )
        content = _Interpretation(
            (_Part * 5)(*parts),
            ctypes.addressof(starts),
            len(design.starts),
            design.size,
        )
        self._held = views, actions, values, starts, content
        handle: int | None = _library().interpreter_create(
            ctypes.addressof(content), self.postponed.patience
        )
        if not handle:
            return None
        self.state = int(self.simulation_words(handle))
        for program, part in zip(programs, design.parts, strict=True):
            words = memoryview(program).cast("Q")
            for number in part.rows:
                words[(number + 1) * _ITEM.size // 8 - 1] += self.state
        self.left = ctypes.c_int64.from_address(handle)
        return handle

    def simulation_memory(self, handle: int, number: int) -> int:
        """Return the address of the rows of a memory."""
        return self.state + self._design.memories[number]

    def is_spent(self) -> bool:
        """Return whether compiling pays from now on."""
        return self.left.value < 0

    def check(self, library: Any) -> None:
        """Raise ``SimulationError`` if a compiled ``library`` has another layout of the state."""
        for number, offset in enumerate(self._design.memories):
            found = library.simulation_memory(self.state, number) - self.state
            if found != offset:
                raise SimulationError(
                    f"memory {number} is at byte {found} of the compiled design's state; the"
                    f" interpreter expected it at byte {offset}"
                )
