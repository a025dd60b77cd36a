"""Run a binary network on devices, compare all values, and write the page of its figures.

    PYTHONPATH=tests python -m support.host.binary_layers

trains the network, measures, and writes ``docs/measurements/binary_layers.json`` and the page from
it, in a minute.
"""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from time import perf_counter
from typing import Any, Final

import numpy as np

import bitlane
from bitlane.links import duration
from bitlane.model_file import busy_cycles
from bitlane.onnx import prepare
from bitlane_sim.figures import record, replace, write_json
from support.host.onnx_binary import Network, as_where, digits, train

ROOT = Path(__file__).parents[3]
FIGURES = ROOT / "docs/measurements/binary_layers.json"
PAGE = FIGURES.with_suffix(".md")

DEVICES: Final = (("numpy", 500), ("numpy?board=colorlight-i9", 500), ("sim", 20))
"""URLs, and the number of digits that each device reads."""

_TRAINED: Final = 1297
"""The first digits train the network; the devices read those after them."""

_HEAD = """\
# Measurements: binary layers

<!-- Written by `python -m support.host.binary_layers` from binary_layers.json. Do not edit. -->

A network with layers of 64, 256, 256 and 10, all weights and activations 1 or -1, reads digits of
scikit-learn that it was not trained with. Its three products are
[counted on the device](../models.md#binary-layers), `rest="reference"` compares sums with
thresholds. *Right* is the share of digits that the device reads as they are labelled, beside the
share of a model in NumPy's integers. *Differ* counts the values that differ from this model: the
scores, and the truth values that each layer reads where the ONNX model returns them. The seconds
are those of the first run, which packs and sends the weights. The [glossary](../glossary.md)
explains the words.

Nothing here was run on hardware: cycles of `sim` are those of the simulated circuit, other cycles
are predicted, as is the time of a board: of its circuit, and of the line to it.
"""

_COLUMNS = ("Device", "Signs", "Digits", "Right", "in NumPy", "Values", "Differ", "Seconds")


def trained() -> Network:
    """Return the network that the page is about."""
    rows, labels = digits()
    return train(rows[:_TRAINED], labels[:_TRAINED], [256, 256, 10], 200)


def run(network: Network, url: str, count: int, *, bipolar: bool) -> dict[str, Any]:
    """Let the device ``url`` read ``count`` digits, and return the figures of the page.

    ``bipolar``: signs as QONNX writes them, else as ONNX's own operators.
    """
    rows, labels = digits()
    test, wanted = rows[_TRAINED : _TRAINED + count], labels[_TRAINED : _TRAINED + count]
    *layers, scores = network.activations(test)
    pixels = np.where(test, 12, 3).astype(np.float32)
    with bitlane.open(url) as device:
        prepared = prepare(as_where(network, bipolar=bipolar), device, rest="reference")
        cycles = busy_cycles(device.driver)
        assert cycles is not None
        start = perf_counter()
        got = prepared.run([pixels])
        seconds, taken = perf_counter() - start, cycles()
        predicted = device.driver.link.prediction
    expected = [scores] if bipolar else [test, *layers, scores]
    pairs = list(zip(got, expected, strict=True))
    assert all(x.shape == y.shape for x, y in pairs)
    return {
        "device": url,
        "signs": "BipolarQuant" if bipolar else "Where",
        "digits": count,
        "right": int((got[-1].argmax(1) == wanted).sum()),
        "right_in_numpy": int((scores.argmax(1) == wanted).sum()),
        "values": sum(x.size for x, _ in pairs),
        "differ": sum(int((x != y).sum()) for x, y in pairs),
        "seconds": seconds,
        "cycles": taken,
        "predicted": predicted and predicted.data,
    }


def text(found: Mapping[str, Any]) -> str:
    """Return the page of the figures ``found``."""
    versions = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
    measured = f"Measured {found['date']} at commit {found['commit']} on {found['machine']};"
    table = [[*_COLUMNS, "Cycles", "Circuit", "Line"], ["---"] * 2 + ["---:"] * 9]
    table += [_cells(row) for row in found["rows"]]
    lines = [f"| {' | '.join(cells)} |" for cells in table]
    return "\n".join([_HEAD, measured, f"{versions}.", "", *lines, ""])


def _cells(row: Mapping[str, Any]) -> list[str]:
    board = row["predicted"]
    return [
        f"`{row['device']}`",
        f"`{row['signs']}`",
        str(row["digits"]),
        f"{row['right'] / row['digits']:.1%}",
        f"{row['right_in_numpy'] / row['digits']:.1%}",
        f"{row['values']:,}",
        str(row["differ"]),
        f"{row['seconds']:.3f}",
        f"{row['cycles']:,}",
        *(duration(board[part]) if board else "-" for part in ("circuit_seconds", "line_seconds")),
    ]


def write() -> None:
    """Write the page from the file of figures."""
    page = text(json.loads(FIGURES.read_text(encoding="utf-8")))
    replace(PAGE, lambda file: file.write_text(page, encoding="utf-8"))


def main() -> None:
    """Measure, and write the figures and the page."""
    network = trained()
    rows = [
        run(network, url, count, bipolar=bipolar)
        for url, count in DEVICES
        for bipolar in (False, True)
    ]
    git = ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(git, capture_output=True, text=True, check=True, timeout=60).stdout
    packages = ("numpy", "onnx", "scikit-learn")
    found = record("binary layers", rows, packages) | {"commit": commit.strip()}
    write_json(FIGURES, found)
    write()


if __name__ == "__main__":
    main()
