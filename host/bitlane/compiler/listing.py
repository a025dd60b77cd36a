"""The commands that expressions become, at addresses that nothing has been allocated at."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate

from ..driver import Abilities, Command, round_up
from ..lowering import insert_fences
from .explain import stages
from .fusion import fuse
from .memory import allocate
from .nodes import Argument, Expression, Stored, reach
from .passes import plan_passes


def list_commands(
    abilities: Abilities, roots: Sequence[Expression], base: int
) -> Iterator[list[Command]]:
    """Yield the commands of each run that computes ``roots``: one, and one behind each host's sum.

    Results and intermediate values lie behind the stored operands, or from ``base`` on. Raises
    ``LayoutError`` or ``UnsupportedError``.
    """
    needed, _ = reach(roots)
    stored = [node.storage for node in needed if isinstance(node, Stored)]
    first = round_up(max([base, *(each.address + each.size for each in stored)]))
    leaves: list[Argument] = []
    for stage in stages(roots, leaves):
        buffers = tuple([leaf.buffer for leaf in leaves])
        plan = plan_passes(fuse(stage.wanted, abilities), abilities)
        memory = allocate(replace(plan, arguments=buffers))
        starts = list(accumulate(map(round_up, memory.bound), initial=first))
        yield list(insert_fences(memory.groups(starts, abilities, None)))
