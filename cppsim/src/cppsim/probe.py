"""Read one value of a compiled design without settling all of it: *probes*.

A probe is a program of native/probe.h that computes a value from what is stored, over the cone of
cells on which it depends. Nothing is made for values whose cone is so large that settling
everything is faster.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from amaranth.hdl import Const, Signal

from .amaranth_internals import NetlistEmitter, ast, nir, operands_of
from .cpp import BitField
from .native.compiled import DesignInstance
from .native.probe import ProbeProgram
from .native.programs import Locations, ProgramWriter
from .netlist import WORD, Bits, NotPlain, PlainCell, PlainDesign
from .netlist.cells import CellWriter, bits_of
from .netlist.lowered import Lowered
from .netlist.passes import narrow, rewrite
from .structure import open_constants, structure_of
from .tuning import Tuning

_KNOWN = (ast.Const, ast.Operator, ast.Slice, ast.Part, ast.Concat, ast.SwitchValue)
"""Expressions beside signals that have a plain form."""
_WIDEST = 1 << 10
"""Limit of the bits of each value in an expression."""
_MOST = 1 << 15
"""Bits of all signals together, for which a cell of a netlist has numbers."""
_FIRST_FREE = 1 << 60
"""Bits of expressions have numbers that those of designs do not reach."""


@dataclass(frozen=True, slots=True)
class PlainExpression:
    """Cells in order, and the bits of their results."""

    cells: list[PlainCell]
    bits: Bits
    signed: bool


class _Emitter(NetlistEmitter):
    """Emits an expression with the values in ``given``, by ``id``, as inputs."""

    given: Mapping[int, tuple[Any, bool]]

    def emit_rhs(self, module: int, value: Any) -> tuple[Any, bool]:
        found = self.given.get(id(value))
        return super().emit_rhs(module, value) if found is None else found


def signals_of(value: Any) -> list[Signal]:
    """The signals that ``value`` reads, once each. Raises ``NotPlain`` if there is more to it."""
    signals: dict[int, Signal] = {}
    left = [value]
    while left:
        item = left.pop()
        if len(item) > _WIDEST:
            raise NotPlain("too wide")
        if isinstance(item, Signal):
            signals[id(item)] = item
        elif not isinstance(item, _KNOWN):
            raise NotPlain(f"{type(item).__name__} is not known here")
        elif isinstance(item, ast.SwitchValue) and not len(item.test):
            raise NotPlain("nothing to match")  # for which Amaranth's simulator raises
        else:
            left += operands_of(item)
    if sum(map(len, signals.values())) > _MOST:
        raise NotPlain("too many signals")
    return list(signals.values())


def lower_expression(
    value: Any,
    bits_of_signal: Callable[[Signal], Bits],
    opened: Iterable[tuple[Const, Bits]] = (),
) -> PlainExpression:
    """Return the plain form of ``value``, with the bits of its signals as passed.

    The constants in ``opened`` have these bits in place of their values. Raises ``NotPlain`` if
    there is no plain form, or if ``bits_of_signal`` raises ``KeyError``.
    """
    netlist = nir.Netlist()
    netlist.add_module(None, (), src_loc=None, cell_src_loc=None)
    given: list[int] = [0, 1]

    def nets_of(bits: Bits) -> Any:
        first = len(given)
        given.extend(bits)
        return nir.Value(nir.Net.from_cell(0, first + index) for index in range(len(bits)))

    for signal in signals_of(value):
        try:
            bits = bits_of_signal(signal)
        except KeyError:
            raise NotPlain(f"{signal.name} is not in the design") from None
        netlist.signals[signal] = nets_of(bits)
    emitter = _Emitter(netlist, None)
    emitter.given = {id(x): (nets_of(bits), x.shape().signed) for x, bits in opened}
    result, signed = emitter.emit_rhs(0, value)
    writer = CellWriter()
    for number, cell in enumerate(netlist.cells[1:], 1):
        writer.take(number, cell)

    def change(bits: Bits) -> Bits:
        return tuple(map(_renamed, bits))

    def _renamed(bit: int) -> int:
        while bit in writer.same:
            bit = writer.same[bit]
        return given[bit] if bit < len(given) else bit + _FIRST_FREE

    cells = [PlainCell(x.kind, x.operands, _moved(x.result)) for x in writer.cells]
    design = PlainDesign(cells=cells)
    rewrite(design, change)
    narrow(design, WORD)
    return PlainExpression(design.cells, change(bits_of(result)), bool(signed))


def _moved(bits: Bits) -> Bits:
    return tuple(bit + _FIRST_FREE for bit in bits)


_FIRST_SHOWN = 1 << 61
"""First number of the bits for settled values of signals, above those of expressions."""
_FIRST_OPEN = 1 << 62
"""First number of the bits for constants that a structure leaves open."""
_REMEMBERED = 4096
"""Limit of the structures with a program. A testbench has as many as it has lines."""


_Known = dict[tuple[Any, ...], tuple[Any, ProbeProgram | None]]
"""By the key of a structure: an expression of it, which holds its signals, and the program."""


def _opened(value: Any) -> Iterator[tuple[Const, Bits]]:
    """Yield the constants that the structure of ``value`` leaves open, with bits for them."""
    first = _FIRST_OPEN
    for constant in open_constants(value):
        yield constant, tuple(range(first, first + len(constant)))
        first += len(constant)


class Probes:
    """Programs for values of one design.

    Attributes
    ----------
    limit : int
        Instructions instead of settling, which is faster than more of them.
    patience : int
        Programs to call before settling is faster, after which there is nothing to compute.
    written : int
        The number of programs written. Expressions of one structure share theirs.
    """

    def __init__(self, lowered: Lowered, model: DesignInstance, tuning: Tuning) -> None:
        self._signals: Mapping[Signal, Bits] = lowered.signals
        self._model = model
        steps = model.source.step_count
        self.limit = max(tuning.free_instructions, steps // tuning.steps_per_instruction)
        self.patience = steps // tuning.steps_per_call
        self.written = 0
        self._settled: _Known = {}
        self._alone: _Known = {}

    def is_settled(self, signal: Signal) -> bool:
        """Whether settling is what brings a signal up to date."""
        return signal in self._signals and self._model.locate(self._signals[signal])[2]

    def only_field(self, signal: Signal) -> BitField | None:
        """Return the bit field of an unsigned signal; None if it has several."""
        if signal not in self._signals or signal.shape().signed:
            return None
        fields, constant, _ = self._model.locate(self._signals[signal])
        whole = len(fields) == 1 and fields[0].width == len(signal) and not constant
        return fields[0] if whole else None

    def of_settled(self, value: Any) -> ProbeProgram | None:
        """Return a program for an expression of up to 64 bits, over the settled signals.

        Settled signals show the values of the last ``settle``.
        """
        return self._of(value, self._settled, self._write_settled)

    def of_expression(self, value: Any) -> ProbeProgram | None:
        """As `of_settled`, but signals are what settling would let them show.

        None also if settling is faster.
        """
        return self._of(value, self._alone, self._write_alone)

    def _of(
        self, value: Any, known: _Known, write: Callable[[Any], ProbeProgram | None]
    ) -> ProbeProgram | None:
        """Return a copy of the program for the structure of ``value``."""
        structure = structure_of(value)
        if structure is None:
            return None
        key, constants = structure
        if key not in known:
            if len(known) == _REMEMBERED:
                known.clear()
            known[key] = value, write(value)
            self.written += 1
        _, program = known[key]
        return None if program is None else program.holding(constants)

    def _write_settled(self, value: Any) -> ProbeProgram | None:
        shown: dict[int, tuple[int, int]] = {}
        return self._program(value, lambda signal: self._shown(signal, shown), [shown])

    def _write_alone(self, value: Any) -> ProbeProgram | None:
        shown: dict[int, tuple[int, int]] = {}

        def bits_of(signal: Signal) -> Bits:
            settled = self.is_settled(signal)
            return self._signals[signal] if settled else self._shown(signal, shown)

        program = self._program(value, bits_of, [shown, self._model.source.stored])
        return program if program is not None and len(program) <= self.limit else None

    def _shown(self, signal: Signal, stored: dict[int, tuple[int, int]]) -> Bits:
        """Return bits for a signal's settled value, and add their locations to ``stored``."""
        fields, constant, _ = self._model.locate(self._signals[signal])
        shown = [constant >> index & 1 for index in range(len(signal))]
        for field in fields:
            for number in range(field.width):
                bit = shown[field.low + number] = _FIRST_SHOWN + len(stored)
                stored[bit] = field.word, field.shift + number
        return tuple(shown)

    def _program(
        self, value: Any, bits_of: Callable[[Signal], Bits], stored: Sequence[Locations]
    ) -> ProbeProgram | None:
        writer = ProgramWriter(stored, self._model.address_of)
        opened = list(_opened(value))
        try:
            expression = lower_expression(value, bits_of, opened)
            for _, bits in opened:
                writer.open(bits)
            read = [bits for cell in expression.cells for bits in cell.operands]
            for number in self._cone([expression.bits, *read]):
                writer.step(self._model.source.steps[number])
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
                        left += self._model.source.steps[number].operands
            if len(found) > self.limit:
                raise NotPlain("settling is faster")
        return sorted(found)

    def _driver(self, bit: int) -> tuple[int, int, int]:
        """Bits among which ``bit`` is, and the number of the step that computes them, or -1."""
        index = bisect_right(self._results, (bit, _FIRST_SHOWN, 0))
        first, last, number = self._results[index - 1] if index else (0, 0, 0)
        if bit < last:
            return first, last, number
        after = self._results[index][0] if index < len(self._results) else bit + 1
        return last, after, -1

    @cached_property
    def _results(self) -> list[tuple[int, int, int]]:
        """Bits that steps compute, from one to before another, with the number of the step."""
        found = []
        for number, step in enumerate(self._model.source.steps):
            bits = step.result
            if bits and bits[-1] - bits[0] == len(bits) - 1:
                found.append((bits[0], bits[-1] + 1, number))
            else:
                found += [(bit, bit + 1, number) for bit in bits]
        return sorted(found)
