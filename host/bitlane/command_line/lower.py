"""`bitlane lower MODEL`: prints the commands of a model file, by a dry run."""

import argparse

from ..api.default import default_url
from ..driver.control import Control
from ..links.link import open_link
from ..model_file import load_model
from ..profile.disassembly import disassemble, lower_model
from .cli import DONE, Group, Subparsers
from .run import add_feature_level, feature_level


def add_lower(subparsers: Subparsers) -> None:
    """Add the subcommand `lower`."""
    parser = subparsers.add_parser(
        "lower",
        help="show the commands that a model file becomes",
        description="Print the commands that a device would get for each dispatch of a model file:"
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
    parser.set_defaults(run=_run, group=Group.USE)


def _run(arguments: argparse.Namespace) -> int:
    level = feature_level(arguments)
    model = load_model(arguments.model, level)
    with open_link(arguments.device) as link:
        geometry = Control(link).geometry()
    print(disassemble(lower_model(model, geometry, level), geometry))
    return DONE
