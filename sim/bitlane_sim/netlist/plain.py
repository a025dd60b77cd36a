"""Bring a netlist into its plain form: one operation a cell, with operands that fit.

It never changes what an output shows in any cycle. Conditions that do not matter to Yosys (``x``)
have become 0 on the way.
"""

from cppsim.design import (
    Bits,
    CellKind,
    Level,
    Memory,
    MemoryRead,
    MemoryWrite,
    NotPlain,
    PlainCell,
    PlainDesign,
    Start,
    StateRegister,
)
from cppsim.tidy import rewrite, trim

from ..elaborated import CLOCK
from .yosys import YosysCell, YosysNetlist

__all__ = ["plain"]

_BITWISE = {"$and": CellKind.AND, "$or": CellKind.OR, "$xor": CellKind.XOR, "$xnor": CellKind.XOR}
_ARITHMETIC = {"$add": CellKind.ADD, "$sub": CellKind.SUBTRACT, "$mul": CellKind.MULTIPLY}
_COMPARISONS = {
    "$eq": (CellKind.EQUAL, False),
    "$ne": (CellKind.UNEQUAL, False),
    "$lt": (CellKind.LESS, False),
    "$le": (CellKind.LESS_EQUAL, False),
    "$gt": (CellKind.LESS, True),
    "$ge": (CellKind.LESS_EQUAL, True),
}
_SIGNED = {CellKind.LESS: CellKind.LESS_SIGNED, CellKind.LESS_EQUAL: CellKind.LESS_EQUAL_SIGNED}
_REDUCTIONS = {
    "$reduce_and": CellKind.ALL,
    "$reduce_or": CellKind.ANY,
    "$reduce_bool": CellKind.ANY,
    "$reduce_xor": CellKind.ODD,
    "$reduce_xnor": CellKind.ODD,
    "$logic_not": CellKind.ANY,
}
_NEGATED = ("$reduce_xnor", "$logic_not")
_SHIFTS = ("$shl", "$sshl", "$shr", "$sshr", "$shift", "$shiftx")
_REGISTERS = ("$dff", "$dffe", "$sdff", "$sdffe", "$sdffce")
_SCOPE = "$scopeinfo"


def plain(netlist: YosysNetlist) -> PlainDesign:
    """The plain form of ``netlist``, without what no output depends on.

    What only a simulation shows is left out. Raises ``NotPlain`` for a cell that is not known here,
    and for any clock but the rising edges of ``clk``.
    """
    builder = _Builder(netlist)
    for cell in netlist.cells:
        if cell.kind not in ("$check", "$print"):
            builder.take(cell)
    return builder.finish()


def _fit(bits: Bits, width: int, *, signed: bool = False) -> Bits:
    """``bits`` extended or cut to ``width``."""
    return (*bits, *[bits[-1] if signed and bits else 0] * (width - len(bits)))[:width]


