"""Command records have the words of `abi`; recording drivers have them under their labels."""

from functools import reduce
from operator import xor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bitlane.driver import (
    LARGEST_GEOMETRY,
    Command,
    Control,
    DryRunDriver,
    LabelledCommands,
    RecordingDriver,
    Walk,
    encode,
)
from bitlane_rtl.abi import (
    CONTROL_BASE,
    MAX_LOOPS,
    RECORD,
    RECORD_SEAL,
    Lane,
    Mode,
    Op,
    record_words,
    seal,
)
from support.host.model_link import NotingLink

DENSE = Command(Op.NOT, Lane.BITS_8, Lane.BITS_8, 64, Walk(0x1001, 0x1040), None, Walk(0, 63))

words_32 = st.integers(0, (1 << 32) - 1)
signed_32 = st.integers(-(1 << 31), (1 << 31) - 1)


@st.composite
def any_commands(draw: st.DrawFn) -> Command:
    op = draw(st.sampled_from(Op))
    loops = draw(st.integers(1, MAX_LOOPS))

    def walk(modes: list[Mode]) -> Walk:
        mode = draw(st.sampled_from(modes))
        return Walk(
            draw(words_32),
            draw(words_32),
            mode,
            draw(signed_32) if mode is Mode.STRIDED else 0,
            tuple(draw(signed_32) for _ in range(loops - 1)),
        )

    return Command(
        op,
        draw(st.sampled_from(Lane)),
        draw(st.sampled_from(Lane)),
        draw(words_32),
        walk([Mode.DENSE, Mode.STRIDED, Mode.REPEAT]),
        walk([Mode.DENSE, Mode.STRIDED, Mode.REPEAT]) if op.reads_b else None,
        walk([Mode.DENSE, Mode.STRIDED, Mode.SUM]),
        tuple(draw(words_32) for _ in range(loops - 1)),
        *(draw(st.booleans()) for _ in range(5)),
    )


@given(any_commands(), st.booleans())
def test_every_field_stands_where_the_contract_puts_it(command: Command, interrupt: bool) -> None:
    words = encode(command, interrupt=interrupt).tolist()
    control = {bits.name: bits.extract(words[0]) for bits in RECORD["CONTROL"].bits}
    del control["SEAL"]
    b_mode = Mode.DENSE if command.b is None else command.b.mode
    assert control == {
        "OP": command.op,
        "LANE": command.lane,
        "OUT_LANE": command.out_lane,
        "A_MODE": command.a.mode,
        "B_MODE": b_mode,
        "Y_MODE": command.y.mode,
        "LOOPS": 1 + len(command.counts),
        "SATURATE": command.saturate,
        "ARITHMETIC": command.arithmetic,
        "FENCE": command.fence,
        "INTERRUPT": interrupt,
        "TEST": command.test,
        "NEGATE": command.negate,
    }
    expected = dict.fromkeys(RECORD, 0)
    expected["CONTROL"] = words[0]
    expected["RUN"] = command.run
    for name, walk in (("A", command.a), ("B", command.b), ("Y", command.y)):
        if walk is not None:
            expected[f"{name}_BASE"] = walk.base
            expected[f"{name}_LAST"] = walk.last
            expected[f"{name}_STRIDE"] = walk.stride % (1 << 32)
            for loop, jump in enumerate(walk.jumps, 1):
                expected[f"{name}_JUMP_{loop}"] = jump % (1 << 32)
    for loop, count in enumerate(command.counts, 1):
        expected[f"COUNT_{loop}"] = count
    used = record_words(command.op, command.loops, (command.a.mode, b_mode, command.y.mode))
    assert len(words) == used
    assert words == [expected[name] for name in RECORD][:used]
    assert not any([expected[name] for name in RECORD][used:])


@given(any_commands(), st.booleans())
def test_the_bytes_of_a_record_xor_to_the_seal(command: Command, interrupt: bool) -> None:
    assert reduce(xor, encode(command, interrupt=interrupt).tobytes()) == RECORD_SEAL


def test_words_are_little_endian() -> None:
    assert encode(DENSE).dtype == np.dtype("<u4")
    assert encode(DENSE).tobytes()[8:12] == bytes([0x01, 0x10, 0, 0])


def test_numbers_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="outside 0"):
        encode(Command(Op.NOT, Lane.BITS_8, Lane.BITS_8, 1 << 32, DENSE.a, None, DENSE.y))
    with pytest.raises(ValueError, match="outside 0"):
        encode(DENSE.moved(-0x1002, 0, 0, fence=False))
    with pytest.raises(ValueError, match="room for 6"):
        encode(Command(Op.NOT, Lane(0), Lane(0), 1, DENSE.a, None, DENSE.y, (1,) * 8))


def test_a_moved_command_keeps_its_shape() -> None:
    moved = DENSE.moved(16, 999, 32, fence=True)
    assert (moved.a, moved.b, moved.y) == (Walk(0x1011, 0x1050), None, Walk(32, 95))
    assert moved.fence
    assert not DENSE.fence


@pytest.mark.parametrize("old", [0, 0x5A, 0xFF])
def test_a_sealed_records_bytes_xor_to_the_seal_whatever_seal_it_had(old: int) -> None:
    words = [old << 24 | 0x123456, 0xDEADBEEF, 0x80000001]
    sealed = np.array([seal(words), *words[1:]], "<u4")
    assert np.bitwise_xor.reduce(sealed.view(np.uint8)) == RECORD_SEAL
    assert sealed[0] & 0xFFFFFF == 0x123456


@given(any_commands())
def test_a_title_names_the_operation_and_its_tests(command: Command) -> None:
    op, *tests = command.title.split()
    assert op == command.op.name
    assert ("TEST" in tests, "NEGATE" in tests) == (command.test, command.negate)


# --- recording drivers ----------------------------------------------------------------------------


def command(op: Op, base: int = 0x4000_0000) -> Command:
    a, y = Walk(base, base + 7), Walk(base + 64, base + 71)
    return Command(op, Lane.BITS_8, Lane.BITS_8, run=8, a=a, b=None, y=y, fence=True)


NOT, COPY = command(Op.NOT), command(Op.COPY)


def test_commands_are_recorded_under_their_labels() -> None:
    """Neighbours without a label are one group; of one label they stay apart."""
    with DryRunDriver(LARGEST_GEOMETRY) as driver:
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
    largest = LARGEST_GEOMETRY
    assert largest.memory_bytes == CONTROL_BASE
    assert (largest.data_bytes, largest.loops, largest.slots) == (8, MAX_LOOPS, 32)
    assert (largest.length_bits, largest.count_bits) == (32, 32)
    assert largest.ops == frozenset(Op) - {Op.SEARCH}
