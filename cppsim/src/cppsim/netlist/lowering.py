"""Lower an Amaranth design to plain form: edges of its clocks are inputs that enable registers.

From Amaranth's own netlist, in which every signal is a tuple of nets. What the netlist or compiled
code cannot express raises ``NotPlain``.
"""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from amaranth.hdl import MemoryData, Shape, Signal

from ..amaranth_internals import (
    WIDEST,
    MemoryInstance,
    ast,
    driven_signals,
    emitted_netlist,
    memories_of,
    message_statements,
    named_signals,
    nir,
    operands_of,
    read_ports_of,
)
from .cells import CellWriter, bits_of, result_of
from .covered import Measured, covered_bits
from .decisions import Decisions
from .design import Bits, Memory, MemoryRead, MemoryWrite, NotPlain, StateRegister
from .lowered import ClockEdge, DesignMessage, Lowered, StateInput
from .passes import rewrite
from .simplify import share

_DEPTH = 1_000_000
"""Amaranth walks its netlist by recursion, of which Python does not mind more."""


def lower(
    design: Any,
    *,
    clock: Signal | None = None,
    idle: bool = False,
    measured: Measured = Measured.NOTHING,
) -> Lowered:
    """Lower ``design``. Raises ``NotPlain``, and Amaranth's own errors.

    With ``idle`` clocks and resets that only testbenches use are inputs.

    With ``clock`` every step is a rising edge of it: other edges raise ``NotPlain``, and the result
    has no edges. Signals without a driver are then constants, except ports.

    With ``measured`` the result has the bits that coverage counts.
    """
    expect_narrow(design.fragment)
    reached = None if measured is Measured.NOTHING else list[tuple[Any, Sequence[int]]]()
    try:
        with _recursion(_DEPTH):
            netlist = emitted_netlist(design, idle=idle, reached=reached)
    except OverflowError as error:
        raise NotPlain(str(error)) from error
    lowering = _Lowering(design, netlist, clock)
    if reached is not None:
        lowering.cover(reached, toggles=measured is Measured.ALL)
    return lowering.lowered()


@contextmanager
def _recursion(depth: int) -> Iterator[None]:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, depth))
    try:
        yield
    finally:
        # A limit that stays would let recursion in C overflow the stack.
        sys.setrecursionlimit(before)


def _memories(fragment: Any) -> list[MemoryData]:
    """Return the memories of a design. Raises ``NotPlain`` for one with several instances.

    In Amaranth's simulator the instances share their rows; in a netlist each has rows of its own.
    """
    found: dict[int, MemoryData] = {}
    for memory in memories_of(fragment):
        if id(memory) in found:
            line = "at {}:{}".format(*memory.src_loc)
            raise NotPlain(f"memory {memory.name!r} {line} has two instances; expected one")
        found[id(memory)] = memory
    return list(found.values())


