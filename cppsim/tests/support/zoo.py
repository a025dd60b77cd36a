"""Circuits with registers and memories of every kind, and random plain cells. No tests here.

They are for tests of translators. The results of cells are computed in plain Python.
"""

import operator
import random
from collections.abc import Callable, Mapping

from amaranth.hdl import Assert, Format, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from cppsim.netlist import COMPARISONS, Bits, CellKind, PlainCell


class Counter(wiring.Component):
    """A counter by ``by``, with an assertion that fails above 100; ``high`` from ``limit`` on."""

    by: In(7)
    limit: In(100)
    count: Out(7)
    high: Out(1)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.sync += self.count.eq(self.count + self.by)
        m.d.sync += Assert(self.count <= 100, Format("{} is too far", self.count))
        m.d.comb += self.high.eq(self.count >= self.limit)
        return m


class Registers(wiring.Component):
    """Registers with and without enable, reset and power-on value."""

    def __init__(self, width: int) -> None:
        self._width = width
        super().__init__(
            {"data": In(width), "go": In(1), "clear": In(1), "step": In(2)}
            | dict.fromkeys(("mixing", "mixed", "right", "white", "kept", "held"), Out(width))
            | dict.fromkeys(("left", "black"), Out(width, init=1))
            | {"counted": Out(7, init=5), "gated": Out(3)}
            | {"moved": Out(4, init=1), "streak": Out(5)}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        kept = Signal(self._width, reset_less=True)
        gated = Signal(3, reset_less=True)
        # Registers that load each other: always, each with a separate enable, and both with one.
        m.d.sync += [self.mixing.eq(self.mixed ^ self.data), self.mixed.eq(self.mixing)]
        with m.If(self.go):
            m.d.sync += [self.left.eq(self.right), self.black.eq(self.white)]
            m.d.sync += self.white.eq(self.black)
        with m.If(self.clear):
            m.d.sync += self.right.eq(self.data)
        with m.Elif(self.step[0]):
            m.d.sync += self.right.eq(self.left)
        m.d.sync += self.moved.eq(self.moved.rotate_left(1))
        m.d.comb += [self.kept.eq(kept), self.gated.eq(gated)]
        with m.If(self.go):
            m.d.sync += [kept.eq(self.data), self.counted.eq(self.counted + 3)]
            with m.If(self.clear):
                m.d.sync += gated.eq(1)
            with m.Else():
                m.d.sync += gated.eq(gated + self.step)
        with m.Elif(self.clear):
            m.d.sync += self.counted.eq(0)
        # Enable and reset act where a signal is 0.
        with m.If(self.clear):
            m.d.sync += self.streak.eq(self.streak + 1)
        with m.Else():
            m.d.sync += [self.held.eq(self.data), self.streak.eq(0)]
        return m


class Memories(wiring.Component):
    """Memories with ports of every kind, rows that do not fill their address, and a queue."""

    def __init__(self, width: int, rows: int) -> None:
        self._width = width
        self._rows = rows
        super().__init__(
            {"data": In(width), "address": In(range(rows)), "other": In(range(rows))}
            | {"go": In(1), "again": In(1), "mask": In(2), "listed": Out(8)}
            | dict.fromkeys(("now", "later", "through", "taken"), Out(width))
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        counted = Signal(4)
        with m.If(self.go):
            m.d.sync += counted.eq(counted + 1)

        plain = Memory(shape=self._width, depth=self._rows, init=range(3, 3 + self._rows))
        m.submodules.plain = plain
        write = plain.write_port(granularity=self._width // 2)
        second = plain.write_port()
        now = plain.read_port(domain="comb")
        later = plain.read_port()
        through = plain.read_port(transparent_for=(write, second))
        m.d.comb += [
            write.addr.eq(self.address),
            write.data.eq(self.data),
            write.en.eq(Mux(self.go, self.mask, 0)),
            second.addr.eq(self.other),
            second.data.eq(~self.data),
            second.en.eq(self.again & self.mask[0]),
            now.addr.eq(self.other),
            later.addr.eq(self.other),
            later.en.eq(self.mask[1]),
            through.addr.eq(self.address),
            self.now.eq(now.data),
            self.later.eq(later.data),
            self.through.eq(through.data),
        ]
        table = Memory(shape=8, depth=16, init=[3 * k % 256 for k in range(16)])
        m.submodules.table = table
        listed = table.read_port(domain="comb")
        m.d.comb += [listed.addr.eq(counted), self.listed.eq(listed.data)]
        # Another memory's output is written to its rows.
        queue = Memory(shape=self._width, depth=4, init=[])
        m.submodules.queue = queue
        put, get = queue.write_port(), queue.read_port(domain="comb")
        m.d.comb += [
            put.addr.eq(counted[:2]),
            put.data.eq(now.data + later.data),
            put.en.eq(self.go),
            get.addr.eq(counted[2:]),
            self.taken.eq(get.data),
        ]
        return m


class Partly(wiring.Component):
    """A register and memories whose middle bit is not read."""

    def __init__(self, width: int) -> None:
        self._width = width
        super().__init__(
            {"a": In(width), "b": In(width), "mask": In(2), "address": In(2), "other": In(2)}
            | dict.fromkeys(("register", "row", "through"), Out(1))
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        middle = self._width // 2
        register = Signal(self._width)
        m.d.sync += register.eq(self.a & self.b)
        shown = {"register": register}
        for name, data in (("row", self.a ^ self.b), ("through", self.a | self.b)):
            m.submodules[name] = memory = Memory(shape=self._width, depth=4, init=[])
            write = memory.write_port(granularity=middle)
            read = memory.read_port(transparent_for=[write] if name == "through" else [])
            m.d.comb += [
                write.addr.eq(self.address),
                write.data.eq(data),
                write.en.eq(self.mask),
                read.addr.eq(self.other),
            ]
            shown[name] = read.data
        for name, value in shown.items():
            m.d.comb += getattr(self, name).eq(value[:middle].any() ^ value[middle + 1 :].all())
        return m


def stimuli(component: wiring.Component, count: int) -> list[dict[str, int]]:
    """Return ``count`` sets of values for all inputs: random ones, and runs of zeros and ones."""
    generator = random.Random(0)
    inputs = {
        name: len(getattr(component, name))
        for name, member in component.signature.members.items()
        if member.flow == In
    }

    def value(width: int) -> int:
        kind = generator.random()
        if kind < 0.2:
            return generator.choice([0, 1, (1 << width) - 1, 1 << width - 1])
        return generator.getrandbits(width) & (generator.getrandbits(width) if kind < 0.4 else -1)

    return [{name: value(width) for name, width in inputs.items()} for _ in range(count)]


RESULT = 1000
"""The first bit of every cell's result."""

_OPERATIONS: Mapping[str, Callable[[int, int], int]] = {
    "AND": operator.and_,
    "OR": operator.or_,
    "XOR": operator.xor,
    "NOT": lambda a, _: ~a,
    "ADD": operator.add,
    "SUBTRACT": operator.sub,
    "MULTIPLY": operator.mul,
    "NEGATE": lambda a, _: -a,
    "DIVIDE": lambda a, b: a // b if b else 0,
    "MODULO": lambda a, b: a % b if b else 0,
    "EQUAL": operator.eq,
    "UNEQUAL": operator.ne,
    "LESS": operator.lt,
    "LESS_EQUAL": operator.le,
    "ANY": lambda a, _: a != 0,
    "ODD": lambda a, _: a.bit_count() & 1,
    "LEFT": lambda a, b: a << min(b, 64),
    "RIGHT": operator.rshift,
}
"""Results of cells of up to 64 bits by their kinds, of signed numbers for kinds that are signed."""
_DIVISIONS = (CellKind.DIVIDE, CellKind.DIVIDE_SIGNED, CellKind.MODULO, CellKind.MODULO_SIGNED)
_REDUCTIONS = (CellKind.ANY, CellKind.ALL, CellKind.ODD)


def random_cell(chance: random.Random) -> PlainCell:
    """Return a cell of few bits, many of them constants or the same."""
    kind = chance.choice([kind for kind in CellKind if kind not in _DIVISIONS])
    width = chance.randint(1, 4)

    def bits(count: int) -> Bits:
        constants = chance.random()
        return tuple(
            chance.randint(0, 1) if chance.random() < constants else chance.randint(2, 5)
            for _ in range(count)
        )

    if kind is CellKind.MUX:
        pairs = [bits(size) for _ in range(chance.randint(1, 3)) for size in (1, width)]
        operands = [bits(width), *pairs]
        if chance.random() < 0.3:
            operands[-1] = operands[0]
    elif kind in (CellKind.NOT, CellKind.NEGATE):
        operands = [bits(width)]
    elif kind in _REDUCTIONS:
        operands = [bits(width + 1)]
    elif kind in (CellKind.LEFT, CellKind.RIGHT, CellKind.RIGHT_SIGNED):
        operands = [bits(width), bits(chance.randint(1, 3))]
    else:
        operands = [bits(width), bits(width)]
    size = 1 if kind in (*_REDUCTIONS, *COMPARISONS) else width
    return PlainCell(kind, tuple(operands), tuple(range(RESULT, RESULT + size)))


def number_of(bits: Bits, values: Mapping[int, int], *, signed: bool = False) -> int:
    """Return the number of ``bits``: constants, and those in ``values``."""
    digits = [values.get(bit, bit) for bit in bits]
    value = sum(digit << index for index, digit in enumerate(digits))
    return value - (digits[-1] << len(digits)) if signed else value


def value_of(cell: PlainCell, values: Mapping[int, int]) -> int:
    """Return the result of ``cell``."""
    kind, mask = cell.kind, (1 << len(cell.result)) - 1
    if kind is CellKind.MUX:
        default, *rest = cell.operands
        for condition, value in zip(rest[::2], rest[1::2], strict=True):
            if number_of(condition, values):
                return number_of(value, values)
        return number_of(default, values)
    first, *others = (number_of(bits, values) for bits in cell.operands)
    return computed(kind, len(cell.operands[0]), first, *others) & mask


def computed(kind: CellKind, width: int, first: int, second: int = 0) -> int:
    """Return the result of an operation on operands of ``width`` bits."""
    if kind is CellKind.ALL:
        return int(first == (1 << width) - 1)
    name = kind.name.removesuffix("_SIGNED")
    if name != kind.name:
        first -= first >> width - 1 << width
        second -= second >> width - 1 << width if name != "RIGHT" else 0
    return int(_OPERATIONS[name](first, second))
