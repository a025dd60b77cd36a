"""A compiled design in memory: its words, the rows of its memories, and its functions."""

import ctypes
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ..amaranth_internals import rows_of
from ..compiling import load
from ..cpp import BitField, element_bits
from ..cpp.simulation import SimulationSource
from ..errors import FallbackWarning, SimulationError, warn_user
from ..netlist import Bits, Memory, from_words, messages_of, row_bytes, to_words, word_count
from ..netlist.lowered import DesignMessage, Lowered
from . import InstanceHandle
from .interpreted import Interpreter

if TYPE_CHECKING:
    from .counters import Counters

_FUNCTIONS = ("step", "settle", "edge", "levels")

_FORMATS: dict[int, Any] = {8: "B", 16: "H", 32: "I", 64: "Q"}


class DesignInstance:
    """One instance of a lowered design whose C++ ``source`` has a library, or is interpreted.

    An interpreted design is compiled before it settles, or in `compile_if_spent`, if it has run so
    long that compiling pays. Raises ``SimulationError`` if the library cannot be loaded.

    Attributes
    ----------
    words : memoryview
        The state, as unsigned numbers of 64 bits.
    address : int
        The address of the words.
    source : SimulationSource
        Its C++ and the layout of its words.
    step : callable
        Executes the edges of the inputs. Returns 1 if another step must follow, plus 2 if there
        are messages.
    edge, levels : callable
        The two halves of ``step``, between which inputs may change: the edges of clocks, then the
        levels of clocks that the design makes. ``levels`` returns what ``step`` does.
    native : InstanceHandle
        The model for native code, valid as long as this object.
    """

    def __init__(self, lowered: Lowered, source: SimulationSource) -> None:
        self.source = source
        self._messages: list[DesignMessage] = [*lowered.edge_messages, *lowered.comb_messages]
        self._sizes = [
            [word_count(len(bits)) for bits in message.values] for message in self._messages
        ]
        self._memories = {id(x): number for number, x in enumerate(lowered.design.memories)}
        self._interpreter: Interpreter | None = None
        library: Any
        if source.library is not None:
            library = load(source.library)
        else:
            assert source.postponed is not None
            library = self._interpreter = Interpreter(source.postponed)
        self._library = library
        # A plain number is what ctypes hands over fastest.
        self._handle = library.simulation_create()
        if not self._handle:
            raise SimulationError("no memory is left for the compiled design")
        self._contents = [
            (self.address_of(x), row_bytes(rows_of(data), x.columns, element_bits(x.width)))
            for data, x in lowered.rows.items()
            if any(rows_of(data))
        ]
        self._fill()
        self.address = library.simulation_words(self._handle)
        content = (ctypes.c_uint64 * source.size).from_address(self.address)
        self.words = memoryview(content).cast("B").cast("Q")
        self.native = InstanceHandle(self._handle, self.address)
        self._begin(library, self._handle)
        self.take_counts: Callable[[], None] | None = None
        """Called before counters of coverage are lost."""

    def _begin(self, library: Any, top: int) -> None:
        """Execute the functions of ``library`` on ``top`` from now on."""
        functions = [getattr(library, f"simulation_{name}") for name in _FUNCTIONS]
        self.step, settle, self.edge, self.levels = (
            partial(function, top) for function in functions
        )
        if self._interpreter is None:
            vars(self)["settle"] = settle  # in two thirds of the time of the method
        self.native.top = top
        for name, function in zip(_FUNCTIONS, functions, strict=True):
            setattr(self.native, name, _address(function))

    def settle(self) -> None:
        """Compute the signals that follow from state and inputs."""
        # A testbench may settle a design for ever without an event of the engine.
        self.compile_if_spent()
        self._library.simulation_settle(self._handle)

    def compile_if_spent(self) -> None:
        """Compile an interpreted design if it has run so long that compiling pays.

        A `FallbackWarning` says why it cannot be compiled; it is interpreted on then.
        """
        interpreter = self._interpreter
        if interpreter is None or not interpreter.is_spent():
            return
        try:
            library = load(interpreter.postponed.compile())
            interpreter.check(library)
        except SimulationError as error:
            self._interpreter = None
            self._begin(self._library, self._handle)
            warn_user(FallbackWarning(f"interpreted, not compiled: {error}"))
        else:
            self._interpreter = None
            self._begin(library, interpreter.state)

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            take = getattr(self, "take_counts", None)
            if take is not None and not sys.is_finalizing():
                take()
            self._library.simulation_destroy(self._handle)

    def locate(self, bits: Bits) -> tuple[Sequence[BitField], int, bool]:
        """Return the words of ``bits``, their constant part, and whether they need ``settle``."""
        constant = sum(1 << index for index, bit in enumerate(bits) if bit == 1)
        settled = bits in self.source.settled
        return self.source.fields[bits], 0 if settled else constant, settled

    def rows(self, memory: Memory, *, signed: bool) -> "Rows":
        """Return the rows of one of the design's memories."""
        address = self.address_of(memory)
        return Rows(address, memory.width, memory.depth, signed=signed)

    def counters(self) -> "Counters | None":
        """Return the counters of coverage, None if it is not measured.

        They are valid as long as this object.
        """
        covered = self.source.covered
        if covered is None or not covered.words:
            return None
        from .counters import Counters  # NumPy, which only coverage needs

        return Counters(partial(self._library.simulation_covered, self._handle), covered)

    def address_of(self, memory: Memory) -> int:
        """Return the address of the rows of one of the design's memories."""
        number = self._memories[id(memory)]
        return int(self._library.simulation_memory(self._handle, number))

    def reset(self) -> None:
        """Return to the state at power-on."""
        if self.take_counts is not None:
            self.take_counts()
        self._library.simulation_reset(self._handle)
        self._fill()

    def _fill(self) -> None:
        """Copy in the rows of memories at power-on; in the library all are 0."""
        for address, content in self._contents:
            ctypes.memmove(address, content, len(content))

    def resume(self, levels: Mapping[int, int]) -> None:
        """Set bits of the state to ``levels``, from power-on, as if between two steps.

        Other bits keep their values. The next messages have been reported before. Raises
        ``SimulationError`` for a register without level.
        """
        for bits in self.source.registers:
            if not levels.keys() >= set(bits):
                raise SimulationError("a register has no signal")
        words = self.words
        for bit, (word, index) in self.source.stored.items():
            if bit in levels:
                words[word] = words[word] & ~(1 << index) | levels[bit] << index
        shown = {word for word, _ in self.source.stored.values()}
        for word, previous in self.source.previous.items():
            given, other = (previous, word) if previous in shown else (word, previous)
            words[other] = words[given]
        # Clocks that the design makes are compared with what they were at the last step.
        self.step()
        for word in self.source.due:
            words[word] = 0

    def messages(self) -> Iterator[tuple[DesignMessage, tuple[int, ...]]]:
        """Yield the messages since the last call, each with its values, in order."""
        first = ctypes.POINTER(ctypes.c_uint64)()
        count = self._library.simulation_messages(self._handle, ctypes.byref(first))
        for number, values in messages_of(first[:count], self._sizes):
            yield self._messages[number], values


