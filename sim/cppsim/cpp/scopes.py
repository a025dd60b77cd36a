"""The scope of each cell: a cell that only one branch reads is evaluated in that branch.

Most of a circuit is idle in most cycles: the next value of a register with its enable low need not
be computed, nor the branch of a multiplexer that is not selected.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from ..netlist.design import Bits, CellKind, PlainCell
from ..netlist.passes import Statement

_WORTH = 2
"""Instructions that make a branch worth a misprediction now and then."""


@dataclass(eq=False, slots=True)
class Scope:
    """Statements that are executed together, within those of ``parent``."""

    parent: "Scope | None" = None
    depth: int = 0
    steps: list[int] = field(default_factory=list)
    """Numbers of the steps evaluated here, in order."""

    def inner(self) -> "Scope":
        return Scope(self, self.depth + 1)


def place(
    steps: Sequence[Statement],
    uses: Iterable[tuple[Bits, Scope]],
    root: Scope,
    cost: Sequence[int],
    dry: frozenset[Scope] = frozenset(),
) -> dict[int, list[Scope]]:
    """Give each of ``steps``, which are in order, a scope; none to those that nothing needs.

    ``uses`` are bits that are read at the end of a scope; ``cost`` says what each step takes.
    Within the scopes ``dry`` no memory is read. Returns a scope for each value, the default first,
    of the multiplexers that are worth a branch, by the number of their step.
    """
    drivers = {
        bit: number
        for number, step in enumerate(steps)
        for bit in (step.result if isinstance(step, PlainCell) else step[1].result)
    }
    wanted: list[Scope | None] = [None] * len(steps)

    def want(bits: Bits, scope: Scope) -> None:
        for bit in bits:
            number = drivers.get(bit)
            if number is not None:
                before = wanted[number]
                wanted[number] = scope if before is None else _common(before, scope)

    for bits, user in uses:
        want(bits, user)
    arms: dict[int, list[Scope]] = {}
    for number in reversed(range(len(steps))):
        scope, step = wanted[number], steps[number]
        if scope is None:
            continue
        if not isinstance(step, PlainCell):
            if not dry.isdisjoint(_around(scope)):
                scope = wanted[number] = root
            want(step[1].address, scope)
        elif step.kind is CellKind.MUX:
            arms[number] = []
            for position, bits in enumerate(step.operands):
                if position % 2:
                    want(bits, scope)
                else:
                    arms[number].append(scope.inner())
                    want(bits, arms[number][-1])
        else:
            for bits in step.operands:
                want(bits, scope)
    return _settle(wanted, arms, cost)


def _around(scope: Scope | None) -> Iterator[Scope]:
    while scope is not None:
        yield scope
        scope = scope.parent


def _common(first: Scope, second: Scope) -> Scope:
    while first is not second:
        if first.depth >= second.depth:
            assert first.parent is not None
            first = first.parent
        else:
            assert second.parent is not None
            second = second.parent
    return first


def _settle(
    wanted: list[Scope | None], arms: dict[int, list[Scope]], cost: Sequence[int]
) -> dict[int, list[Scope]]:
    """Fill the scopes; dissolve the arms of multiplexers that are not worth a branch."""
    total: dict[Scope, int] = {}
    kept: dict[int, list[Scope]] = {}
    dissolved: dict[Scope, Scope] = {}
    # The steps of an arm come before its multiplexer, so the total is complete here.
    for number, scope in enumerate(wanted):
        if scope is None:
            continue
        inner = arms.get(number, [])
        most = max((total.get(arm, 0) for arm in inner), default=0)
        total[scope] = total.get(scope, 0) + cost[number]
        if most >= _WORTH:
            kept[number] = inner
            total[scope] += sum(total.get(arm, 0) for arm in inner) // len(inner)
        else:
            for arm in inner:
                dissolved[arm] = scope
                total[scope] += total.get(arm, 0)
    for number, scope in enumerate(wanted):
        home = scope
        while home in dissolved:
            home = dissolved[home]
        if home is not None:
            home.steps.append(number)
    return kept
