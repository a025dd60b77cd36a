"""`bitlane run MODEL`: executes a model file of DxDispatch and prints what DxDispatch prints."""

import argparse
from pathlib import Path
from urllib.parse import quote

from .. import dml
from ..default import default_url
from ..driver.driver import Driver
from ..errors import BitlaneError
from ..links.link import open_link
from ..model_file import load_model, prepare, run
from .cli import CHECK_FAILED, DONE, Subparsers

__all__ = ["add_run", "run_model"]

_LEVELS = {str(level): level for level in dml.FeatureLevel}


def add_run(subparsers: Subparsers) -> None:
    """Add the subcommand `run`."""
    parser = subparsers.add_parser(
        "run",
        help="run a model file of DxDispatch",
        description="Execute a model file (the JSON of Microsoft's DxDispatch) of DirectML's"
        " element-wise bit operators: its dispatch, print and writeFile commands in order."
        " Everything in it is checked before anything is executed. Files that it writes are"
        " relative to the current folder.",
        epilog="exit codes: 0 done, 1 a check failed, 2 bad input or no usable device",
    )
    parser.add_argument("model", metavar="MODEL", help="the model file")
    parser.add_argument(
        "--device",
        default=default_url(),
        metavar="URL",
        help="where to run it: sim, sim:pysim, sim:compiled, serial:/dev/ttyUSB1 (default:"
        " BITLANE_DEVICE, now %(default)s)",
    )
    parser.add_argument(
        "--check",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="compare every dispatch's output buffer with the NumPy model (the default)",
    )
    parser.add_argument(
        "--vcd", metavar="FILE", help="write the waveforms of a simulated device to FILE"
    )
    parser.add_argument(
        "--feature-level",
        choices=_LEVELS,
        default="4_1",
        metavar="LEVEL",
        help=f"DirectML's feature level: {', '.join(_LEVELS)} (default 4_1)",
    )
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    level = _LEVELS[arguments.feature_level]
    url = arguments.device if arguments.vcd is None else _with_vcd(arguments.device, arguments.vcd)
    return run_model(arguments.model, url, check=arguments.check, level=level)


def run_model(
    path: str | Path,
    url: str,
    *,
    check: bool = True,
    level: dml.FeatureLevel = dml.FeatureLevel.LEVEL_4_1,
) -> int:
    """Run the model file ``path`` on the device ``url``; returns the exit code.

    Raises ``ModelFileError`` before the device is opened if the file is wrong by itself, and
    before anything is executed if the device cannot do what it asks.
    """
    model = load_model(path, level)
    with (
        open_link(url) as link,
        Driver(link) as driver,
        dml.Device(driver, level) as device,
    ):
        prepared = prepare(model, device)
        print(f"Running on '{link.description}'", flush=True)
        passed = run(
            prepared,
            print,
            check=check,
            read_cycles=(
                (lambda: driver.read_register("BUSY_CYCLES")) if driver.geometry.counters else None
            ),
        )
    return DONE if passed else CHECK_FAILED


def _with_vcd(url: str, file: str) -> str:
    """``url`` with the option ``vcd=FILE``; only the simulator's URLs have it."""
    if url.partition("?")[0].partition(":")[0] != "sim":
        raise BitlaneError(f"--vcd: {url} is no simulated device; expected --device sim")
    joint = "&" if "?" in url else "?"
    return f"{url}{joint}vcd={quote(file, errors='surrogateescape')}"