def _address(function: Any) -> int | None:
    return ctypes.cast(function, ctypes.c_void_p).value


class Rows:
    """A compiled memory as a list of numbers.

    Attributes
    ----------
    content : memoryview
        The array of the memory.
    element_bits : int
        Width of an element of the array.
    """

    def __init__(self, address: int, width: int, depth: int, *, signed: bool) -> None:
        self.element_bits = size = element_bits(width)
        self._count = word_count(width) if width else 1
        kind = {8: ctypes.c_uint8, 16: ctypes.c_uint16, 32: ctypes.c_uint32, 64: ctypes.c_uint64}
        content = (kind[size] * (self._count * max(1, depth))).from_address(address)
        self.content = memoryview(content).cast("B")
        self._elements = self.content.cast(_FORMATS[size])
        self._width, self._depth, self._signed = width, depth, signed

    def __len__(self) -> int:
        return self._depth

    def __bytes__(self) -> bytes:
        return bytes(self._elements)

    def __getitem__(self, row: int) -> int:
        if self._count == 1:
            value = self._elements[row]
        else:
            first = row * self._count
            # Not a slice, which would be empty past the end, and raise no IndexError.
            value = from_words(self._elements[first + k] for k in range(self._count))
        if self._signed and value >> (self._width - 1) & 1:
            value -= 1 << self._width
        return value

    def __setitem__(self, row: int, value: int) -> None:
        value &= (1 << self._width) - 1
        first = row * self._count
        for k, word in enumerate(to_words(value, self._count)):
            self._elements[first + k] = word
