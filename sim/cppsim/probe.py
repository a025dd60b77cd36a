"""Look at one value of a compiled design without settling all of it: *probes*.

A probe is a program that computes a value from what is stored, over the cone of cells on which it
depends. Nothing is made for values whose cone is so large that settling everything is faster.
"""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from amaranth.hdl import Signal

from .cpp.words import WORD
from .design import Bits, NotPlain, PlainCell
from .lowering import Lowered
from .model import CompiledModel
from .native.probe import Program
from .probe_expression import PlainExpression, lower_expression
from .probe_writer import ProgramWriter

__all__ = ["Probes"]

_WORTH = 8
"""Steps of a design that are settled while a program executes one instruction."""
_LEAST = 100
"""Instructions that take no longer than calling anything."""
_FIRST_SHOWN = 1 << 61
"""Bits of what is settled have numbers that others do not reach."""


class Probes:
    """Programs for values of one design.

    Attributes
    ----------
    limit : int
        Instructions at most; of more, settling is faster.
    """

    def __init__(self, lowered: Lowered, model: CompiledModel) -> None:
        self._signals: Mapping[Signal, Bits] = lowered.signals
        self._model = model
        self.limit = _LEAST + len(model.steps) // _WORTH

    def of_bits(self, bits: Bits, *, signed: bool = False) -> Program | None:
        """The value of ``bits`` of the design, up to 64, after all that has happened."""
        return self._program(PlainExpression([], bits, signed), self._model.stored)

    def of_settled(self, value: Any) -> Program | None:
        """The value of an expression of what the signals of the design show.

        Those that are settled show that of which settling was the last.
        """
        stored = dict[int, tuple[int, int]]()
        return self._of_expression(value, lambda signal: self._shown(signal, stored), stored)

    def of_expression(self, value: Any) -> Program | None:
        """The value of an expression of signals of the design, after all that has happened."""
        return self._of_expression(value, self._signals.__getitem__, self._model.stored)

    def _of_expression(
        self,
        value: Any,
        bits_of: Callable[[Signal], Bits],
        stored: Mapping[int, tuple[int, int]],
    ) -> Program | None:
        try:
            expression = lower_expression(value, bits_of)
        except (NotPlain, KeyError):
            return None
        return self._program(expression, stored)

    def _shown(self, signal: Signal, stored: dict[int, tuple[int, int]]) -> Bits:
        """Bits for what a signal shows, after noting where they are."""
        places, constant, _ = self._model.places(self._signals[signal])
        shown = [constant >> place & 1 for place in range(len(signal))]
        for place in places:
            for number in range(place.width):
                bit = shown[place.low + number] = _FIRST_SHOWN + len(stored)
                stored[bit] = place.word, place.shift + number
        return tuple(shown)

    @cached_property
    def _drivers(self) -> dict[int, int]:
        """The number of the step that computes a bit."""
        return {
            bit: number
            for number, step in enumerate(self._model.steps)
            for bit in (step.result if isinstance(step, PlainCell) else step[1].result)
        }

    def _program(
        self, expression: PlainExpression, stored: Mapping[int, tuple[int, int]]
    ) -> Program | None:
        if len(expression.bits) > WORD:
            return None
        writer = ProgramWriter(stored, self._model.address_of)
        bits = [expression.bits, *(x for cell in expression.cells for x in cell.operands)]
        cone = self._cone(bits)
        if cone is None:
            return None
        try:
            for step in (*(self._model.steps[number] for number in cone), *expression.cells):
                writer.step(step)
            program = writer.program(expression.bits, signed=expression.signed)
        except NotPlain:
            return None
        return program if len(program) <= self.limit else None

    def _cone(self, roots: list[Bits]) -> list[int] | None:
        """Numbers of the steps on which bits depend, in order; None for more than there may be."""
        left = [bit for bits in roots for bit in bits]
        found: set[int] = set()
        while left:
            number = self._drivers.get(left.pop())
            if number is not None and number not in found:
                found.add(number)
                if len(found) > self.limit:
                    return None
                step = self._model.steps[number]
                if isinstance(step, PlainCell):
                    left += [bit for operand in step.operands for bit in operand]
                else:
                    left += step[1].address
        return sorted(found)
