"""Where to evaluate what: a cell that only one branch reads is evaluated in that branch.

Most of a circuit rests in most cycles: a register whose enable is low need not have its next value
computed, nor a multiplexer the branch that it does not take.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from ..netlist.design import CellKind, PlainCell
from ..netlist.tidy import Step
from ..netlist.yosys import Bits

__all__ = ["Block", "place"]

_WORTH = 2
"""Instructions that make a branch worth a misprediction now and then."""


@dataclass(eq=False, slots=True)
class Block:
    """Statements that are executed together, within those of ``parent``."""

    parent: "Block | None" = None
    depth: int = 0
    steps: list[int] = field(default_factory=list)
    """Numbers of the steps evaluated here, in order."""

    def inner(self) -> "Block":
        return Block(self, self.depth + 1)


def place(
    steps: Sequence[Step],
    uses: Iterable[tuple[Bits, Block]],
    root: Block,
    cost: Sequence[int],
    dry: frozenset[Block] = frozenset(),
) -> dict[int, list[Block]]:
    """Give each of ``steps``, which are in order, a block; none to those that nothing needs.

    ``uses`` are bits that are read at the end of a block; ``cost`` says what each step takes.
    Within the blocks ``dry`` no memory is read. Returns a block for each value, the default first,
    of the multiplexers that are worth a branch, by the number of their step.
    """
    drivers = {
        bit: number
        for number, step in enumerate(steps)
        for bit in (step.result if isinstance(step, PlainCell) else step[1].result)
    }
    wanted: list[Block | None] = [None] * len(steps)

    def want(bits: Bits, block: Block) -> None:
        for bit in bits:
            number = drivers.get(bit)
            if number is not None:
                before = wanted[number]
                wanted[number] = block if before is None else _common(before, block)

    for bits, user in uses:
        want(bits, user)
    arms: dict[int, list[Block]] = {}
    for number in reversed(range(len(steps))):
        block, step = wanted[number], steps[number]
        if block is None:
            continue
        if not isinstance(step, PlainCell):
            if not dry.isdisjoint(_around(block)):
                block = wanted[number] = root
            want(step[1].address, block)
        elif step.kind is CellKind.MUX:
            arms[number] = []
            for position, bits in enumerate(step.operands):
                if position % 2:
                    want(bits, block)
                else:
                    arms[number].append(block.inner())
                    want(bits, arms[number][-1])
        else:
            for bits in step.operands:
                want(bits, block)
    return _settle(wanted, arms, cost)


def _around(block: Block | None) -> Iterator[Block]:
    while block is not None:
        yield block
        block = block.parent


def _common(first: Block, second: Block) -> Block:
    while first is not second:
        if first.depth >= second.depth:
            assert first.parent is not None
            first = first.parent
        else:
            assert second.parent is not None
            second = second.parent
    return first


def _settle(
    wanted: list[Block | None], arms: dict[int, list[Block]], cost: Sequence[int]
) -> dict[int, list[Block]]:
    """Fill the blocks; dissolve the arms of multiplexers that are not worth a branch."""
    total: dict[Block, int] = {}
    kept: dict[int, list[Block]] = {}
    dissolved: dict[Block, Block] = {}
    # Whatever an arm holds comes before its multiplexer, so its total is known by then.
    for number, block in enumerate(wanted):
        if block is None:
            continue
        inner = arms.get(number, [])
        most = max((total.get(arm, 0) for arm in inner), default=0)
        total[block] = total.get(block, 0) + cost[number]
        if most >= _WORTH:
            kept[number] = inner
            total[block] += sum(total.get(arm, 0) for arm in inner) // len(inner)
        else:
            for arm in inner:
                dissolved[arm] = block
                total[block] += total.get(arm, 0)
    for number, block in enumerate(wanted):
        home = block
        while home in dissolved:
            home = dissolved[home]
        if home is not None:
            home.steps.append(number)
    return kept
