"""Look at one value of a compiled design without settling all of it: *probes*.

A probe is a program that computes a value from what is stored, over the cone of cells on which it
depends. Nothing is made for values whose cone is so large that settling everything is faster.
"""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from amaranth.hdl import Signal

from ..cpp.simulation import WordPlace
from ..native.compiled import CompiledModel
from ..native.probe import ProbeProgram
from ..netlist.design import Bits, NotPlain, PlainCell
from ..netlist.lowered import Lowered
from ..netlist.passes import Statement
from .expression import lower_expression
from .writer import Places, ProgramWriter

_WORTH = 16
"""Steps of a design that are settled while a program executes one instruction."""
_LEAST = 32
"""Instructions that take no longer than calling anything does."""
_CALL = 2000
"""Steps of a design that are settled while a short program is called."""
_FIRST_SHOWN = 1 << 61
"""First number of the bits for settled values of signals, above all other numbers."""


class Probes:
    """Programs for values of one design.

    Attributes
    ----------
    limit : int
        Instructions instead of settling, which is faster than more of them.
    patience : int
        Programs to call before settling is faster, after which there is nothing to compute.
    """

    def __init__(self, lowered: Lowered, model: CompiledModel) -> None:
        self._signals: Mapping[Signal, Bits] = lowered.signals
        self._model = model
        self.limit = max(_LEAST, len(model.steps) // _WORTH)
        self.patience = len(model.steps) // _CALL

    def is_settled(self, signal: Signal) -> bool:
        """Whether settling is what brings a signal up to date."""
        return signal in self._signals and self._model.places(self._signals[signal])[2]

    def only_place(self, signal: Signal) -> WordPlace | None:
        """Return the place of an unsigned signal; None if it has more than one."""
        if signal not in self._signals or signal.shape().signed:
            return None
        places, constant, _ = self._model.places(self._signals[signal])
        whole = len(places) == 1 and places[0].width == len(signal) and not constant
        return places[0] if whole else None

    def of_settled(self, value: Any) -> ProbeProgram | None:
        """Return a program for an expression of up to 64 bits, over the settled signals.

        Those that are settled show that of which settling was the last.
        """
        shown: dict[int, tuple[int, int]] = {}
        return self._program(value, lambda signal: self._shown(signal, shown), [shown])

    def of_expression(self, value: Any) -> ProbeProgram | None:
        """As `of_settled`, but signals are what settling would let them show.

        None also if settling is faster.
        """
        shown: dict[int, tuple[int, int]] = {}

        def bits_of(signal: Signal) -> Bits:
            settled = self.is_settled(signal)
            return self._signals[signal] if settled else self._shown(signal, shown)

        program = self._program(value, bits_of, [shown, self._model.stored])
        return program if program is not None and len(program) <= self.limit else None

    def _shown(self, signal: Signal, stored: dict[int, tuple[int, int]]) -> Bits:
        """Return bits for a signal's settled value, and note their places."""
        places, constant, _ = self._model.places(self._signals[signal])
        shown = [constant >> place & 1 for place in range(len(signal))]
        for place in places:
            for number in range(place.width):
                bit = shown[place.low + number] = _FIRST_SHOWN + len(stored)
                stored[bit] = place.word, place.shift + number
        return tuple(shown)

    def _program(
        self, value: Any, bits_of: Callable[[Signal], Bits], stored: Sequence[Places]
    ) -> ProbeProgram | None:
        writer = ProgramWriter(stored, self._model.address_of)
        try:
            expression = lower_expression(value, bits_of)
            read = [bits for cell in expression.cells for bits in cell.operands]
            for number in self._cone([expression.bits, *read]):
                writer.step(self._model.steps[number])
            for cell in expression.cells:
                writer.step(cell)
            return writer.program(expression.bits, signed=expression.signed)
        except NotPlain:
            return None

    def _cone(self, roots: list[Bits]) -> list[int]:
        """Numbers of the steps on which bits depend, in order. Raises ``NotPlain`` for too many."""
        left, found = list(roots), set[int]()
        while left:
            first = last = 0
            for bit in left.pop():
                if not first <= bit < last:
                    first, last, number = self._driver(bit)
                    if number >= 0 and number not in found:
                        found.add(number)
                        left += _read_by(self._model.steps[number])
            if len(found) > self.limit:
                raise NotPlain("settling is faster")
        return sorted(found)

    def _driver(self, bit: int) -> tuple[int, int, int]:
        """Bits among which ``bit`` is, and the number of the step that computes them, or -1."""
        place = bisect_right(self._results, (bit, _FIRST_SHOWN, 0))
        first, last, number = self._results[place - 1] if place else (0, 0, 0)
        if bit < last:
            return first, last, number
        after = self._results[place][0] if place < len(self._results) else bit + 1
        return last, after, -1

    @cached_property
    def _results(self) -> list[tuple[int, int, int]]:
        """Bits that steps compute, from one to before another, with the number of the step."""
        found = []
        for number, step in enumerate(self._model.steps):
            bits = step.result if isinstance(step, PlainCell) else step[1].result
            if bits and bits[-1] - bits[0] == len(bits) - 1:
                found.append((bits[0], bits[-1] + 1, number))
            else:
                found += [(bit, bit + 1, number) for bit in bits]
        return sorted(found)


def _read_by(step: Statement) -> tuple[Bits, ...]:
    return step.operands if isinstance(step, PlainCell) else (step[1].address,)
