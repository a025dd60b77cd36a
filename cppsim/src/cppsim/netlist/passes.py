"""Passes over a plain design: rename bits, drop dead bits, split into words, order statements."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from .design import (
    POINTWISE,
    WORD,
    Bits,
    CellKind,
    Memory,
    MemoryRead,
    MemoryWrite,
    NotPlain,
    PlainCell,
    PlainDesign,
    StateRegister,
)

_CARRYING = frozenset(
    {CellKind.ADD, CellKind.SUBTRACT, CellKind.MULTIPLY, CellKind.NEGATE, CellKind.LEFT}
)
"""Bits of the result depend on bits of the first operands up to their own index."""


class RowRead(NamedTuple):
    """A read of a memory, as a statement beside cells."""

    memory: Memory
    read: MemoryRead

    @property
    def operands(self) -> tuple[Bits, ...]:
        """The address."""
        return (self.read.address,)

    @property
    def result(self) -> Bits:
        """The bits of the row."""
        return self.read.result


Statement = PlainCell | RowRead
"""Something to evaluate: a cell, or a read."""

_Source = tuple[PlainCell | StateRegister | Memory, int]
"""The driver of a bit, and the index of the bit in its result or row."""


def rewrite(design: PlainDesign, change: Callable[[Bits], Bits]) -> None:
    """Apply ``change`` to all bits that are read, those of output ports and names included."""

    def bit(number: int) -> int:
        return change((number,))[0]

    def changed(register: StateRegister) -> StateRegister:
        return replace(
            register,
            following=change(register.following),
            enable=None if register.enable is None else bit(register.enable),
            reset=None if register.reset is None else bit(register.reset),
        )

    design.ports = [replace(x, bits=change(x.bits)) for x in design.ports]
    design.names = {name: change(bits) for name, bits in design.names.items()}
    design.cells = [replace(x, operands=tuple(map(change, x.operands))) for x in design.cells]
    design.registers = list(map(changed, design.registers))
    design.memories = [
        replace(
            x,
            reads=tuple(MemoryRead(change(y.address), y.result) for y in x.reads),
            writes=tuple(
                MemoryWrite(change(y.address), change(y.data), change(y.enable)) for y in x.writes
            ),
        )
        for x in design.memories
    ]
    design.messages = [
        replace(x, enable=bit(x.enable), values=tuple(map(change, x.values)))
        for x in design.messages
    ]


def trim(design: PlainDesign) -> None:
    """Drop every bit that no output port and no message depends on."""
    live = _live(design)
    design.cells = [cell for x in design.cells if (cell := _trim_cell(x, live))]
    design.registers = [register for x in design.registers if (register := _trim_register(x, live))]
    design.memories = [memory for x in design.memories if (memory := _trim_memory(x, live))]


def _live(design: PlainDesign) -> set[int]:
    sources: dict[int, _Source] = {}
    items: list[PlainCell | StateRegister] = [*design.cells, *design.registers]
    for item in items:
        sources |= {bit: (item, index) for index, bit in enumerate(item.result)}
    for memory in design.memories:
        for read in memory.reads:
            sources |= {bit: (memory, index) for index, bit in enumerate(read.result)}
    left = [bit for port in design.ports if port.output for bit in port.bits]
    for message in design.messages:
        left += [message.enable, *(bit for bits in message.values for bit in bits)]
    live: set[int] = set()
    while left:
        bit = left.pop()
        if bit not in live:
            live.add(bit)
            if bit in sources:
                left += _needs(*sources[bit])
    return live


def _needs(source: PlainCell | StateRegister | Memory, index: int) -> Iterator[int]:
    """Yield the bits that a bit depends on."""
    match source:
        case PlainCell(kind, operands, _):
            for number, operand in enumerate(operands):
                whole = kind is CellKind.LEFT and number == 1
                if kind in POINTWISE or (kind is CellKind.MUX and not number % 2):
                    yield operand[index]
                elif kind in _CARRYING and not whole:
                    yield from operand[: index + 1]
                else:
                    yield from operand
        case StateRegister():
            yield source.following[index]
            yield from source.conditions
        case Memory():
            for read in source.reads:
                yield from read.address
            for write in source.writes:
                yield from (*write.address, write.data[index], write.enable[index])


def _trim_cell(cell: PlainCell, live: set[int]) -> PlainCell | None:
    indices = [index for index, bit in enumerate(cell.result) if bit in live]
    if not indices:
        return None
    if cell.kind in POINTWISE:
        operands = tuple(_pick(x, indices) for x in cell.operands)
    elif cell.kind is CellKind.MUX:
        operands = tuple(
            x if number % 2 else _pick(x, indices) for number, x in enumerate(cell.operands)
        )
    elif cell.kind in _CARRYING:
        indices = list(range(indices[-1] + 1))
        amount = cell.operands[1:] if cell.kind is CellKind.LEFT else ()
        cut = cell.operands[: len(cell.operands) - len(amount)]
        operands = (*(_pick(x, indices) for x in cut), *amount)
    else:
        return cell
    return PlainCell(cell.kind, operands, _pick(cell.result, indices))


def _trim_register(register: StateRegister, live: set[int]) -> StateRegister | None:
    indices = [index for index, bit in enumerate(register.result) if bit in live]
    if not indices:
        return None
    return replace(
        register,
        result=_pick(register.result, indices),
        following=_pick(register.following, indices),
        start=_pick(register.start, indices),
        reset_value=() if register.reset is None else _pick(register.reset_value, indices),
    )


def _trim_memory(memory: Memory, live: set[int]) -> Memory | None:
    reads = [read for read in memory.reads if not live.isdisjoint(read.result)]
    columns = [
        index for index in range(memory.width) if any(x.result[index] in live for x in reads)
    ]
    if not columns:
        return None
    return Memory(
        name=memory.name,
        number=memory.number,
        depth=memory.depth,
        columns=_pick(memory.columns, columns),
        reads=tuple(MemoryRead(x.address, _pick(x.result, columns)) for x in reads),
        writes=tuple(
            MemoryWrite(x.address, _pick(x.data, columns), _pick(x.enable, columns))
            for x in memory.writes
        ),
        signed=memory.signed,
    )


def _pick(bits: Bits, indices: Sequence[int]) -> Bits:
    return tuple(bits[index] for index in indices)


def in_order(design: PlainDesign, shown: Iterable[Bits] = ()) -> list[Statement]:
    """Return cells and reads, each after its operands and near its first use.

    ``shown`` are bits that are used beside those of the design. Raises ``NotPlain``
    if an operation on whole words depends on its own result.
    """
    steps: list[Statement] = list(design.cells)
    steps += [RowRead(x, read) for x in design.memories for read in x.reads]
    drivers = {bit: number for number, step in enumerate(steps) for bit in step.result}

    def needs(number: int) -> list[int]:
        return [drivers[bit] for bits in steps[number].operands for bit in bits if bit in drivers]

    def loop(number: int) -> None:
        raise NotPlain(_loop(design, steps[number]))

    roots = (drivers[bit] for bit in _roots(design, shown) if bit in drivers)
    return [steps[number] for number in postorder(roots, needs, loop)]


def _roots(design: PlainDesign, shown: Iterable[Bits]) -> Iterator[int]:
    for register in design.registers:
        yield from register.conditions
        yield from register.following
    for memory in design.memories:
        for read in memory.reads:
            yield from read.address
        for write in memory.writes:
            yield from (*write.enable, *write.address, *write.data)
    for message in design.messages:
        yield message.enable
        for bits in message.values:
            yield from bits
    for port in design.ports:
        if port.output:
            yield from port.bits
    for bits in shown:
        yield from bits


def _loop(design: PlainDesign, step: Statement) -> str:
    names = (name for name, bits in design.names.items() if not set(bits).isdisjoint(step.result))
    return f"combinational loop through {min(names, default='a signal without a name')}"


_WHOLE = {
    CellKind.ALL: CellKind.ALL,
    CellKind.ANY: CellKind.ANY,
    CellKind.ODD: CellKind.ODD,
    CellKind.EQUAL: CellKind.ALL,
    CellKind.UNEQUAL: CellKind.ANY,
}
"""The cell that joins the results of the parts."""


def narrow(design: PlainDesign, width: int) -> None:
    """Split operations wider than ``width`` bits, except those with carries, orders and shifts."""
    free = iter(range(design.first_free(), 1 << 62))
    design.cells = [part for cell in design.cells for part in _split(cell, width, free)]


def ordered_statements(design: PlainDesign, shown: Sequence[Bits] = ()) -> list[Statement]:
    """Return the statements of ``design`` in order; cut it into single bits where that is needed.

    ``shown`` are bits that are used beside those of the design. Raises ``NotPlain``
    if a bit depends on itself.
    """
    try:
        return in_order(design, shown)
    except NotPlain:
        # A bit may depend on another one of its word, as in a chain, without a loop of bits.
        narrow(design, 1)
        return in_order(design, shown)


def _split(cell: PlainCell, width: int, free: Iterator[int]) -> Iterator[PlainCell]:
    if max(len(cell.result), *(len(bits) for bits in cell.operands)) <= width:
        yield cell
    elif cell.kind in POINTWISE or cell.kind is CellKind.MUX:
        for part in _parts(len(cell.result), width):
            operands = tuple(
                bits if cell.kind is CellKind.MUX and number % 2 else bits[part]
                for number, bits in enumerate(cell.operands)
            )
            yield replace(cell, operands=operands, result=cell.result[part])
    elif cell.kind in _WHOLE:
        answers: list[int] = []
        for part in _parts(len(cell.operands[0]), width):
            operands = tuple(bits[part] for bits in cell.operands)
            if len(operands) == 1 and len(operands[0]) == 1:
                answers += operands[0]
            else:
                answers.append(next(free))
                yield PlainCell(cell.kind, operands, (answers[-1],))
        joined = PlainCell(_WHOLE[cell.kind], (tuple(answers),), cell.result)
        yield from _split(joined, max(width, WORD), free)
    else:
        yield cell


def _parts(size: int, width: int) -> Iterator[slice]:
    return (slice(low, min(low + width, size)) for low in range(0, size, width))


def _ignore(_: int) -> None:
    pass


def postorder(
    roots: Iterable[int],
    needs: Callable[[int], Sequence[int]],
    loop: Callable[[int], None] = _ignore,
) -> Iterator[int]:
    """Yield ``roots`` and all that they need, each number once and after its ``needs``.

    A need is visited just before its first user, as in a recursive walk. ``loop`` is called with a
    number that is needed by something that it needs itself; if it returns, the need is ignored.
    Numbers are not negative.
    """
    done: dict[int, bool] = {}
    for root in roots:
        # A number below 0 ends the visit of its complement.
        left = [root]
        while left:
            number = left.pop()
            if number < 0:
                done[~number] = True
                yield ~number
            elif number not in done:
                done[number] = False
                left.append(~number)
                for other in reversed(needs(number)):
                    ended = done.get(other)
                    if ended is None:
                        left.append(other)
                    elif not ended:
                        loop(other)