class _Lowering:
    def __init__(self, design: Any, netlist: Any, clock: Signal | None) -> None:
        self._design = design
        self._netlist = netlist
        self._clock = None if clock is None else int(netlist.signals[clock][0])
        self._writer = CellWriter()
        self._decisions = Decisions(netlist.cells, self._writer)
        self._lowered = Lowered()
        self._edges: dict[tuple[int, bool, bool], ClockEdge] = {}
        self._starts: dict[int, int] = {}
        self._resets: dict[int, Any] = {}
        """The domain of each clocked read, by its cell."""
        self._conditions: list[tuple[int | None, Bits]] | None = None
        self._toggling: list[tuple[str, str, Signal]] = []
        """Conditions and named signals that coverage counts."""
        self._contents = _memories(design.fragment)
        self._statements: list[Any] = []
        """Prints and checks in the order of their cells."""
        self._visit(design.fragment)

    def cover(self, reached: Sequence[tuple[Any, Sequence[int]]], *, toggles: bool) -> None:
        """Count the conditions ``reached`` by the netlist, and on request toggles of signals."""
        self._conditions = [self._condition(*condition) for condition in reached]
        self._toggling = list(named_signals(self._design)) if toggles else []

    def lowered(self) -> Lowered:
        lowered, cells = self._lowered, self._netlist.cells
        statements = iter(self._statements)
        reads: dict[int, list[MemoryRead]] = {}
        writes: dict[int, list[MemoryWrite]] = {}
        for number, cell in enumerate(cells):
            match cell:
                case nir.Top():
                    self._ports(cell)
                case nir.Memory():
                    pass
                case nir.FlipFlop():
                    self._register(number, cell)
                case nir.AsyncReadPort():
                    result = result_of(number, cell.width)
                    read = MemoryRead(address=bits_of(cell.addr), result=result)
                    reads.setdefault(cell.memory, []).append(read)
                case nir.SyncReadPort():
                    reads.setdefault(cell.memory, []).append(self._clocked_read(number, cell))
                case nir.SyncWritePort():
                    writes.setdefault(cell.memory, []).append(self._write(cell))
                case nir.SyncPrint() | nir.SyncProperty() | nir.AsyncPrint() | nir.AsyncProperty():
                    self._message(cell, next(statements))
                case nir.AssignmentList():
                    result = result_of(number, len(cell.default))
                    self._writer.equate(result, self._decisions.result(cell))
                case _:
                    self._writer.take(number, cell)
        memories = [number for number, cell in enumerate(cells) if isinstance(cell, nir.Memory)]
        for number, data in zip(memories, self._contents, strict=True):
            cell = cells[number]
            assert isinstance(cell, nir.Memory)
            memory = Memory(
                name=".".join((*self._netlist.modules[cell.module_idx].name[1:], cell.name)),
                number=len(lowered.design.memories),
                depth=cell.depth,
                columns=tuple(range(cell.width)),
                reads=tuple(reads.get(number, [])),
                writes=tuple(writes.get(number, [])),
                signed=Shape.cast(data.shape).signed,
            )
            lowered.design.memories.append(memory)
        lowered.edges = list(self._edges.values())
        self._finish()
        lowered.rows = dict(zip(self._contents, lowered.design.memories, strict=True))
        return lowered

    def _condition(self, domain: Any, nets: Sequence[int]) -> tuple[int | None, Bits]:
        """Return the edge at which a statement has its effect, None for logic, and its nets."""
        if domain is None:
            return None, bits_of(nets)
        (clock,) = self._netlist.signals[domain.clk]
        return self._edge(int(clock), rising=domain.clk_edge == "pos"), bits_of(nets)

    def _finish(self) -> None:
        """Replace nets by their equals, and list the bits that Python reads as outputs."""
        lowered, same = self._lowered, self._writer.same
        lowered.design.cells = share(self._writer.cells, same)

        def change(bits: Bits) -> Bits:
            return tuple(same.get(bit, bit) for bit in bits)

        def changed(message: DesignMessage) -> DesignMessage:
            enable = same.get(message.enable, message.enable)
            return replace(message, enable=enable, values=tuple(map(change, message.values)))

        for signal, value in self._netlist.signals.items():
            lowered.signals[signal] = change(bits_of(value))
        lowered.edges = [replace(edge, net=same.get(edge.net, edge.net)) for edge in lowered.edges]
        lowered.edge_messages = list(map(changed, lowered.edge_messages))
        lowered.comb_messages = list(map(changed, lowered.comb_messages))
        rewrite(lowered.design, change)
        if self._conditions is not None:
            signals = (lowered.signals[signal] for _, _, signal in self._toggling)
            # At the only edge that there is, nothing need be asked.
            alone = sum(not edge.reset for edge in lowered.edges) == 1
            lowered.covered = covered_bits(
                signals,
                [(None if alone and edge else edge, change(x)) for edge, x in self._conditions],
            )
        lowered.show(("", bits) for bits in lowered.signals.values())

    # --- what the netlist does not say --------------------------------------------------------

    def _visit(self, fragment: Any) -> None:
        """Note what combinational logic drives, what clocks start as, and what resets reads."""
        signals, driven = self._netlist.signals, self._lowered.driven
        for statements in fragment.statements.values():
            self._statements += message_statements(statements)
        for statement in fragment.statements.get("comb", ()):
            for signal in driven_signals(statement):
                driven[signal] = True
        for domain in fragment.domains.values():
            for signal in (domain.clk, domain.rst):
                if signal is not None and signal in signals:
                    self._starts.setdefault(int(signals[signal][0]), signal.init & 1)
        if isinstance(fragment, MemoryInstance):
            for domain_name, data, *_ in read_ports_of(fragment):
                if domain_name == "comb":
                    for signal in driven_signals(data):
                        driven[signal] = True
                else:
                    self._note_reset(fragment.domains[domain_name], data)
        for inner, *_ in fragment.subfragments:
            self._visit(inner)

    def _note_reset(self, domain: Any, data: Any) -> None:
        if len(data) == 0:
            return
        signals = driven_signals(data)
        nets = {int(net) >> 16 for signal in signals for net in self._netlist.signals[signal]}
        for number in nets:
            if isinstance(self._netlist.cells[number], nir.SyncReadPort):
                self._resets[number] = (domain, data)

    # --- clocks -------------------------------------------------------------------------------

    def _edge(self, net: int, *, rising: bool, reset: bool = False) -> int:
        """The bit of an edge; constants have none."""
        if net < 2:
            return 0
        if self._clock is not None:
            if net != self._clock or not rising or reset:
                raise NotPlain(
                    "a model has the rising edges of one clock only; "
                    "take cppsim.Simulator or cppsim.Batch"
                )
            return 1
        key = (net, rising, reset)
        if key not in self._edges:
            (bit,) = self._writer.new(1)
            self._edges[key] = ClockEdge(net, rising, bit, self._starts.get(net, 0), reset)
        return self._edges[key].bit

    def _active(self, cell: Any) -> int:
        return self._edge(int(cell.clk), rising=cell.clk_edge == "pos")

    def _ports(self, cell: Any) -> None:
        """Clocks and resets that come from outside."""
        starts = {
            int(net): signal.init >> index & 1
            for signal, value in self._netlist.signals.items()
            for index, net in enumerate(value)
            if net >> 16 == 0
        }
        for first, width in cell.ports_i.values():
            bits = tuple(range(first, first + width))
            start = sum(starts.get(bit, 0) << index for index, bit in enumerate(bits))
            self._lowered.inputs.append(StateInput(bits, start))

    def _register(self, number: int, cell: Any) -> None:
        result, following = result_of(number, len(cell.data)), bits_of(cell.data)
        enable, reset = self._active(cell), int(cell.arst)
        start = tuple(cell.init >> index & 1 for index in range(len(result)))
        if not enable and self._clock is not None:
            self._writer.equate(result, start)
            return
        if not enable and not reset:
            self._lowered.inputs.append(StateInput(result, cell.init))
            return
        if reset and self._clock is not None:
            # Between two edges only reads can occur.
            shown, result = result, self._writer.new(len(result))
            self._writer.select(result, [(reset, start)], shown)
            following = self._selected(following, [(reset, start)])
        elif reset:
            enable = self._writer.any_of(enable, self._edge(reset, rising=True, reset=True))
            following = self._selected(following, [(reset, start)])
        self._keep(result, following, start, enable)

    def _keep(self, result: Bits, following: Bits, start: Bits, enable: int) -> None:
        if result:
            self._lowered.design.registers.append(
                StateRegister(
                    result=result,
                    following=following,
                    start=start,
                    enable=None if enable == 1 else enable,
                    reset=None,
                    reset_value=(),
                )
            )

    def _selected(self, default: Bits, choices: list[tuple[int, Bits]]) -> Bits:
        result = self._writer.new(len(default))
        self._writer.select(default, choices, result)
        return result

    # --- memories -----------------------------------------------------------------------------

    def _write(self, cell: Any) -> MemoryWrite:
        edge = self._active(cell)
        enable = tuple(self._writer.all_of(edge, int(net)) for net in cell.en)
        return MemoryWrite(address=bits_of(cell.addr), data=bits_of(cell.data), enable=enable)

    def _clocked_read(self, number: int, cell: Any) -> MemoryRead:
        """A read at any time, before a register."""
        address, shown = bits_of(cell.addr), result_of(number, cell.width)
        row = self._writer.new(cell.width)
        value = row
        for index in cell.transparent_for:
            write = self._netlist.cells[index]
            assert isinstance(write, nir.SyncWritePort)
            hit = self._writer.equal(address, bits_of(write.addr))
            value = self._through(value, bits_of(write.data), bits_of(write.en), hit)
        domain, data = self._resets.get(number, (None, None))
        choices = [(int(cell.en), value)]
        enable = self._active(cell)
        start = (0,) * cell.width
        if domain is not None:
            start = self._starts_of(number, data)
            if domain.rst is not None:
                # Amaranth's simulator resets what the port shows, unless it reads.
                reset = int(self._netlist.signals[domain.rst][0])
                choices.append((reset, start))
                if domain.async_reset:
                    enable = self._writer.any_of(enable, self._edge(reset, rising=True, reset=True))
        self._keep(shown, self._selected(shown, choices), start, enable)
        return MemoryRead(address=address, result=row)

    def _starts_of(self, number: int, data: Any) -> Bits:
        """Return the value at power-on of the signals that show the row of read port ``number``."""
        starts = {
            int(net): signal.init >> index & 1
            for signal in driven_signals(data)
            for index, net in enumerate(self._netlist.signals[signal])
        }
        return tuple(starts.get(bit, 0) for bit in result_of(number, len(data)))

    def _through(self, row: Bits, data: Bits, enable: Bits, hit: int) -> Bits:
        """``row`` with what a write to the same address stores."""
        result: list[int] = []
        low = 0
        while low < len(row):
            high = low + 1
            while high < len(row) and enable[high] == enable[low]:
                high += 1
            condition = self._writer.all_of(hit, enable[low])
            result += self._selected(row[low:high], [(condition, data[low:high])])
            low = high
        return tuple(result)

    # --- what a simulation shows --------------------------------------------------------------

    def _message(self, cell: Any, statement: Any) -> None:
        """Add a print, a check that fails, or a cover that is hit."""
        writer, enable = self._writer, int(cell.en)
        if isinstance(cell, nir.SyncProperty | nir.AsyncProperty):
            test = int(cell.test)
            met = test if cell.kind == "cover" else writer.not_of(test)
            enable = writer.all_of(enable, met)
            if cell.kind == "cover" and cell.format is None:
                return
        chunks = cell.format.chunks if cell.format is not None else ()
        values = tuple(bits_of(x.value) for x in chunks if isinstance(x, nir.FormatValue))
        if isinstance(cell, nir.SyncPrint | nir.SyncProperty):
            enable = writer.all_of(self._active(cell), enable)
            self._lowered.edge_messages.append(DesignMessage(enable, values, statement))
        else:
            self._lowered.comb_messages.append(DesignMessage(enable, values, statement))


