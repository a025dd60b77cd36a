"""The recording of `numpy`: when each command would start and retire, beside a circuit's."""

import numpy as np
import pytest

from bitlane.driver.commands import Command, Walk
from bitlane.driver.driver import Driver
from bitlane.driver.dry_run import RecordingDriver
from bitlane.errors import LinkError
from bitlane.links.link import open_link
from bitlane.profile.activity import RecordedCommand, busy_spans, ports, recorded_commands
from bitlane_rtl.abi import Lane, Op


def run(driver: Driver) -> None:
    """Run two jobs, of one command and of three."""
    base = driver.geometry.memory_base
    driver.write(base, np.arange(1024, dtype=np.uint8))

    def walk(offset: int, run: int) -> Walk:
        return Walk(base + offset, base + offset + run - 1)

    commands = [
        Command(op, Lane.BITS_8, Lane.BITS_8, run, walk(0, run), walk(256, run), walk(1024, run))
        for op, run in ((Op.XOR, 250), (Op.AND, 64), (Op.OR, 33))
    ]
    driver.run(commands[:1])
    driver.run(commands)


def recorded(url: str) -> list[RecordedCommand]:
    with open_link(url) as link, RecordingDriver(link) as driver:
        run(driver)
        recording = link.recording
        assert recording is not None
        return recorded_commands(recording)


def test_the_spans_of_commands_add_up_to_the_busy_cycles() -> None:
    with open_link("numpy?memory=64KiB&record=100") as link, Driver(link) as driver:
        run(driver)
        recording = link.recording
        assert recording is not None
        assert not recording.cut
        assert len(recorded_commands(recording)) == 4
        spans = busy_spans(recording)
        assert sum(end - first for first, end in spans) == driver.read_register("BUSY_CYCLES")
        assert ports(recording) == [], "no bus carries anything"


def test_a_job_that_does_not_fit_is_left_out_and_told() -> None:
    with open_link("numpy?memory=64KiB&record=9") as link, Driver(link) as driver:
        run(driver)
        recording = link.recording
        assert recording is not None
        assert recording.cut
        assert len(recorded_commands(recording)) == 1, "3 entries; the next job has 7"


def test_nothing_is_recorded_unless_asked_for() -> None:
    with open_link("numpy") as link:
        assert link.recording is None
    with pytest.raises(LinkError, match="option record: -1; expected 0 or more entries"):
        open_link("numpy?board=ulx3s&record=-1")


@pytest.mark.slow
def test_commands_start_and_retire_as_on_a_circuit() -> None:
    options = "memory=64KiB&loops=2&record=1000"
    model, circuit = recorded(f"numpy?{options}"), recorded(f"sim:pysim?{options}")
    for mine, other in zip(model, circuit, strict=True):
        assert mine.started - mine.submitted == other.started - other.submitted
        assert mine.end - mine.submitted == other.end - other.submitted
