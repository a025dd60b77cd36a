"""`bitlane lower MODEL`: prints the commands of a model file, by a dry run.

`lower_onnx` prints those of models in ONNX's format.
"""

import argparse

from ..api import default_url
from ..driver import Control
from ..errors import BitlaneError
from ..links import open_link
from ..model_file import load_model
from ..profile import disassemble, lower_model
from .cli import DONE, Group, Subparsers
from .run import (
    add_feature_level,
    add_rest,
    expect_no_level,
    expect_no_rest,
    feature_level,
    is_onnx,
)


def add_lower(subparsers: Subparsers) -> None:
    """Add the subcommand `lower`."""
    parser = subparsers.add_parser(
        "lower",
        help="show the commands that a model file, or an ONNX model, becomes",
        description="Print the commands that a device would get for each dispatch of a model file,"
        " or for each group of MODEL.onnx:"
        " operation, lanes, run and loops, and how each stream walks through memory. The device"
        " is identified only; nothing is executed on it, and nothing written to it.",
        epilog="exit codes: 0 shown, 2 bad input or no usable device",
    )
    parser.add_argument("model", metavar="MODEL", help="the model file")
    parser.add_argument(
        "--device",
        default=default_url(),
        metavar="URL",
        help="for which device: sim, serial:/dev/ttyUSB1, udp://192.168.1.50 (default:"
        " BITLANE_DEVICE, now %(default)s)",
    )
    add_feature_level(parser)
    add_rest(parser)
    parser.add_argument(
        "--length",
        action="append",
        default=[],
        metavar="NAME=LENGTH",
        help="of MODEL.onnx: the length of the axes that the model names so; once for each name",
    )
    parser.set_defaults(run=_run, group=Group.USE)


def _run(arguments: argparse.Namespace) -> int:
    path = arguments.model
    if is_onnx(path):
        # What it needs is an extra.
        from .lower_onnx import lower_onnx

        expect_no_level(path, arguments)
        return lower_onnx(path, arguments.device, arguments.rest, arguments.length)
    expect_no_rest(path, arguments)
    if arguments.length:
        raise BitlaneError(f"--length: {path} is not an ONNX model; expected MODEL.onnx")
    level = feature_level(arguments)
    model = load_model(path, level)
    with open_link(arguments.device) as link:
        geometry = Control(link).geometry()
    print(disassemble(lower_model(model, geometry, level), geometry))
    return DONE
