"""`bitlane run MODEL`: executes a model file of DxDispatch and prints the lines of DxDispatch.

`run_onnx` runs models in ONNX's format.
"""

import argparse
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os.path import realpath
from pathlib import Path
from typing import Final

from .. import dml
from ..api import default_url
from ..driver import Driver, RecordingDriver
from ..errors import BitlaneError
from ..links import DeviceUrl, Link, open_link
from ..model_file import Result, busy_cycles, load_model, prepare, run
from ..profile import RunProfile
from .cli import CHECK_FAILED, DONE, Group, Subparsers, whole_number

_LEVELS = {str(level): level for level in dml.FeatureLevel}

_DEFAULT_LEVEL: Final = "4_1"


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options of a run: comparing results, repeating dispatches, and printing JSON."""

    check: bool = True
    iterations: int = 1
    json: bool = False


_DEFAULTS: Final = RunOptions()


def add_run(subparsers: Subparsers) -> None:
    """Add the subcommand `run`."""
    parser = subparsers.add_parser(
        "run",
        help="run a model file of DxDispatch, or an ONNX model",
        description="Execute a model file (the JSON of Microsoft's DxDispatch) of DirectML's"
        " element-wise bit operators: its dispatch, print and writeFile commands in order. Or"
        " execute a model of ONNX, MODEL.onnx, on arrays from files; --rest names what computes the"
        " operators that the device lacks."
        " Everything in it is checked before anything is executed. Files that it writes are"
        " relative to the current folder.",
        epilog="exit codes: 0 done, 1 a check failed, 2 bad input or no usable device",
    )
    parser.add_argument("model", metavar="MODEL", help="the model file")
    parser.add_argument(
        "--device",
        default=default_url(),
        metavar="URL",
        help="where to run it: sim, sim:pysim, serial:/dev/ttyUSB1, udp://192.168.1.50"
        " (default: BITLANE_DEVICE, now %(default)s)",
    )
    parser.add_argument(
        "--check",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="compare every dispatch's output buffer with the NumPy model (the default)",
    )
    _add_watch(parser)
    parser.add_argument(
        "--iterations",
        type=whole_number,
        default=1,
        metavar="N",
        help="execute each dispatch N times, and tell the medians (default 1)",
    )
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object in place of lines of text"
    )
    add_feature_level(parser)
    for option, what in (("--input", "an input is read from"), ("--output", "an output goes to")):
        parser.add_argument(
            option,
            action="append",
            default=[],
            metavar="NAME=FILE.npy",
            help=f"of MODEL.onnx: the file that {what}; once for each",
        )
    add_rest(parser)
    parser.set_defaults(run=_run, group=Group.USE)


def _add_watch(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--vcd", metavar="FILE", help="write the waveforms of a simulated device to FILE"
    )
    parser.add_argument(
        "--trace",
        type=Path,
        metavar="FILE.json",
        help="write what a simulated device did in each cycle, or when commands would start and"
        " retire, as numpy predicts, for Perfetto",
    )
    parser.add_argument(
        "--report",
        type=Path,
        metavar="FILE.html",
        help="write a page on what a simulated device did: where its cycles went, and why; or on"
        " what numpy predicts of each command",
    )


def add_feature_level(parser: argparse.ArgumentParser) -> None:
    """Add the option `--feature-level`."""
    parser.add_argument(
        "--feature-level",
        choices=_LEVELS,
        metavar="LEVEL",
        help=f"DirectML's feature level: {', '.join(_LEVELS)} (default {_DEFAULT_LEVEL})",
    )


def add_rest(parser: argparse.ArgumentParser) -> None:
    """Add the option `--rest`."""
    parser.add_argument(
        "--rest",
        metavar="BACKEND",
        help="of MODEL.onnx: what computes the nodes that the device lacks, onnxruntime or"
        " reference; without it they are refused",
    )


def is_onnx(path: str) -> bool:
    """Return whether ``path`` names a model of ONNX."""
    return Path(path).suffix.lower() == ".onnx"


def expect_no_level(path: str, arguments: argparse.Namespace) -> None:
    """Raise ``BitlaneError`` for `--feature-level` beside the ONNX model ``path``."""
    if arguments.feature_level is not None:
        raise BitlaneError(f"--feature-level: {path} is an ONNX model; expected a model file")


def expect_no_rest(path: str, arguments: argparse.Namespace) -> None:
    """Raise ``BitlaneError`` for `--rest` beside the model file ``path``."""
    if arguments.rest is not None:
        raise BitlaneError(f"--rest: {path} is not an ONNX model; expected MODEL.onnx")


def feature_level(arguments: argparse.Namespace) -> dml.FeatureLevel:
    """Return the level of the option `--feature-level`."""
    return _LEVELS[arguments.feature_level or _DEFAULT_LEVEL]


def _run(arguments: argparse.Namespace) -> int:
    url = arguments.device
    if arguments.vcd is not None:
        parsed = DeviceUrl.parse(url)
        parsed.expect_simulated("--vcd")
        url = parsed.with_option("vcd", arguments.vcd)
    path, inputs, outputs = arguments.model, arguments.input, arguments.output
    _expect_distinct(path, arguments)
    if is_onnx(path):
        # What it needs is an extra.
        from .run_onnx import run_onnx

        expect_no_level(path, arguments)
        for option, given in (
            ("--trace", arguments.trace),
            ("--report", arguments.report),
            ("--json", arguments.json),
            ("--iterations", arguments.iterations != 1),
        ):
            if given:
                raise BitlaneError(f"{option}: {path} is an ONNX model; expected a model file")
        return run_onnx(path, url, inputs, outputs, rest=arguments.rest, check=arguments.check)
    expect_no_rest(path, arguments)
    if inputs or outputs:
        raise BitlaneError(f"--input, --output: {path} is not an ONNX model; expected MODEL.onnx")
    if arguments.iterations < 1:
        raise BitlaneError(f"--iterations: {arguments.iterations}; expected 1 or more")
    if (arguments.trace or arguments.report) and arguments.iterations > 1:
        option = "--trace" if arguments.trace else "--report"
        raise BitlaneError(f"{option}: shows each dispatch once; expected --iterations 1")
    options = RunOptions(arguments.check, arguments.iterations, arguments.json)
    profile = None
    if arguments.trace or arguments.report:
        profile = RunProfile(arguments.trace, arguments.report)
    return run_model(path, url, options=options, level=feature_level(arguments), profile=profile)


def _expect_distinct(model: str, arguments: argparse.Namespace) -> None:
    """Raise ``BitlaneError`` if two of the files to be written are one, or one is the model."""
    taken = {realpath(model): "MODEL"}
    for option in ("vcd", "trace", "report"):
        file = getattr(arguments, option)
        if file is not None:
            other = taken.setdefault(realpath(file), f"--{option}")
            if other != f"--{option}":
                raise BitlaneError(f"--{option}: {file} is {other}'s; expected another file")


def run_model(
    path: str | Path,
    url: str,
    *,
    options: RunOptions = _DEFAULTS,
    level: dml.FeatureLevel = dml.FeatureLevel.LEVEL_4_1,
    profile: RunProfile | None = None,
) -> int:
    """Run the model file ``path`` on the device ``url``; return the exit code.

    The files of ``profile`` are also written if the run fails.

    Raises ``ModelFileError`` before the device is opened if the file is wrong by itself, and
    before anything is executed if the device cannot run it.
    """
    model = load_model(path, level)
    with _open(url, profile, model.file) as driver, dml.Device(driver, level) as device:
        prepared = prepare(model, device)
        if not options.json:
            print(f"Running on '{driver.link.description}'", flush=True)
        results: list[Result] = []
        passed = run(
            prepared,
            results.append if options.json else print,
            check=options.check,
            read_cycles=busy_cycles(driver),
            iterations=options.iterations,
        )
        if options.json:
            print(_as_json(driver.link, passed, results))
        elif predicted := driver.link.prediction:
            print(predicted)
    return DONE if passed else CHECK_FAILED


@contextmanager
def _open(url: str, profile: RunProfile | None, model: str) -> Iterator[Driver]:
    """Open the device ``url``; with a ``profile`` write its files when the block ends."""
    if profile is None:
        with open_link(url) as link, Driver(link) as driver:
            yield driver
    else:
        with (
            open_link(profile.recording_url(url)) as link,
            RecordingDriver(link) as driver,
            profile.written(driver, model),
        ):
            yield driver


def _as_json(link: Link, passed: bool, results: Sequence[Result]) -> str:
    """Return all results by kind, in their order, as one JSON object."""
    found: dict[str, object] = {"device": link.description, "passed": passed}
    if link.prediction:
        found["predicted"] = link.prediction.data
    for kind in ("dispatches", "checks", "resources", "files"):
        found[kind] = [each.data for each in results if each.kind == kind]
    return json.dumps(found, indent=2)
