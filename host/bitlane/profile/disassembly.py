"""The commands that each dispatch of a model becomes on a device, and these as text.

Nothing is executed: the device is paper, with the geometry of a real one.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, islice

from bitlane_rtl.abi import Mode

from .. import dml
from ..driver.commands import Command, Walk
from ..driver.geometry import Geometry
from ..model_file import Model, PreparedModel, prepare
from ..model_file.model import Dispatch
from .noting import PaperDriver

_INDENT = "    "


@dataclass(frozen=True, slots=True)
class Dispatched:
    """What a dispatch becomes."""

    name: str
    """The dispatchable's; of what initializers copy: none."""
    commands: tuple[Command, ...]


def lowered(
    model: Model, registers: Mapping[str, int], level: dml.FeatureLevel
) -> list[Dispatched]:
    """The commands of each dispatch, as a device with these ``registers`` would get them.

    First come the copies of inputs that are OWNED_BY_DML, if there are any. Dispatches with
    nothing else between them are one job: fences stand where one needs what another has done.

    Raises ``ModelFileError`` for what the device refuses, and ``LinkError`` if ``registers`` are
    those of no bitlane device.
    """
    with PaperDriver(registers) as driver, dml.Device(driver, level) as device:
        prepared = prepare(model, device)
        device.execute(prepared.initialization)
        copies = list(driver.noted)
        lists = [prepared.dispatches[index] for index in sorted(prepared.dispatches)]
        counts = []
        for each in lists:
            driver.noted.clear()
            device.execute(each)
            counts.append(len(driver.noted))
        driver.noted.clear()
        for job in _jobs(prepared):
            device.execute(*job)
        names = [x.dispatchable for x in model.commands if isinstance(x, Dispatch)]
        return shared_out([*copies, *driver.noted], ["", *names], [len(copies), *counts])


def shared_out(
    commands: Sequence[Command], names: Sequence[str], counts: Sequence[int]
) -> list[Dispatched]:
    """``commands`` in their order, so many to each of ``names``; who gets none is left out."""
    rest = iter(commands)
    return [
        Dispatched(name, tuple(islice(rest, count)))
        for name, count in zip(names, counts, strict=True)
        if count
    ]


def _jobs(prepared: PreparedModel) -> Iterator[list[dml.CommandList]]:
    """The lists of each run of dispatches with no other command between them."""
    for dispatches, group in groupby(
        enumerate(prepared.model.commands), lambda item: isinstance(item[1], Dispatch)
    ):
        if dispatches:
            yield [prepared.dispatches[index] for index, _ in group]


def lowered_text(dispatches: Sequence[Dispatched], geometry: Geometry) -> str:
    """All commands, grouped by dispatch, behind a line on what the device is."""
    ports = "1 read port" if geometry.read_ports == 1 else f"{geometry.read_ports} read ports"
    sizes = f"beats of {8 * geometry.data_bytes} bits, {ports}, {geometry.loops} nested loops"
    lines = [f"For {sizes}, {geometry.slots} slots"]
    number = 0
    for each in dispatches:
        what = f"Dispatch '{each.name}'" if each.name else "Initialization"
        count = len(each.commands)
        lines += ["", f"{what}: {count} command{'s' * (count != 1)}"]
        for command in each.commands:
            lines.append(command_text(command, number))
            number += 1
    return "\n".join(lines)


def command_text(command: Command, number: int) -> str:
    """One command, of this ``number``: what it does, then a line for each of its streams.

    Loops are named from the inside out: ``run 10, loops 3 x 2`` are 2 times 3 runs of 10
    elements. A stream's jumps are the bytes that end a run, one for each loop, innermost first.
    """
    lane, out = command.lane.bits, command.out_lane.bits
    words = [
        f"{number:>3} {command.op.name}",
        f"{lane} bits" if lane == out else f"{lane} to {out} bits",
        f"run {command.run}",
    ]
    if command.counts:
        words.append(f"loops {' x '.join(map(str, command.counts))}")
    words += [name for name in ("saturate", "arithmetic", "fence") if getattr(command, name)]
    streams = [("A", command.a), ("B", command.b), ("Y", command.y)]
    lines = [f"{_INDENT}{name} {walk_text(walk)}" for name, walk in streams if walk is not None]
    return "\n".join([", ".join(words), *lines])


def walk_text(walk: Walk) -> str:
    """How a stream walks, and between which addresses."""
    text = f"{walk.mode.name:<7} {walk.base:#010x} to {walk.last:#010x}"
    if walk.mode is Mode.STRIDED:
        text += f", stride {walk.stride:+}"
    if walk.jumps:
        text += f", jumps {' '.join(f'{jump:+}' for jump in walk.jumps)}"
    return text
