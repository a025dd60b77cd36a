"""Rates of a board at its simulated pins of Ethernet. No tests here.

    PYTHONPATH=tests python -m support.boards.network_rates

measures those of the page on networks, and writes ``docs/measurements/network.json``.
"""

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from bitlane_boards import boards
from bitlane_boards.pins import CableFaults
from bitlane_boards.readback import rtl_model
from bitlane_rtl.abi import DATAGRAM_BYTES
from bitlane_sim.figures import record, write_json
from support.boards.session import connect_network, networked

BOARD = boards()["colorlight-i5"]

FIGURES = Path(__file__).parents[3] / "docs/measurements/network.json"

LINE_RATE = 125e6 * DATAGRAM_BYTES / (DATAGRAM_BYTES + 66)
"""Bytes a second of datagrams: each has 66 byte times of headers, FCS, preamble and gap."""


@dataclass(frozen=True)
class Rates:
    """Bytes a second of each way, and the seconds of single requests by their name."""

    ways: dict[str, float]
    requests: dict[str, float]


def measured(faults: CableFaults, size: int) -> Rates:
    """Return the rates of ``size`` bytes up, down and each way at once, and single requests.

    Raises AssertionError if bytes differ or a pin has an illegal value.
    """
    data = np.random.default_rng(1).integers(0, 256, size, np.uint8).tobytes()
    network = networked(rtl_model(BOARD), BOARD, faults=faults)
    half = size // 2
    with connect_network(network, BOARD.name) as link:
        seconds = [network.simulation.seconds]
        link.write(0, data)
        seconds.append(network.simulation.seconds)
        assert link.read(0, size).tobytes() == data
        seconds.append(network.simulation.seconds)
        (read,) = link.exchange([(0, data[half:])], [(half, half)])
        assert read.tobytes() == data[half:]
        seconds.append(network.simulation.seconds)
        assert link.read(0, 4).tobytes() == data[half : half + 4]
        seconds.append(network.simulation.seconds)
        assert link.read(0, 64).tobytes() == data[half : half + 64]
        seconds.append(network.simulation.seconds)
        link.write(0, data[:64])
        seconds.append(network.simulation.seconds)
    assert network.simulation.illegal == 0
    network.close()
    up, down, both, *requests = (end - begin for begin, end in pairwise(seconds))
    ways = {"up": size / up, "down": size / down, "both at once, each": half / both}
    names = ("a READ of 4 bytes", "a READ of 64 bytes", "a WRITE of 64 bytes")
    return Rates(ways, dict(zip(names, requests, strict=True)))


def main() -> None:
    """Measure 1 MiB on a good cable, and write the figures."""
    found = measured(CableFaults(), 1 << 20)
    rows = {
        "bytes": 1 << 20,
        "a gigabit's, MB/s": LINE_RATE / 1e6,
        "MB/s": {name: rate / 1e6 for name, rate in found.ways.items()},
        "share of the gigabit": {name: rate / LINE_RATE for name, rate in found.ways.items()},
        "us": {name: seconds * 1e6 for name, seconds in found.requests.items()},
    }
    write_json(FIGURES, record("network rates", rows) | {"board": BOARD.name})


if __name__ == "__main__":
    main()
