"""The commands that each dispatch of a model becomes on a device, as records and as text."""

from collections.abc import Sequence

from bitlane_rtl.abi import Mode

from .. import dml
from ..driver import Command, DryRunDriver, Geometry, LabelledCommands, Walk
from ..model_file import Model, execute_dispatches, prepare
from ..text import printable

_INDENT = "    "


def lower_model(
    model: Model, geometry: Geometry, level: dml.FeatureLevel
) -> list[LabelledCommands]:
    """Return the commands of each dispatch for a device of ``geometry``, in a dry run.

    The copies of inputs that are OWNED_BY_DML come first, without a label. Dispatches with no
    other command between them are one job: a fence stands where one depends on another. Raises
    ``ModelFileError`` if the device refuses the model.
    """
    with DryRunDriver(geometry) as driver, dml.Device(driver, level) as device:
        execute_dispatches(prepare(model, device))
        return driver.recorded


def disassemble(dispatches: Sequence[LabelledCommands], geometry: Geometry) -> str:
    """Return all commands as text, grouped by dispatch, after a line on the device."""
    lines = [geometry_text(geometry)]
    number = 0
    for each in dispatches:
        what = f"Dispatch '{printable(each.label)}'" if each.label else "Initialization"
        count = len(each.commands)
        lines += ["", f"{what}: {count} command{'s' * (count != 1)}"]
        for command in each.commands:
            lines.append(command_text(command, number))
            number += 1
    return "\n".join(lines)


def geometry_text(geometry: Geometry) -> str:
    """Return a line on the device: what its commands depend on."""
    ports = "1 read port" if geometry.read_ports == 1 else f"{geometry.read_ports} read ports"
    sizes = f"beats of {8 * geometry.data_bytes} bits, {ports}, {geometry.loops} nested loops"
    return f"For {sizes}, {geometry.slots} slots"


def command_text(command: Command, number: int) -> str:
    """Return the text of the command ``number``: its fields, then a line for each stream.

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
    flags = ("saturate", "arithmetic", "test", "negate", "fence")
    words += [name for name in flags if getattr(command, name)]
    streams = [("A", command.a), ("B", command.b), ("Y", command.y)]
    lines = [f"{_INDENT}{name} {walk_text(walk)}" for name, walk in streams if walk is not None]
    return "\n".join([", ".join(words), *lines])


def walk_text(walk: Walk) -> str:
    """Return a stream's mode, first and last address, stride and jumps as text."""
    text = f"{walk.mode.name:<7} {walk.base:#010x} to {walk.last:#010x}"
    if walk.mode is Mode.STRIDED:
        text += f", stride {walk.stride:+}"
    if walk.jumps:
        text += f", jumps {' '.join(f'{jump:+}' for jump in walk.jumps)}"
    return text
