"""Expressions compiled once for all of their form; addresses are bound at each use.

Never touches a device.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import islice
from typing import Final

from ..driver import Abilities, Command, Storage, Words, encode
from ..errors import LayoutError
from ..lowering import CommandGroup, View, insert_fences, insert_fences_labelled
from .forms import Form
from .fusion import fuse
from .memory import MemoryPlan, allocate, write_into
from .nodes import Argument
from .passes import Location, Pass, plan_passes

_FORMS: Final = 512
"""Forms that stay compiled: those that were used last."""

_LARGEST: Final = 512
"""Rows of the largest form that stays compiled."""

_BINDINGS: Final = 4
"""Sets of addresses whose records a plan stores, as programs get the memory that they freed."""


class CompiledForm:
    """The plan of ``form`` for a device of ``abilities``; its arguments are the form's areas.

    Raises ``LayoutError`` or ``UnsupportedError``.
    """

    def __init__(self, form: Form, abilities: Abilities) -> None:
        self._abilities = abilities
        buffers, nodes = form.build()
        roots = fuse([nodes[root] for root in form.roots], abilities)
        plan = replace(plan_passes(roots, abilities), arguments=tuple(buffers))
        if form.target is not None:
            target = nodes[form.target]
            assert isinstance(target, Argument)
            plan = write_into(plan, [Location(target.buffer, target.view)], [target.shape])
        self.plan = plan
        self.usual = PlacedPlan(allocate(plan), abilities)

    @cached_property
    def sparing(self) -> "PlacedPlan":
        """The plan that needs least memory."""
        return PlacedPlan(allocate(self.plan, sparing=True), self._abilities)


_compile = lru_cache(maxsize=_FORMS)(CompiledForm)


def compile_form(form: Form, abilities: Abilities) -> CompiledForm:
    """Return the plan of ``form``, the same for equal forms and abilities. See `CompiledForm`."""
    return (_compile if len(form.rows) <= _LARGEST else CompiledForm)(form, abilities)


@dataclass(frozen=True, slots=True)
class _Template:
    """A command whose streams are relative to the starts of areas, which have these numbers."""

    command: Command
    areas: tuple[int, int, int]

    def encode(self, starts: Sequence[int], *, interrupt: bool) -> Words:
        a, b, y = (starts[area] for area in self.areas)
        return encode(self.command.moved(a, b, y, fence=self.command.fence), interrupt=interrupt)


class PlacedPlan:
    """A plan with its memory, and its commands for any addresses of its areas."""

    def __init__(self, memory: MemoryPlan, abilities: Abilities) -> None:
        self.memory = memory
        self._abilities = abilities
        taken = {memory.places[buffer][0] for buffer in memory.plan.arguments}
        self.own = tuple([area for area in range(len(memory.bound)) if area not in taken])
        """The areas of results that are not arguments."""
        temporary = (memory.temporary,) if memory.temporary else ()
        self.sizes = (*(memory.bound[area] for area in self.own), *temporary)
        """Bytes of the areas to take: those of ``own``, and the temporary one if there is one."""
        arguments = [memory.places[buffer][0] for buffer in memory.plan.arguments]
        behind = (len(memory.bound),) if temporary else ()
        order = {area: place for place, area in enumerate((*self.own, *behind, *arguments))}
        self._order = tuple([order[area] for area in sorted(order)])
        self.results = tuple([self._result(location) for location in memory.plan.results])
        """The area of each result, and its view there."""
        # Half a ring is one batch, whose last record alone raises the interrupt.
        self._templates = self._lower(max(1, abilities.slots // 2))
        self._records: dict[tuple[int, ...], list[Words]] = {}

    def _lower(self, most: int) -> list[_Template] | None:
        """Return templates of all commands, or None for more than ``most``."""
        starts = self.memory.dry_starts
        groups = self.memory.groups(starts, self._abilities, None)
        steps = [(step, [group]) for step, group in zip(self.memory.passes, groups, strict=True)]
        for step, (group,) in steps:
            self._expect_inside(step, group, starts)
        templates: list[_Template] = []
        for step, commands in insert_fences_labelled(steps):
            locations = step.a, step.b or step.a, step.y
            areas = [self._area(location) for location in locations]
            a, b, y = (-starts[area] for area in areas)
            for command in islice(commands, most + 1 - len(templates)):
                relative = command.moved(a, b, y, fence=command.fence)
                templates.append(_Template(relative, (areas[0], areas[1], areas[2])))
            if len(templates) > most:
                return None
        return templates

    def _result(self, location: Location) -> tuple[int, View]:
        assert location.buffer is not None
        area, offset = self.memory.places[location.buffer]
        return area, location.view.moved(offset)

    def in_order(self, taken: Sequence[Storage], leaves: Sequence[Storage]) -> list[Storage]:
        """Return the storage of each area: ``taken`` are those of ``sizes``, then the arguments."""
        storages = (*taken, *leaves)
        return [storages[place] for place in self._order]

    def _area(self, location: Location) -> int:
        assert location.buffer is not None
        return self.memory.places[location.buffer][0]

    def _expect_inside(self, step: Pass, group: CommandGroup, starts: Sequence[int]) -> None:
        """Raise ``LayoutError`` if a stream leaves its area, which may be another one's memory."""
        if 0 in step.shape:
            return
        sizes = (*self.memory.bound, self.memory.temporary)
        locations = (*step.operands, step.y)
        for location, span in zip(locations, (*group.reads, group.writes), strict=True):
            area = self._area(location)
            first, end = span.start - starts[area], span.stop - starts[area]
            if first < 0 or end > sizes[area]:
                raise LayoutError(
                    f"{step.name}: bytes {first} to {end - 1} of {sizes[area]} that there are"
                )

    def commands(self, starts: tuple[int, ...]) -> Iterable[Command | Words]:
        """Return the commands for areas at ``starts``, of which the temporary one is the last."""
        if self._templates is None:
            return insert_fences(self.memory.groups(starts, self._abilities, None))
        records = self._records.get(starts)
        if records is None:
            last = len(self._templates) - 1
            records = [
                template.encode(starts, interrupt=number == last)
                for number, template in enumerate(self._templates)
            ]
            if len(self._records) >= _BINDINGS:
                self._records.clear()
            self._records[starts] = records
        return records
