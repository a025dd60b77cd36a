"""Write a design as one Verilog-2005 module that linters have nothing to say about.

`amaranth.back.verilog` writes it too, by way of Yosys, but Verilator objects to a thousand of its
lines: operands narrower than their results, registers with a value in their declaration, bits that
nothing reads.
"""

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import replace

from cppsim.netlist.design import (
    Bits,
    Memory,
    MemoryWrite,
    PlainCell,
    PlainDesign,
    StateRegister,
)
from cppsim.netlist.elaborated import CLOCK
from cppsim.netlist.tidy import in_order

from .expressions import constant, expression, joined
from .signals import Signals, declared, stores

__all__ = ["verilog"]

_WIDTH = 100


def verilog(design: PlainDesign, name: str) -> str:
    """The module ``name``, with a line break at its end. Checks of the design are left out.

    Raises ``SimulationError`` if the design has a combinational loop.
    """
    return _Writer(design, name).text()


class _Writer:
    def __init__(self, design: PlainDesign, name: str) -> None:
        self._design = design
        self._name = name
        self._signals = Signals(design, [name, *(port.name for port in design.ports)])
        self._lines: list[str] = []
        for port in design.ports:
            if not port.output:
                self._signals.define(port.name, port.bits)
        self._registers = [(name, part) for x in design.registers for name, part in self._split(x)]
        self._memories = [(self._signals.unique(x.name), x) for x in design.memories]

    def text(self) -> str:
        self._head()
        self._state()
        names = {id(memory): name for name, memory in self._memories}
        for step in in_order(self._design):
            if isinstance(step, PlainCell):
                self._cell(step)
            else:
                memory, read = step
                row = f"{names[id(memory)]}[{self._signals.text(read.address)}]"
                self._assign(read.result, row)
        self._line()
        self._clock_registers()
        for name, memory in self._memories:
            self._clock_memory(name, memory)
        for port in self._design.ports:
            if port.output:
                self._line(f"assign {port.name} = {self._signals.text(port.bits)};")
        self._ignore_inputs()
        return "\n".join([*self._lines, "endmodule"]) + "\n"

    def _line(self, line: str = "", depth: int = 1) -> None:
        indent = "  " * depth
        self._lines += textwrap.wrap(
            line,
            _WIDTH,
            initial_indent=indent,
            subsequent_indent=indent + "    ",
            break_long_words=False,
            break_on_hyphens=False,
        ) or [""]

    def _split(self, register: StateRegister) -> Iterator[tuple[str, StateRegister]]:
        """A register for each name that its bits have."""
        cuts = self._signals.cuts(register.result)
        for (name, part), cut in zip(self._signals.name(register.result), cuts, strict=True):
            yield (
                name,
                replace(
                    register,
                    result=part,
                    following=register.following[cut],
                    start=register.start[cut],
                    reset_value=register.reset_value[cut],
                ),
            )

    def _head(self) -> None:
        ports = [
            f"  {'output' if port.output else 'input'} wire {declared(port.name, len(port.bits))}"
            for port in self._design.ports
        ]
        self._lines += [f"module {self._name} (", ",\n".join(ports), ");", ""]

    def _state(self) -> None:
        starts: list[str] = []
        row = self._signals.unique("row") if self._memories else ""
        for name, register in self._registers:
            self._line(f"reg {declared(name, len(register.result))};")
            starts.append(f"{name} = {constant(register.start)};")
        for name, memory in self._memories:
            self._line(f"reg {declared(name, memory.width)} [0:{len(memory.rows) - 1}];")
            starts += _rows(name, memory, row)
        if any(line.startswith("for ") for line in starts):
            self._line(f"integer {row};")
        if starts:
            self._line()
            self._line("initial begin")
            for line in starts:
                self._line(line, 2)
            self._line("end")
        self._line()

    def _cell(self, cell: PlainCell) -> None:
        text = expression(cell, lambda bits: self._signals.text(bits, inside=True))
        if not self._signals.stands_inside(cell, text):
            self._assign(cell.result, text)

    def _assign(self, result: Bits, text: str) -> None:
        pieces = self._signals.name(result)
        if len(pieces) == 1:
            self._line(f"wire {declared(pieces[0][0], len(result))} = {text};")
            return
        for name, part in pieces:
            self._line(f"wire {declared(name, len(part))};")
        target = ", ".join(name for name, _ in reversed(pieces))
        self._line(f"assign {{{target}}} = {text};")

    def _clock_registers(self) -> None:
        groups: dict[object, list[tuple[str, StateRegister]]] = {}
        for name, register in self._registers:
            groups.setdefault((register.enable, register.reset), []).append((name, register))
        for group in groups.values():
            first = group[0][1]
            loads = [f"{name} <= {self._signals.text(x.following)};" for name, x in group]
            resets = [f"{name} <= {constant(x.reset_value)};" for name, x in group if x.reset_value]
            branches = [(first.reset, resets)] if resets else []
            self._line(f"always @(posedge {CLOCK})")
            self._branches([*branches, (first.enable, loads)])
            self._line()

    def _branches(self, branches: Sequence[tuple[int | None, list[str]]]) -> None:
        word = ""
        for condition, lines in branches:
            test = "" if condition is None else f"if ({self._signals.text((condition,))}) "
            self._line(f"{word}{test}begin", 2)
            for line in lines:
                self._line(line, 3)
            word = "end else "
        self._line("end", 2)

    def _clock_memory(self, name: str, memory: Memory) -> None:
        if memory.writes:
            self._line(f"always @(posedge {CLOCK}) begin")
            for write in memory.writes:
                row = f"{name}[{self._signals.text(write.address)}]"
                for line in self._store(row, write):
                    self._line(line, 2)
            self._line("end")
            self._line()

    def _store(self, target: str, write: MemoryWrite) -> Iterator[str]:
        """Statements that store what ``write`` does in ``target``, which is as wide."""
        for enable, places in stores(write):
            whole = places == slice(0, len(write.data))
            part = "" if whole else _selected(places.start, places.stop - 1)
            data = self._signals.text(write.data[places])
            yield f"if ({self._signals.text((enable,))}) {target}{part} <= {data};"

    def _ignore_inputs(self) -> None:
        ignored = tuple(
            bit
            for port in self._design.ports
            if not port.output and port.name != CLOCK
            for bit in port.bits
            if not self._signals.uses[bit]
        )
        if ignored:
            self._line()
            self._line("// Inputs that the buses have and this circuit has no use for.")
            parts = ["1'b0", *self._signals.parts(ignored)]
            self._line(f"wire unused_inputs = &{joined(parts)};")


def _selected(low: int, high: int) -> str:
    return f"[{high}]" if low == high else f"[{high}:{low}]"


def _rows(name: str, memory: Memory, row: str) -> Iterator[str]:
    """What sets the rows of a memory at power-on; ``row`` is an integer's name."""

    def content(value: int) -> str:
        return constant([value >> place & 1 for place in range(memory.width)])

    if len(set(memory.rows)) == 1:
        count = len(memory.rows)
        first = content(memory.rows[0])
        yield f"for ({row} = 0; {row} < {count}; {row} = {row} + 1) {name}[{row}] = {first};"
    else:
        for number, value in enumerate(memory.rows):
            yield f"{name}[{number}] = {content(value)};"
