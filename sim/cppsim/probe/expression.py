"""Expressions of testbenches as plain cells, with the widths and signs that Amaranth gives them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Signal

from ..amaranth_internals import NetlistEmitter, ast, nir
from ..netlist.cells import CellWriter, bits_of
from ..netlist.design import Bits, NotPlain, PlainCell, PlainDesign
from ..netlist.numbers import WORD
from ..netlist.passes import narrow, rewrite

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
        else:
            left += _operands(item)
    if sum(map(len, signals.values())) > _MOST:
        raise NotPlain("too many signals")
    return list(signals.values())


def _operands(value: Any) -> Iterator[Any]:
    match value:
        case ast.Const():
            pass
        case ast.Operator():
            yield from value.operands
        case ast.Slice():
            yield value.value
        case ast.Part():
            yield from (value.value, value.offset)
        case ast.Concat():
            yield from value.parts
        case ast.SwitchValue():
            if not len(value.test):
                raise NotPlain("nothing to match")  # for which Amaranth's simulator raises
            yield value.test
            yield from (choice for _, choice in value.cases)
        case _:
            raise NotPlain(f"{type(value).__name__} is not known here")


def lower_expression(value: Any, bits_of_signal: Callable[[Signal], Bits]) -> PlainExpression:
    """Return the plain form of ``value``, with the bits of its signals as passed.

    Raises ``NotPlain`` if there is none, or if ``bits_of_signal`` raises ``KeyError``.
    """
    netlist = nir.Netlist()
    netlist.add_module(None, (), src_loc=None, cell_src_loc=None)
    given: list[int] = [0, 1]
    for signal in signals_of(value):
        try:
            first, bits = len(given), bits_of_signal(signal)
        except KeyError:
            raise NotPlain(f"{signal.name} is not in the design") from None
        given += bits
        nets = (nir.Net.from_cell(0, first + place) for place in range(len(bits)))
        netlist.signals[signal] = nir.Value(nets)
    result, signed = NetlistEmitter(netlist, None).emit_rhs(0, value)
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
