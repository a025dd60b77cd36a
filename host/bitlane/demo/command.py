"""`bitlane demo`: runs the parts and the model files, and checks all results."""

import argparse
import importlib.util
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import chdir
from pathlib import Path

import numpy as np

import bitlane
from bitlane import dml
from bitlane.api import Device, default_url
from bitlane.command_line import CHECK_FAILED, DONE, Group, Subparsers, whole_number
from bitlane.errors import BitlaneError
from bitlane.files import expected_instead
from bitlane.model_file import ModelFileError, Result, load_model, prepare, run
from bitlane.terminal import track

from . import digits, parity
from .metering import Meter, MeteredDevice, table


def run_examples(
    device: Device,
    models: Sequence[Path],
    output: Path,
    say: Callable[[str], object],
    lap: Callable[[], object],
) -> bool:
    """Run every model file with checks; return whether all results equal the NumPy model's.

    Files that models write go into ``output``, which exists. The results of a model are printed
    only if a check fails. ``lap`` is called after each result. A model is left out, with a line,
    if the circuit was built without its operation or lane. Raises ``ModelFileError`` for a file
    that is wrong or needs more memory than the device has, and if all are left out.
    """
    all_right = True
    left_out: list[ModelFileError] = []
    for path in models:
        results: list[Result] = []

        def note(result: Result, results: list[Result] = results) -> None:
            results.append(result)
            lap()

        with dml.Device(device.driver) as dml_device:
            try:
                prepared = prepare(load_model(path), dml_device)
            except ModelFileError as error:
                if not _lacks(error) or len(left_out) == len(models) - 1:
                    raise
                left_out.append(error)
                say(f"  {path.stem:24}{'left out':14}this device has no {error.value}")
                continue
            with chdir(output):
                right = run(prepared, note)
        all_right = all_right and right
        dispatches = len(prepared.dispatches)
        count = "1 dispatch" if dispatches == 1 else f"{dispatches} dispatches"
        say(f"  {path.stem:24}{count:14}{'identical' if right else 'DIFFERENT'}")
        if not right:
            for result in results:
                say(f"    {result}")
    return all_right


def _lacks(error: ModelFileError) -> bool:
    """Return whether the circuit was built without what a model needs."""
    cause = error.__cause__
    return isinstance(cause, dml.DmlError) and cause.hresult == "DXGI_ERROR_UNSUPPORTED"


_PARTS = ("examples", "digits", "parity")

_PACKAGES = {"examples": (), "digits": ("sklearn", "PIL"), "parity": ("sklearn", "PIL")}
"""Modules of the extra ``demo`` that each part needs."""

_EXAMPLES = (Path(__file__).parent / "model_files", Path(__file__).parents[3] / "examples")
"""Folders of the model files: in an installed wheel, and in a checkout."""

Print = Callable[[str], None]


def add_demo(subparsers: Subparsers) -> None:
    """Add the subcommand `demo`."""
    parser = subparsers.add_parser(
        "demo",
        help="run the examples, a digit search and a parity rebuild on real input",
        description="Runs every example model, searches handwritten digits by Hamming distance, and"
        " rebuilds a photo from disks with parity; the device computes, NumPy checks.",
        epilog="exit codes: 0 all checks passed, 1 one failed, 2 bad input or no usable device",
    )
    parser.add_argument(
        "parts",
        nargs="*",
        metavar="PART",
        help=f"of {', '.join(_PARTS)}; default: all, in this order",
    )
    parser.add_argument(
        "--device", default=default_url(), metavar="URL", help="default: %(default)s"
    )
    parser.add_argument(
        "--queries",
        type=whole_number,
        metavar="N",
        help=f"images to search for, 1 to {digits.HELD_OUT}; default: all, or"
        f" {digits.SLOW_HELD_OUT} on a simulation that is not compiled",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path("out"),
        metavar="DIR",
        help="where the pictures go; default: %(default)s",
    )
    parser.add_argument(
        "--examples",
        type=Path,
        default=next((each for each in _EXAMPLES if each.is_dir()), _EXAMPLES[0]),
        metavar="DIR",
        help="folder of model files; default: those that came with bitlane",
    )
    parser.set_defaults(run=_run, group=Group.USE, extra="demo")


def _run(arguments: argparse.Namespace) -> int:
    parts = arguments.parts or list(_PARTS)
    unknown = [part for part in parts if part not in _PARTS]
    if unknown:
        raise BitlaneError(f"demo: no part {unknown[0]!r}; expected {', '.join(_PARTS)}")
    if arguments.queries is not None and not 1 <= arguments.queries <= digits.HELD_OUT:
        raise BitlaneError(
            f"--queries {arguments.queries}: expected 1 to {digits.HELD_OUT} images to search for"
        )
    models = sorted(arguments.examples.resolve().glob("*.json"))
    if not models:
        raise BitlaneError(
            f"--examples {arguments.examples}: no model files (*.json) there;"
            " expected a folder of them, like bitlane's own examples"
        )
    if arguments.output.exists() and not arguments.output.is_dir():
        raise BitlaneError(
            f"--output {arguments.output}: is not a folder; expected one, or none yet"
        )
    wanted = expected_instead(arguments.output / "photo.png")
    if wanted is not None:
        raise BitlaneError(f"--output {arguments.output}: expected {wanted}")
    _expect_packages(parts)
    print(f"Opening {arguments.device}")
    sys.stdout.flush()
    with bitlane.open(arguments.device) as device:
        right = show(device, models, arguments.output, parts=parts, queries=arguments.queries)
        return DONE if right else CHECK_FAILED


