"""`bitlane validate URL`: checks a device step by step, with one line of result each."""

import argparse
from typing import Final

from ..driver import Driver
from ..errors import BitlaneError
from ..files import parse_size
from ..links import open_link
from ..validate import Session, validate
from .cli import CHECK_FAILED, DONE, Group, Subparsers, whole_number

_TIMEOUT: Final = 30.0
"""Seconds that a command may take; Amaranth's own simulator is slow."""


def add_validate(subparsers: Subparsers) -> None:
    """Add the subcommand `validate`."""
    parser = subparsers.add_parser(
        "validate",
        help="check a device: link, memory, every operator, errors, bandwidth",
        description="Checks link and identity, known answers, the memory, every operation that the"
        " circuit has against the NumPy model, DMA with guard bytes, error recovery, and bandwidth."
        " A line for each; the device's memory is overwritten. May be repeated at any time.",
        epilog="exit codes: 0 all passed, 1 a check failed, 2 bad input or no usable device",
    )
    parser.add_argument(
        "url", metavar="URL", help="the device: sim, serial:/dev/ttyUSB1, udp://192.168.1.50"
    )
    parser.add_argument(
        "--seed",
        type=whole_number,
        default=1,
        metavar="N",
        help="of all that is random (default 1)",
    )
    parser.add_argument(
        "--quick", action="store_true", help="fewer layouts, and 16 KiB of the memory"
    )
    parser.add_argument(
        "--memory",
        type=_size,
        metavar="SIZE",
        help="bytes of memory to march over, with KiB, MiB or GiB (default: all of a board's, 64MiB"
        " of a simulator's, 16KiB if --quick)",
    )
    parser.set_defaults(run=_run, group=Group.MEASURE)


def _size(text: str) -> int:
    try:
        size = parse_size(text)
    except ValueError:
        size = 0
    if size < 8:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a size; expected 8 bytes or more, like 4096, 64KiB, 1MiB"
        )
    return size


def _run(arguments: argparse.Namespace) -> int:
    if arguments.seed < 0:
        raise BitlaneError(f"--seed: {arguments.seed}; expected 0 or more")
    with open_link(arguments.url) as link, Driver(link, timeout=_TIMEOUT) as driver:
        print(f"Validating '{link.description}', seed {arguments.seed}", flush=True)
        session = Session(
            driver,
            seed=arguments.seed,
            quick=arguments.quick,
            memory_bytes=arguments.memory,
        )
        passed = validate(session, lambda line: print(line, flush=True))
    return DONE if passed else CHECK_FAILED
