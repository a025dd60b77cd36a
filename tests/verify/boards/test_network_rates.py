"""The rates of a board at its simulated pins of Ethernet: of the line, and of its memory."""

from collections.abc import Callable

import numpy as np
import pytest

from bitlane import Device
from bitlane.driver import Driver
from bitlane.model_file.results import busy_cycles
from bitlane_boards.pins import CableFaults
from bitlane_boards.readback import rtl_model
from support.boards.network_rates import BOARD, LINE_RATE, measured
from support.boards.session import SILENCE, connect_network, networked
from support.verdicts import AT_THE_PINS

pytestmark = [
    pytest.mark.slow,
    AT_THE_PINS,
    pytest.mark.judges("bitlane.model_file", "bitlane_sim.figures"),
]


@pytest.mark.parametrize(
    ("faults", "size", "shares"),
    [
        (CableFaults(), 256 << 10, (0.95, 0.95, 0.9)),
        (
            CableFaults(lose=0.02, double=0.02, reorder=0.02, damage=0.02),
            512 << 10,
            (0.25, 0.2, 0.15),
        ),
    ],
    ids=["good cable", "bad cable"],
)
def test_bytes_come_back_at_the_rate_of_the_line(
    faults: CableFaults,
    size: int,
    shares: tuple[float, float, float],
    record_property: Callable[[str, object], None],
) -> None:
    """``shares``: least rates up, down and each way at once, in parts of the line's."""
    rates = measured(faults, size).ways
    for (name, rate), least in zip(rates.items(), shares, strict=True):
        shown = f"{rate / 1e6:.1f} MB/s, {rate / LINE_RATE:.3f} of the line"
        record_property("report", f"network at the pins, {size >> 10} KiB {name}: {shown}")
        assert rate >= least * LINE_RATE


def test_hamming_of_resident_rows(record_property: Callable[[str, object], None]) -> None:
    """Cycles are exact. 64 MiB are computed from them: the board has 8 MiB."""
    network = networked(rtl_model(BOARD), BOARD)
    with connect_network(network, BOARD.name) as link, Driver(link, timeout=SILENCE) as driver:
        read_cycles = busy_cycles(driver)
        assert read_cycles is not None
        with Device(driver) as device:
            for width, least in ((64, 1.35), (1024, 1.91)):
                x = np.random.default_rng(1).integers(
                    0, 256, ((64 << 10) // width, width), np.uint8
                )
                rows, query = device.asarray(x), device.asarray(x[0])
                before = read_cycles()
                distances = device.hamming(rows, query).get()
                share = x.size / (read_cycles() - before)
                assert (distances == np.bitwise_count(x ^ x[0]).sum(axis=1)).all()
                seconds = (64 << 20) / share / BOARD.clock_hz
                record_property(
                    "report",
                    f"hamming of resident rows of {width} bytes: {share:.3f} bytes a cycle;"
                    f" 64 MiB in {seconds:.2f} s, computed",
                )
                assert share > least
    network.close()