def _expect_packages(parts: Collection[str]) -> None:
    """Raise ``ModuleNotFoundError``, which the command line explains, before anything runs."""
    for part in parts:
        for name in _PACKAGES[part]:
            if importlib.util.find_spec(name) is None:
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def _verdict(right: bool) -> str:
    return "identical" if right else "DIFFERENT"


def show(
    device: Device,
    models: list[Path],
    output: Path,
    say: Print = print,
    *,
    parts: Collection[str] = _PARTS,
    queries: int | None = None,
) -> bool:
    """Run ``parts`` on ``device`` and write pictures into ``output``; return whether all passed.

    A slow device gets part of the photo, and few queries unless ``queries`` is their number.
    """
    slow = device.driver.link.slow
    step = parity.SLOW_STEP if slow else 1
    if queries is None:
        queries = digits.SLOW_HELD_OUT if slow else digits.HELD_OUT
    output.mkdir(parents=True, exist_ok=True)
    meter = Meter(device.driver.read_register)
    metered = MeteredDevice(device, meter)
    say(f"bitlane {bitlane.__version__} on {device.description}")
    if slow:
        say(
            f"Reduced, because this simulation is slow: {queries} of {digits.HELD_OUT} queries,"
            f" one pixel in {step * step} of the photo"
        )
    results = []
    if "examples" in parts:
        with meter.part("examples"):
            say("")
            say("Examples: model files, every dispatch compared with the NumPy model")
            results.append(run_examples(device, models, output, say, meter.lap))
    if "digits" in parts:
        with meter.part("digits"):
            results.append(_digits(metered, output, say, queries))
    if "parity" in parts:
        with meter.part("parity"):
            results.append(_parity(metered, output, say, step))
    say("")
    if not device.driver.geometry.counters:
        say("Summary: this circuit was built without counters, so only seconds count")
    elif device.driver.link.predicted:
        say("Summary: predicted counters; beats a cycle on the busiest port, 1 at most")
    else:
        say("Summary: the circuit's own counters; beats a cycle on the busiest port, 1 at most")
    for line in table([*meter.costs, meter.total], device.driver.geometry.data_bytes):
        say(line)
    say(f"  computed by {device.description}")
    say("All checks passed." if all(results) else "A CHECK FAILED: see above.")
    return all(results)


def _digits(device: MeteredDevice, output: Path, say: Print, queries: int) -> bool:
    from . import picture

    images = digits.load()
    database = len(images.rows) - digits.HELD_OUT
    say("")
    say(f"Digits: {queries} held-out images against {database:,}, 64 bits each")

    def bar(calls: range) -> Iterator[int]:
        return track(calls, "digits")

    found = digits.search(device, images, bar, queries)
    total, wrong = queries * database, found.wrong
    agreement = "identical to NumPy's" if wrong == 0 else f"{wrong:,} DIFFER from NumPy's"
    say(f"  {total:,} distances by device.search; the {digits.NEIGHBOURS} nearest: {agreement}")
    correct = int(np.count_nonzero(found.correct))
    share = f"{correct} of {queries} ({correct / queries:.1%})"
    say(f"  nearest neighbour of the right label: {share}")
    path = output / "digits.png"
    picture.save(picture.digits_picture(found), path)
    say(f"  wrote {path}")
    return wrong == 0


def _parity(device: MeteredDevice, output: Path, say: Print, step: int) -> bool:
    from . import picture

    photo = parity.load(step)
    # About as many stripes of a part of the photo as of the whole.
    disks = parity.stripe(device, photo, parity.UNIT // step**2)
    count, stripes, unit = disks.shape
    say("")
    say(
        f"Parity: china.jpg, {photo.size:,} bytes in {stripes} stripes over {count} disks,"
        " parity on each disk in turn"
    )
    expected = np.bitwise_xor.reduce(parity.units(photo, unit), axis=1)
    computed = np.stack([disks[parity.parity_disk(row), row] for row in range(stripes)])
    results = [np.array_equal(computed, expected)]
    say(f"  parity, {computed.size:,} bytes: {_verdict(results[0])} to NumPy's")
    path = output / "photo.png"
    for lost in range(count):
        damaged = disks.copy()
        damaged[lost] = 0
        before = parity.join(damaged, photo.size).reshape(photo.shape)
        damaged[lost] = parity.rebuild(device, damaged, lost)
        after = parity.join(damaged, photo.size).reshape(photo.shape)
        right = np.array_equal(damaged, disks) and np.array_equal(after, photo)
        results.append(right)
        say(f"  disk {lost} lost, {stripes * unit:,} bytes rebuilt: {_verdict(right)}")
        if lost == count // 2:
            picture.save(picture.photo_picture(before, after, lost, step), path)
    say(f"  wrote {path} (photo: danielbuechele, CC BY 2.0)")
    return all(results)
