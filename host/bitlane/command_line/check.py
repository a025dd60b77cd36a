"""`bitlane check MODEL`: reports the errors of a model file, by a dry run.

`check_onnx` checks models in ONNX's format.
"""

import argparse
from pathlib import Path

from .. import dml
from ..driver import LARGEST_GEOMETRY, Control, DryRunDriver, Geometry
from ..errors import BitlaneError, ModelFileError
from ..links import open_link
from ..model_file import prepare
from ..model_file.parse import read_model
from ..text import printable
from .cli import DONE, Group, Subparsers, report_error
from .run import (
    add_feature_level,
    add_rest,
    expect_no_level,
    expect_no_rest,
    feature_level,
    is_onnx,
)


def add_check(subparsers: Subparsers) -> None:
    """Add the subcommand `check`."""
    parser = subparsers.add_parser(
        "check",
        help="check a model file of DxDispatch, or an ONNX model, without running it",
        description="Read a model file and everything that it names, and list what `bitlane"
        " run` refuses before it executes anything: broken rules of DirectML, bindings, and results"
        " that cannot be written, one a line. Of MODEL.onnx, list the nodes that the device lacks,"
        " and the groups into which --rest cuts it. Needs a device only for --device.",
        epilog="exit codes: 0 nothing is wrong, 2 bad input or no usable device",
    )
    parser.add_argument("model", metavar="MODEL", help="the model file")
    parser.add_argument(
        "--device",
        metavar="URL",
        help="check too that this device has the memory and the operations; it does nothing",
    )
    add_feature_level(parser)
    add_rest(parser)
    parser.set_defaults(run=_run, group=Group.USE)


def _run(arguments: argparse.Namespace) -> int:
    path = arguments.model
    if is_onnx(path):
        # What it needs is an extra.
        from .check_onnx import check_onnx

        expect_no_level(path, arguments)
        if arguments.device is not None:
            raise BitlaneError(f"--device: {path} is an ONNX model; expected a model file")
        return check_onnx(path, arguments.rest)
    expect_no_rest(path, arguments)
    try:
        return check_model(path, arguments.device, feature_level(arguments))
    except ModelFileError as error:
        if not error.others:
            raise
        *others, last = error.all
        for each in others:
            report_error(each)
        raise last from None


def check_model(
    path: str | Path,
    url: str | None = None,
    level: dml.FeatureLevel = dml.FeatureLevel.LEVEL_4_1,
) -> int:
    """Check the model file ``path``, for the device ``url`` if there is one; return the exit code.

    Raises ``ModelFileError`` if `run` would refuse the model before it executes anything; the error
    carries all others. Raises ``OSError`` if the file cannot be read, and ``LinkError`` if the
    device cannot be opened.
    """
    model, problems = read_model(path, level)
    geometry = LARGEST_GEOMETRY if url is None else _read_geometry(url)
    dispatches = 0
    with DryRunDriver(geometry) as driver, dml.Device(driver, level) as device, problems.part():
        dispatches = len(prepare(model, device).dispatches)
    problems.expect_none()
    found = {
        "resource": len(model.resources),
        "dispatchable": len(model.dispatchables),
        "dispatch": dispatches,
    }
    counts = [f"{count} {_plural(name, count)}" for name, count in found.items()]
    print(f"{printable(str(path))}: {', '.join(counts)}: nothing is wrong")
    return DONE


def _read_geometry(url: str) -> Geometry:
    with open_link(url) as link:
        return Control(link).geometry()


def _plural(name: str, count: int) -> str:
    return name if count == 1 else f"{name}es" if name == "dispatch" else f"{name}s"
