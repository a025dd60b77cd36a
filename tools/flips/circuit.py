"""The netlist of a bitstream as an Amaranth component whose LUTs can have one row flipped each."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from numpy.typing import NDArray

from bitlane.errors import BitlaneError
from bitlane_boards.pins import HIGH, LOW, Netlist

_LOW_BITS = 6
"""Bits of a LUT's number that one of the two decoders takes."""

_READ, _WRITE = 0, 1


@dataclass(frozen=True, slots=True)
class FlippableLut:
    """A LUT with all of its inputs as it is in the file: signals of the netlist, and its table."""

    inputs: tuple[int, ...]
    output: int
    table: int


class FlippableCircuit(wiring.Component):
    """A ``netlist`` in which one row of one of ``luts`` can be flipped at a time.

    A LUT may have its own output as an input that its table ignores. A flip makes that input
    count, and it has the level of the cycle before: a flip that would oscillate changes the output
    every cycle.

    Members
    -------
    flip_lut : ``In(n)``
        Number of the LUT in ``luts``; `none` selects no LUT.
    flip_row : ``In(4)``
        Row of its table. Bits at inputs with a fixed level are ignored.
    addressed : ``Out(1)``
        In this cycle the inputs of that LUT choose that row.

    The other members are the inputs and outputs of the netlist, without its clock.

    Raises ``BitlaneError`` for LUT RAM, and for a memory with ports of different widths.
    Simulators refuse a longer loop of LUTs, even through inputs that the tables ignore.
    """

    def __init__(self, netlist: Netlist, luts: Sequence[FlippableLut]) -> None:
        self._netlist = netlist
        self._luts = tuple(luts)
        groups = -(-len(luts) // (1 << _LOW_BITS))
        super().__init__(
            {
                "flip_lut": In(_LOW_BITS + groups.bit_length()),
                "flip_row": In(4),
                "addressed": Out(1),
            }
            | {name: In(len(signals)) for name, signals in netlist.inputs.items() if name != "clk"}
            | {name: Out(len(signals)) for name, signals in netlist.outputs.items()}
        )
        self.none = groups << _LOW_BITS
        """The value of ``flip_lut`` without a flip."""

    def elaborate(self, platform: object) -> Module:
        m = Module()
        first = {int(x["q"]): int(x["first"]) for x in self._netlist.flip_flops}
        levels = [
            Signal(name=f"n{number}", init=first.get(number, 0), reset_less=True)
            for number in range(2, self._netlist.signals)
        ]
        self._levels: list[Any] = [Const(0, 1), Const(1, 1), *levels]
        for name, signals in self._netlist.inputs.items():
            if name != "clk":
                port = getattr(self, name)
                m.d.comb += [self._levels[x].eq(port[bit]) for bit, x in enumerate(signals)]
        for name, signals in self._netlist.outputs.items():
            m.d.comb += getattr(self, name).eq(Cat(self._levels[x] for x in signals))
        self._add_luts(m)
        self._add_flip_flops(m)
        self._add_memories(m)
        return m

    def _add_luts(self, m: Module) -> None:
        hits = self._hits(m)
        flippable = {lut.output: number for number, lut in enumerate(self._luts)}
        written = set(self._netlist.ports["memory"][self._netlist.ports["kind"] > _WRITE].tolist())
        chosen: list[Value] = []
        for number, entry in enumerate(self._netlist.luts):
            output = int(entry["output"])
            if number in written:
                raise BitlaneError("a LUT that is written; expected the netlist of an iCE40")
            value = gates(int(entry["table"]), [self._levels[int(x)] for x in entry["inputs"]])
            if output in flippable:
                hit = hits[flippable[output]]
                row = self._row(m, self._luts[flippable[output]], hit)
                chosen.append(row)
                value = value ^ row
            m.d.comb += self._levels[output].eq(value)
        m.d.comb += self.addressed.eq(either(chosen))

    def _hits(self, m: Module) -> list[Value]:
        """Return one signal for each LUT, which is high while ``flip_lut`` selects that LUT."""
        low, high = self.flip_lut[:_LOW_BITS], self.flip_lut[_LOW_BITS:]
        lows = [Signal(name=f"low{k}") for k in range(1 << _LOW_BITS)]
        highs = [Signal(name=f"high{k}") for k in range(-(-len(self._luts) >> _LOW_BITS))]
        for half, lines in ((low, lows), (high, highs)):
            for k, line in enumerate(lines):
                m.d.comb += line.eq(_equal(half, k))
        return [
            lows[k & (1 << _LOW_BITS) - 1] & highs[k >> _LOW_BITS] for k in range(len(self._luts))
        ]

    def _row(self, m: Module, lut: FlippableLut, hit: Value) -> Value:
        """Return a signal that is high while the inputs of ``lut`` choose the flipped row."""
        row = Signal(name=f"row{lut.output}")
        value = hit
        for bit, number in enumerate(lut.inputs):
            if number in (LOW, HIGH):
                continue
            level = self._levels[number]
            if number == lut.output:
                level = Signal(name=f"before{number}", reset_less=True)
                m.d.sync += level.eq(self._levels[number])
            value = value & ~(level ^ self.flip_row[bit])
        m.d.comb += row.eq(value)
        return row

    def _add_flip_flops(self, m: Module) -> None:
        for entry in self._netlist.flip_flops:
            numbers = [int(entry[name]) for name in ("d", "enable", "clear")]
            d, enable, clear = (self._levels[number] for number in numbers)
            q = self._levels[int(entry["q"])]
            value = d
            if numbers[1] != HIGH:
                value = Mux(enable, value, q)
            if numbers[2] != LOW:
                value = (clear | value) if entry["value"] else (~clear & value)
            m.d.sync += q.eq(value)

    def _add_memories(self, m: Module) -> None:
        ports, wires = self._netlist.ports, self._netlist.wires
        ends = [*self._netlist.bases.tolist()[1:], self._netlist.contents.size - 1]
        for number, base in enumerate(self._netlist.bases.tolist()):
            own = [port for port in ports if port["memory"] == number and port["kind"] <= _WRITE]
            shapes = {_shape(port, wires) for port in own}
            if len(shapes) > 1:
                raise BitlaneError(
                    f"memory {number} of the netlist has ports of different widths; expected one"
                )
            for weights, offsets in shapes:
                rows = _rows(self._netlist.contents[base : ends[number]], weights, offsets)
                memory: Any = Memory(shape=len(offsets), depth=len(rows), init=rows)
                m.submodules[f"memory{number}"] = memory
                for port in own:
                    self._add_port(m, memory, port)

    def _add_port(self, m: Module, memory: Any, port: NDArray[np.void]) -> None:
        address, data = _wires(port, self._netlist.wires)
        levels = self._levels
        enable = levels[int(port["enable"])]
        if port["kind"] == _READ:
            made = memory.read_port()
            m.d.comb += made.en.eq(enable)
            m.d.comb += [levels[int(x["signal"])].eq(made.data[k]) for k, x in enumerate(data)]
        else:
            made = memory.write_port(granularity=1)
            m.d.comb += made.data.eq(Cat(levels[int(x["signal"])] for x in data))
            masks = [enable if x["mask"] == HIGH else enable & levels[int(x["mask"])] for x in data]
            m.d.comb += made.en.eq(Cat(masks))
        m.d.comb += made.addr.eq(Cat(levels[int(x["signal"])] for x in address))


def either(values: Sequence[Value]) -> Value:
    """Return the OR of ``values`` as a balanced tree of gates."""
    row = list(values) or [Const(0, 1)]
    while len(row) > 1:
        pairs = [a | b for a, b in zip(row[::2], row[1::2], strict=False)]
        row = pairs + row[len(row) - len(row) % 2 :]
    return row[0]


def _equal(value: Value, number: int) -> Value:
    terms = [bit if number >> k & 1 else ~bit for k, bit in enumerate(value)]
    result: Value = Const(1, 1)
    for k, term in enumerate(terms):
        result = result & term if k else term
    return result


def _wires(
    port: NDArray[np.void], wires: NDArray[np.void]
) -> tuple[NDArray[np.void], NDArray[np.void]]:
    """Return the address wires and the data wires of ``port``."""
    address, data = int(port["address"]), int(port["data"])
    return (
        wires[address : address + int(port["address_bits"])],
        wires[data : data + int(port["data_bits"])],
    )


def _shape(
    port: NDArray[np.void], wires: NDArray[np.void]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the weights of the address bits and the offsets of the data bits."""
    address, data = _wires(port, wires)
    return tuple(address["place"].tolist()), tuple(data["place"].tolist())


def _rows(content: NDArray[np.uint8], weights: Sequence[int], offsets: Sequence[int]) -> list[int]:
    """Return the first contents of a memory by address."""
    address = np.arange(1 << len(weights))
    first = sum((address >> k & 1) * weight for k, weight in enumerate(weights))
    bits = content[np.asarray(first)[:, None] + np.array(offsets)]
    return [int(x) for x in bits.astype(np.int64) @ (1 << np.arange(len(offsets)))]


_Plan: TypeAlias = tuple[int, "_Plan | bool", "_Plan | bool"]
"""An input's number, the plan while it is low, and the plan while it is high."""


def gates(table: int, inputs: Sequence[Value]) -> Value:
    """Return the bit of ``table`` at index ``inputs``, whose first input is least significant.

    ``table`` is a truth table of up to four inputs; the expression has few operators.
    """
    return _made(_plan(table, tuple(range(len(inputs)))), inputs)


@lru_cache(maxsize=1 << 16)
def _plan(table: int, numbers: tuple[int, ...]) -> _Plan | bool:
    """Return the cheapest decision tree of the inputs ``numbers``."""
    if table in (0, (1 << (1 << len(numbers))) - 1):
        return bool(table)
    plans: list[_Plan | bool] = []
    for at, number in enumerate(numbers):
        low, high = _halves(table, at, len(numbers))
        rest = numbers[:at] + numbers[at + 1 :]
        if low == high:
            return _plan(low, rest)
        plans.append((number, _plan(low, rest), _plan(high, rest)))
    return min(plans, key=_cost)


def _halves(table: int, at: int, count: int) -> tuple[int, int]:
    """Return the halves of ``table`` with input ``at`` of ``count`` low, and high."""
    halves = [0, 0]
    sizes = [0, 0]
    for row in range(1 << count):
        half = row >> at & 1
        halves[half] |= (table >> row & 1) << sizes[half]
        sizes[half] += 1
    return halves[0], halves[1]


@lru_cache(maxsize=1 << 16)
def _cost(plan: _Plan | bool) -> int:
    """Return the number of operators of two inputs; a multiplexer counts as three."""
    if isinstance(plan, bool):
        return 0
    _, low, high = plan
    if isinstance(low, bool) and isinstance(high, bool):
        return int(low)
    if _opposite(low, high):
        return 1 + _cost(low)
    if isinstance(low, bool) or isinstance(high, bool):
        return 1 + int(low is True or high is False) + _cost(low) + _cost(high)
    return 3 + _cost(low) + _cost(high)


def _opposite(low: _Plan | bool, high: _Plan | bool) -> bool:
    """Return whether one plan is always the inverse of the other."""
    if isinstance(low, bool) or isinstance(high, bool):
        return isinstance(low, bool) and isinstance(high, bool) and low != high
    same = low[0] == high[0]
    return same and _opposite(low[1], high[1]) and _opposite(low[2], high[2])


def _made(plan: _Plan | bool, inputs: Sequence[Value]) -> Value:
    if isinstance(plan, bool):
        return Const(plan, 1)
    number, low, high = plan
    chosen = inputs[number]
    if isinstance(low, bool) and isinstance(high, bool):
        return ~chosen if low else chosen
    if _opposite(low, high):
        return chosen ^ _made(low, inputs)
    if low is False:
        return chosen & _made(high, inputs)
    if low is True:
        return ~chosen | _made(high, inputs)
    if high is False:
        return ~chosen & _made(low, inputs)
    if high is True:
        return chosen | _made(low, inputs)
    return Mux(chosen, _made(high, inputs), _made(low, inputs))