_MOST_BITS = 1 << 20
"""Bits of all positions of an assignment to a part: Amaranth writes each position by itself."""


def _expect_few_positions(target: Any) -> None:
    """Raise ``NotPlain`` for a part that has more than `_MOST_BITS` bits at all its positions."""
    left = [target]
    while left:
        item = left.pop()
        if isinstance(item, ast.Part):
            positions = min(len(item.value), 1 << len(item.offset)) // item.stride or 1
            if positions * item.width > _MOST_BITS:
                text = f"{item.width} bits are assigned at {positions} places"
                raise NotPlain(f"{text}; assign a shifted value instead")
        left += operands_of(item)


def expect_narrow(fragment: Any) -> None:
    """Raise ``NotPlain`` for a value in ``fragment`` that is too wide."""
    known: set[int] = set()
    for statements in fragment.statements.values():
        left: list[Any] = list(statements)
        while left:
            item = left.pop()
            if id(item) in known:
                continue
            known.add(id(item))
            match item:
                case ast.Assign():
                    _expect_few_positions(item.lhs)
                    left += [item.lhs, item.rhs]
                case ast.Switch():
                    left.append(item.test)
                    left += [inner for _, inner_list, _ in item.cases for inner in inner_list]
                case _:
                    left += operands_of(item)
            # Other operators at most double the width, and their width takes long to compute.
            grows = not isinstance(item, ast.Operator) or item.operator == "<<"
            if grows and isinstance(item, ast.Value) and (width := item.shape().width) > WIDEST:
                bits = width if width < 1 << 63 else "2**63 or more"
                raise NotPlain(f"a value of {bits} bits is too wide")
    for inner, *_ in fragment.subfragments:
        expect_narrow(inner)