class _Builder:
    def __init__(self, netlist: YosysNetlist) -> None:
        self._netlist = netlist
        self._clocks = [port.bits for port in netlist.ports if port.name == CLOCK]
        values = [port.bits for port in netlist.ports]
        values += [bits for cell in netlist.cells for bits in cell.ports.values()]
        self._next = 1 + max((bit for bits in values for bit in bits), default=1)
        self._same: dict[int, int] = {}
        """Nets that are another net or a constant."""
        self._design = PlainDesign(ports=list(netlist.ports), names=dict(netlist.names))

    def finish(self) -> PlainDesign:
        for bit in self._same:
            end = bit
            while end in self._same:
                end = self._same[end]
            self._same[bit] = end
        rewrite(self._design, lambda bits: tuple(self._same.get(bit, bit) for bit in bits))
        trim(self._design)
        return self._design

    def take(self, cell: YosysCell) -> None:
        kind = cell.kind
        if kind in _BITWISE or kind in ("$not", "$pos"):
            self._bitwise(cell)
        elif kind in ("$mux", "$pmux"):
            self._mux(cell)
        elif kind in _ARITHMETIC or kind == "$neg":
            self._arithmetic(cell)
        elif kind in _COMPARISONS:
            self._comparison(cell)
        elif kind in _REDUCTIONS or kind in ("$logic_and", "$logic_or"):
            self._reduction(cell)
        elif kind in _SHIFTS:
            self._shift(cell)
        elif kind in _REGISTERS:
            self._register(cell)
        elif kind == "$mem_v2":
            self._memory(cell)
        elif kind != _SCOPE:
            raise NotPlain(f"cell {cell.name}: {kind} is not known here")

    def _new(self, width: int) -> Bits:
        self._next += width
        return tuple(range(self._next - width, self._next))

    def _put(self, kind: CellKind, operands: tuple[Bits, ...], result: Bits) -> None:
        self._design.cells.append(PlainCell(kind, operands, result))

    def _bit(self, kind: CellKind, *operands: Bits) -> int:
        """A new cell of one bit."""
        result = self._new(1)
        self._put(kind, operands, result)
        return result[0]

    def _equate(self, result: Bits, bits: Bits) -> None:
        self._same |= zip(result, _fit(bits, len(result)), strict=True)

    # --- logic --------------------------------------------------------------------------------

    def _bitwise(self, cell: YosysCell) -> None:
        ports, width = cell.ports, len(cell.ports["Y"])
        signed = cell.flag("A_SIGNED") and ("B" not in ports or cell.flag("B_SIGNED"))
        operands = tuple(_fit(ports[x], width, signed=signed) for x in "AB" if x in ports)
        if cell.kind == "$pos":
            self._equate(ports["Y"], operands[0])
        elif cell.kind == "$not":
            self._put(CellKind.NOT, operands, ports["Y"])
        elif cell.kind == "$xnor":
            different = self._new(width)
            self._put(CellKind.XOR, operands, different)
            self._put(CellKind.NOT, (different,), ports["Y"])
        else:
            self._put(_BITWISE[cell.kind], operands, ports["Y"])

    def _mux(self, cell: YosysCell) -> None:
        ports, width = cell.ports, len(cell.ports["Y"])
        choices: list[Bits] = [ports["A"]]
        for number, condition in enumerate(ports["S"]):
            choices += [(condition,), ports["B"][number * width : (number + 1) * width]]
        self._put(CellKind.MUX, tuple(choices), ports["Y"])

    def _arithmetic(self, cell: YosysCell) -> None:
        ports, width = cell.ports, len(cell.ports["Y"])
        if cell.kind == "$neg":
            operand = _fit(ports["A"], width, signed=cell.flag("A_SIGNED"))
            self._put(CellKind.NEGATE, (operand,), ports["Y"])
            return
        signed = cell.flag("A_SIGNED") and cell.flag("B_SIGNED")
        operands = tuple(_fit(ports[x], width, signed=signed) for x in "AB")
        self._put(_ARITHMETIC[cell.kind], operands, ports["Y"])

    def _comparison(self, cell: YosysCell) -> None:
        kind, swapped = _COMPARISONS[cell.kind]
        signed = cell.flag("A_SIGNED") and cell.flag("B_SIGNED")
        width = max(len(cell.ports["A"]), len(cell.ports["B"]))
        a, b = (_fit(cell.ports[x], width, signed=signed) for x in ("BA" if swapped else "AB"))
        self._equate(
            cell.ports["Y"], (self._compared(_SIGNED.get(kind, kind) if signed else kind, a, b),)
        )

    def _compared(self, kind: CellKind, a: Bits, b: Bits) -> int:
        """The bit of a comparison; those with the least or most there is, as what they come to."""
        least, most = (0,) * len(a), (1,) * len(a)
        if kind is CellKind.LESS and (b == least or a == most):
            return 0
        if kind is CellKind.LESS_EQUAL and (a == least or b == most):
            return 1
        if kind is CellKind.LESS and a == least:
            return self._reduced(CellKind.ANY, b)
        if kind is CellKind.LESS and b == most:
            kind = CellKind.UNEQUAL
        if kind is CellKind.LESS_EQUAL and (b == least or a == most):
            kind = CellKind.EQUAL
        if len(a) == 1 and kind in (CellKind.EQUAL, CellKind.UNEQUAL):
            different = self._bit(CellKind.XOR, a, b)
            return different if kind is CellKind.UNEQUAL else self._bit(CellKind.NOT, (different,))
        return self._bit(kind, a, b)

    def _reduced(self, kind: CellKind, operand: Bits) -> int:
        return operand[0] if len(operand) == 1 else self._bit(kind, operand)

    def _reduction(self, cell: YosysCell) -> None:
        ports = cell.ports
        if cell.kind in _REDUCTIONS:
            bit = self._reduced(_REDUCTIONS[cell.kind], ports["A"])
            if cell.kind in _NEGATED:
                bit = self._bit(CellKind.NOT, (bit,))
        else:
            kind = CellKind.AND if cell.kind == "$logic_and" else CellKind.OR
            bit = self._bit(kind, *((self._reduced(CellKind.ANY, ports[x]),) for x in "AB"))
        self._equate(ports["Y"], (bit,))

    def _shift(self, cell: YosysCell) -> None:
        ports, left = cell.ports, cell.kind in ("$shl", "$sshl")
        if cell.flag("B_SIGNED"):
            raise NotPlain(f"cell {cell.name}: a shift by a signed amount is not known here")
        signed = cell.flag("A_SIGNED")
        width = len(ports["Y"]) if left else max(len(ports["Y"]), len(ports["A"]))
        if left:
            kind = CellKind.LEFT
        else:
            kind = CellKind.RIGHT_SIGNED if cell.kind == "$sshr" and signed else CellKind.RIGHT
        operand = _fit(ports["A"], width, signed=signed)
        result = (*ports["Y"], *self._new(width - len(ports["Y"])))
        self._put(kind, (operand, ports["B"]), result)

    # --- state --------------------------------------------------------------------------------

    def _expect_clock(self, cell: YosysCell, clock: Bits, rising: bool) -> None:
        if clock not in self._clocks or not rising:
            raise NotPlain(f"cell {cell.name}: only rising edges of {CLOCK} are known here")

    def _starts(self, result: Bits) -> Start:
        return tuple(self._netlist.initial.get(bit) for bit in result)

    def _register(self, cell: YosysCell) -> None:
        ports = cell.ports
        self._expect_clock(cell, ports["CLK"], cell.flag("CLK_POLARITY"))
        value = reversed(cell.parameters.get("SRST_VALUE", ""))

        def level(port: str) -> Level | None:
            return (ports[port][0], cell.flag(f"{port}_POLARITY")) if port in ports else None

        register = StateRegister(
            result=ports["Q"],
            following=ports["D"],
            start=self._starts(ports["Q"]),
            enable=level("EN"),
            reset=level("SRST"),
            reset_value=tuple(int(bit == "1") for bit in value),
            gated=cell.kind == "$sdffce",
        )
        self._design.registers.append(register)

    def _memory(self, cell: YosysCell) -> None:
        if cell.number("OFFSET") or cell.flag("RD_WIDE_CONTINUATION"):
            raise NotPlain(f"memory {cell.name}: ports of several rows are not known here")
        width, content = cell.number("WIDTH"), cell.number("INIT")
        rows = (content >> width * row & (1 << width) - 1 for row in range(cell.number("SIZE")))
        self._design.memories.append(
            Memory(
                name=cell.name,
                width=width,
                rows=tuple(rows),
                reads=tuple(self._read(cell, k) for k in range(cell.number("RD_PORTS"))),
                writes=tuple(self._write(cell, k) for k in range(cell.number("WR_PORTS"))),
            )
        )

    def _part(self, cell: YosysCell, port: str, size: str, number: int) -> Bits:
        """What belongs to port ``number`` of a memory: ``size`` names a parameter."""
        width = cell.number(size)
        return cell.ports[port][number * width : (number + 1) * width]

    def _write(self, cell: YosysCell, number: int) -> MemoryWrite:
        clocked = cell.number("WR_CLK_ENABLE") & cell.number("WR_CLK_POLARITY")
        clock = cell.ports["WR_CLK"][number : number + 1]
        self._expect_clock(cell, clock, bool(clocked >> number & 1))
        return MemoryWrite(
            address=self._part(cell, "WR_ADDR", "ABITS", number),
            data=self._part(cell, "WR_DATA", "WIDTH", number),
            enable=self._part(cell, "WR_EN", "WIDTH", number),
        )

    def _read(self, cell: YosysCell, number: int) -> MemoryRead:
        clocked = bool(cell.number("RD_CLK_ENABLE") >> number & 1)
        if clocked:
            rising = bool(cell.number("RD_CLK_POLARITY") >> number & 1)
            self._expect_clock(cell, cell.ports["RD_CLK"][number : number + 1], rising)
            if cell.ports["RD_SRST"][number] or cell.ports["RD_ARST"][number]:
                raise NotPlain(f"memory {cell.name}: a read with a reset is not known here")
        width, writes = cell.number("WIDTH"), cell.number("WR_PORTS")
        through = cell.number("RD_TRANSPARENCY_MASK") >> number * writes
        start = cell.parameters["RD_INIT_VALUE"][::-1][number * width : (number + 1) * width]
        return MemoryRead(
            address=self._part(cell, "RD_ADDR", "ABITS", number),
            result=self._part(cell, "RD_DATA", "WIDTH", number),
            clocked=clocked,
            enable=cell.ports["RD_EN"][number] if clocked else 1,
            start=tuple(int(bit) if bit in "01" else None for bit in start),
            transparent=tuple(write for write in range(writes) if through >> write & 1),
        )
