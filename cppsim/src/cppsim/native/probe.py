"""Programs of probe.h: lists of instructions, and how they are called."""

import ctypes
from collections.abc import Callable, Sequence
from copy import copy
from enum import IntEnum, auto
from functools import cache, partial
from itertools import starmap
from typing import Any, NamedTuple

from . import native


class Code(IntEnum):
    """The operation of an instruction: ``Code`` of probe.h."""

    CONSTANT = 0
    FETCH = auto()
    PICK = auto()
    SPREAD = auto()
    ROW_8 = auto()
    ROW_16 = auto()
    ROW_32 = auto()
    ROW_64 = auto()
    AND = auto()
    OR = auto()
    XOR = auto()
    NOT = auto()
    SELECT = auto()
    ADD = auto()
    SUBTRACT = auto()
    MULTIPLY = auto()
    NEGATE = auto()
    DIVIDE = auto()
    DIVIDE_SIGNED = auto()
    MODULO = auto()
    MODULO_SIGNED = auto()
    EQUAL = auto()
    UNEQUAL = auto()
    LESS = auto()
    LESS_EQUAL = auto()
    LESS_SIGNED = auto()
    LESS_EQUAL_SIGNED = auto()
    ODD = auto()
    LEFT = auto()
    RIGHT = auto()
    RIGHT_SIGNED = auto()


class Instruction(NamedTuple):
    """``Instruction`` of probe.h."""

    code: Code
    a: int = 0
    b: int = 0
    c: int = 0
    low: int = 0
    """``from`` of probe.h."""
    to: int = 0
    mask: int = (1 << 64) - 1


class _Instruction(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_uint32) for name in ("code", "a", "b", "c", "low", "to")),
        ("mask", ctypes.c_uint64),
    )


_SIZE = ctypes.sizeof(_Instruction) // 8
"""64-bit words of an instruction."""
_MASK = _Instruction.mask.offset // 8
"""The word of its mask."""


class _Program(ctypes.Structure):
    # Pointers of these types keep alive what they point to.
    _fields_ = (
        ("instructions", ctypes.POINTER(_Instruction)),
        ("values", ctypes.POINTER(ctypes.c_uint64)),
        ("count", ctypes.c_size_t),
    )


class ProbeProgram:
    """A program in memory.

    Attributes
    ----------
    address : int
        Of its ``Program``, for native code, while this lives.
    words : frozenset of int
        The words that it reads.
    result : memoryview
        Its latest value, as an unsigned number.
    signed : bool
        Its value is to be taken as a signed one.
    """

    def __init__(
        self,
        instructions: Sequence[Instruction],
        *,
        signed: bool = False,
        opened: Sequence[tuple[int, int]] = (),
    ) -> None:
        """Load the program; ``opened`` has the number and mask of each constant `hold` sets."""
        self.words = frozenset(x.a for x in instructions if x.code is Code.FETCH)
        self.signed = signed
        self._open = [
            (instruction * _SIZE + _MASK, mask, number)
            for number, (instruction, mask) in enumerate(opened)
        ]
        self.load((_Instruction * len(instructions))(*starmap(_Instruction, instructions)))

    def load(self, instructions: Any) -> None:
        """Execute ``instructions`` from now on: an array in memory."""
        count = len(instructions)
        values = (ctypes.c_uint64 * count)()
        self._instructions = instructions
        self._content = _Program(instructions, values, count)
        self.address = ctypes.addressof(self._content)
        self.result = memoryview(values).cast("B").cast("Q")[-1:]
        # A view of numbers is written in a third of the time of a field.
        self._words = memoryview(instructions).cast("B").cast("Q")

    def hold(self, constants: Sequence[int]) -> None:
        """Set the open constants."""
        words = self._words
        for word, mask, number in self._open:
            words[word] = constants[number] & mask

    def holding(self, constants: Sequence[int]) -> "ProbeProgram":
        """Return a copy with these open constants; itself if it has none."""
        if not self._open:
            return self
        made = copy(self)
        made.load(type(self._instructions).from_buffer_copy(self._instructions))
        made.hold(constants)
        return made

    def __len__(self) -> int:
        return int(self._content.count)

    def on(self, words: int) -> Callable[[], int]:
        """Return a function that evaluates the program on the words at this address."""
        pointers = ctypes.byref(self._content), ctypes.byref(ctypes.c_uint64.from_address(words))
        call = partial(_function(signed=self.signed), *pointers)
        vars(call)["program"] = self  # which is to live as long
        return call


@cache
def _library() -> Any:
    # Programs are so short that giving up the interpreter's lock would take longer.
    return ctypes.PyDLL(native()._name)


@cache
def _function(*, signed: bool) -> Any:
    # `library[name]` returns a new function object, so that its `restype` is not shared.
    function = _library()["probe_value"]
    function.restype = ctypes.c_int64 if signed else ctypes.c_uint64
    # Without types: references are passed as they are, in two thirds of the time of addresses.
    return function
