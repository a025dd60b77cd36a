"""Recording drivers: commands under their labels, and a dry run that executes nothing."""

from bitlane.driver.commands import Command, Walk, encode
from bitlane.driver.control import Control
from bitlane.driver.dry_run import LARGEST, DryRunDriver, LabelledCommands, RecordingDriver
from bitlane_rtl.abi import CONTROL_BASE, MAX_LOOPS, Lane, Op
from support.host.model_driver import NotingLink


def command(op: Op, base: int = 0x4000_0000) -> Command:
    a, y = Walk(base, base + 7), Walk(base + 64, base + 71)
    return Command(op, Lane.BITS_8, Lane.BITS_8, run=8, a=a, b=None, y=y, fence=True)


NOT, COPY = command(Op.NOT), command(Op.COPY)


def test_commands_are_recorded_under_their_labels() -> None:
    """Neighbours without a label are one group; of one label they stay apart."""
    with DryRunDriver(LARGEST) as driver:
        driver.run([COPY])
        driver.run_labelled([("", [NOT]), ("empty", []), ("one", [NOT, COPY]), ("one", [NOT])])
        driver.run([COPY, encode(NOT)])
        assert driver.recorded == [
            LabelledCommands("", [COPY, NOT]),
            LabelledCommands("one", [NOT, COPY]),
            LabelledCommands("one", [NOT]),
            LabelledCommands("", [COPY]),
        ]
        assert driver.commands == [COPY, NOT, NOT, COPY, NOT, COPY]


def test_a_recording_driver_executes_what_it_records() -> None:
    link = NotingLink()
    with RecordingDriver(link) as driver:
        driver.run_labelled([("first", iter([NOT])), ("second", iter([COPY]))])
        (data,) = driver.run([NOT], reads=[(0x4000_0040, 8)])
        assert [group.label for group in driver.recorded] == ["first", "second", ""]
    assert [call for call in link.calls if call.isupper()] == ["NOT", "COPY", "NOT"]
    assert len(data) == 8


def test_a_dry_run_drops_writes_and_reads_zeros() -> None:
    geometry = Control(NotingLink(loops=2)).geometry()
    with DryRunDriver(geometry) as driver:
        assert driver.geometry == geometry
        allocation = driver.allocate(64)
        assert allocation.address == geometry.memory_base
        driver.write(allocation.address, b"\xff" * 64)
        assert driver.read(allocation.address, 64).tolist() == [0] * 64
        (data,) = driver.run([COPY], reads=[(allocation.address, 8)])
        assert data.tolist() == [0] * 8
        driver.free(allocation)
    assert driver.closed


def test_the_largest_circuit_has_all_addresses_and_operations() -> None:
    assert LARGEST.memory_bytes == CONTROL_BASE
    assert (LARGEST.data_bytes, LARGEST.loops, LARGEST.slots) == (8, MAX_LOOPS, 32)
    assert (LARGEST.length_bits, LARGEST.count_bits) == (32, 32)
    assert LARGEST.ops == frozenset(Op) - {Op.SEARCH}
