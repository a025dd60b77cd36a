"""`bitlane check MODEL`: says what is wrong with a model file, and executes nothing."""

import argparse
from pathlib import Path

from bitlane_rtl.abi import (
    ABI_VERSION,
    BIT_OPS,
    CONTROL_BASE,
    IDENTITY,
    MAX_LOOPS,
    REGISTERS,
    Lane,
    Mode,
    register,
)

from .. import dml
from ..driver.control import Control
from ..links.link import open_link
from ..model_file import load_model, prepare
from ..profile.noting import PaperDriver
from .cli import DONE, Group, Subparsers
from .run import add_feature_level, feature_level


def add_check(subparsers: Subparsers) -> None:
    """Add the subcommand `check`."""
    parser = subparsers.add_parser(
        "check",
        help="check a model file of DxDispatch without running it",
        description="Read a model file and everything that it names, and check all that `bitlane"
        " run` checks before it executes anything: DirectML's rules, bindings, and that results"
        " can be written. Without --device it needs none.",
        epilog="exit codes: 0 nothing is wrong, 2 bad input or no usable device",
    )
    parser.add_argument("model", metavar="MODEL", help="the model file")
    parser.add_argument(
        "--device",
        metavar="URL",
        help="check too that this device has the memory and the operations; it does nothing",
    )
    add_feature_level(parser)
    parser.set_defaults(run=_run, group=Group.USE)


def _run(arguments: argparse.Namespace) -> int:
    return check_model(arguments.model, arguments.device, feature_level(arguments))


def check_model(
    path: str | Path,
    url: str | None = None,
    level: dml.FeatureLevel = dml.FeatureLevel.LEVEL_4_1,
) -> int:
    """Check the model file ``path``, for the device ``url`` if there is one; the exit code.

    Raises ``ModelFileError`` for what `run` would refuse before it executes anything, ``OSError``
    if the file cannot be read, and ``LinkError`` if the device cannot be opened.
    """
    model = load_model(path, level)
    registers = _of_everything() if url is None else _of_device(url)
    with PaperDriver(registers) as driver, dml.Device(driver, level) as device:
        dispatches = len(prepare(model, device).dispatches)
    found = {
        "resource": len(model.resources),
        "dispatchable": len(model.dispatchables),
        "dispatch": dispatches,
    }
    counts = [f"{count} {_plural(name, count)}" for name, count in found.items()]
    print(f"{path}: {', '.join(counts)}: nothing is wrong")
    return DONE


def _of_device(url: str) -> dict[str, int]:
    with open_link(url) as link:
        control = Control(link)
        control.geometry()
        return control.registers()


def _of_everything() -> dict[str, int]:
    """The registers of a circuit with all operations, and all memory that there are addresses for.

    Its sizes are the largest that there can be.
    """
    return dict.fromkeys((entry.name for entry in REGISTERS), 0) | {
        "IDENTITY": IDENTITY,
        "VERSION": ABI_VERSION,
        "CAPABILITIES": _word(
            "CAPABILITIES",
            OPS=sum(1 << op for op in BIT_OPS),
            LANES=sum(1 << lane for lane in Lane),
            MODES=sum(1 << mode for mode in Mode),
            READ_PORTS=2,
        ),
        "GEOMETRY": _word(
            "GEOMETRY",
            DATA_BYTES_LOG2=3,
            LOOPS=MAX_LOOPS,
            SLOTS_LOG2=5,
            LENGTH_BITS=32,
            COUNT_BITS=32,
        ),
        "MEMORY_LAST": CONTROL_BASE - 1,
    }


def _word(name: str, **values: int) -> int:
    fields = register(name)
    return sum(fields[field].insert(value) for field, value in values.items())


def _plural(name: str, count: int) -> str:
    return name if count == 1 else f"{name}es" if name == "dispatch" else f"{name}s"
