"""A batch accepts and returns numbers of NumPy and Python, signed ones and those above 64 bits."""

import enum
from typing import Any

import numpy as np
import pytest
from amaranth.hdl import Module, signed
from amaranth.lib import wiring
from amaranth.lib.enum import Enum, Flag
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out

from cppsim import Batch, BatchError, Model, Program, ReferenceModel

TOP = 1 << 63
ONES = (1 << 64) - 1
LEAST, MOST = -(1 << 99), (1 << 99) - 1
"""The range of signed numbers of 100 bits."""


class Shown(wiring.Component):
    """A design with inputs of many sizes; it outputs a signed input, extended and negated."""

    word: In(64)
    small: In(signed(8))
    wide: In(100)
    whole: In(signed(128))
    given: In(signed(100))
    negated: Out(signed(100))
    longer: Out(signed(130))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.comb += [self.negated.eq(-self.given), self.longer.eq(self.given)]
        return m


def words(*values: int, count: int = 2) -> list[list[int]]:
    """Return the 64-bit words of each value in two's complement, least significant first."""
    return [[x >> 64 * k & ONES for k in range(count)] for x in values]


def test_lists_of_small_numbers_and_of_those_from_2_to_the_63_on(backend: str) -> None:
    batch = Batch(Shown(), 3, backend)
    # NumPy makes floats of both, in which the last bits are lost.
    lists: list[list[Any]] = [[TOP + 1, 1, 0], [np.uint64(ONES), 5, np.int64(7)]]
    for numbers in lists:
        batch.set("word", numbers)
        assert batch.get("word").tolist() == [int(x) for x in numbers]
    batch.set("wide", [[TOP + 1, 1], [0, 2], [ONES, 0]])
    assert batch.get("wide").tolist() == [[TOP + 1, 1], [0, 2], [ONES, 0]]
    batch.set("wide", [np.array([TOP + 3, 1], np.uint64), np.array([1, 2]), np.array([3, 4])])
    assert batch.get("wide").tolist() == [[TOP + 3, 1], [1, 2], [3, 4]]
    batch.run(Program().set("word", 1).set("word", 2).replaced("word", [[1, TOP + 1]] * 3))
    assert batch.get("word").tolist() == [TOP + 1] * 3


class Color(enum.Enum):
    """A member that is not an int."""

    RED = 1
    BLUE = 2


class Kind(Enum, shape=signed(4)):
    """Members of Amaranth's enum."""

    LEAST = -8
    ONE = 1


class Bits(Flag, shape=4):
    """Members that are also sets of members."""

    LOW = 1
    HIGH = 8


class Text(enum.Enum):
    """A member that is not a number."""

    A = "a"


NUMBERS = [
    (Color.BLUE, 2),
    (Kind.LEAST, -8),
    (Bits.LOW | Bits.HIGH, 9),
    (np.array(5), 5),
    (np.array(Color.RED), 1),
    (np.array(True), 1),
    (np.bool_(True), 1),
    (np.uint8(7), 7),
]


@pytest.mark.parametrize(("value", "number"), NUMBERS)
def test_members_of_enums_and_arrays_without_an_axis_are_numbers(value: Any, number: int) -> None:
    dut = Shown()
    batch = Batch(dut, 2, "threads")
    batch.set("small", value)
    assert batch.get("small").tolist() == [number] * 2
    batch.set("small", [value, 0])
    assert batch.get("small").tolist() == [number, 0]
    program = Program().set("small", 3).set("small", [4]).get("small")
    other = program.replaced("small", value)
    for model in (Model(dut), ReferenceModel(dut)):
        model.set("small", value)
        assert model.get("small") == number
        assert model.run(other) == {"small": number}
        assert model.run(Program().set("small", [value]).get("small")) == {"small": number}
        model.close()


def test_rows_of_small_numbers_and_of_those_from_2_to_the_63_on() -> None:
    batch = Batch(SyncFIFO(width=64, depth=2), 2, "threads")
    batch.set_memory("storage", [[TOP + 1, 1], [0, ONES]])
    assert batch.memory("storage").tolist() == [[TOP + 1, 1], [0, ONES]]


def test_whole_numbers_beyond_64_bits(backend: str) -> None:
    batch = Batch(Shown(), 3, backend)
    for numbers in ([1 << 99, 3, TOP], [1, 2, 3]):
        batch.set("wide", numbers)
        assert batch.get("wide").tolist() == words(*numbers)
    batch.set("given", [LEAST, MOST, -1])
    assert batch.get("given").tolist() == words(LEAST, MOST, -1)


def test_signed_words_have_their_sign_above_their_bits(backend: str) -> None:
    batch = Batch(Shown(), 4, backend)
    given = words(-1, LEAST, MOST, -5 << 70)
    # The same bits, as numbers of either kind.
    for values in (np.array(given, np.uint64), np.array(given, np.uint64).view(np.int64), given):
        batch.set("given", values)
        assert batch.get("given").tolist() == given
        assert batch.get("negated").tolist() == words(1, LEAST, -MOST, 5 << 70)
        assert batch.get("longer").tolist() == words(-1, LEAST, MOST, -5 << 70, count=3)
    batch.set("given", batch.get("negated"))
    assert batch.get("longer").tolist() == words(1, LEAST, -MOST, 5 << 70, count=3)
    batch.set("given", -7)
    assert batch.get("negated").tolist() == words(7, 7, 7, 7)
    batch.set("whole", words(-1, 1, -(1 << 127), (1 << 127) - 1))
    assert batch.get("whole").tolist() == words(-1, 1, -(1 << 127), (1 << 127) - 1)
    batch.set("small", [-128, 127, -1, 0])
    assert batch.get("small").tolist() == [-128, 127, -1, 0]


def test_a_recording_has_the_words_that_a_batch_gives(backend: str) -> None:
    dut = Shown()
    batch = Batch(dut, 2, backend)

    async def negate(context: Any) -> None:
        context.set(dut.given, -3)
        context.get(dut.given)
        context.set(dut.given, 3)
        context.get(dut.negated)

    recording = batch.record(negate)
    assert recording.results["given"].tolist() == words(-3)[0]
    assert recording.results["negated"].tolist() == words(-3)[0]
    assert not recording.differing(batch.run(recording.program)).any()


@pytest.mark.parametrize(
    ("port", "values", "answer"),
    [
        ("word", [1 << 64, 0], "'word': 18446744073709551616 does not fit 64 bits"),
        ("word", [TOP, -1], "'word': -1 does not fit 64 bits"),
        ("word", [TOP, 0.5], "'word' takes integers, not float64"),
        ("word", [1 << 64, 0.5], "'word' takes integers, not object"),
        ("word", [1 << 64, None], "'word' takes integers, not object"),
        ("word", np.array([1.0, 2.0]), "'word' takes integers, not float64"),
        ("small", [128, 0], "'small': 128 does not fit 8 bits, signed"),
        ("word", np.array(0.5), "'word' takes integers, not float64"),
        ("word", Text.A, "'word' takes integers, not object"),
        ("wide", [1 << 100, 0], f"'wide': {1 << 100} does not fit 100 bits"),
        ("wide", [0, -1], "'wide': -1 does not fit 100 bits"),
        ("wide", [[0, 1 << 36], [0, 0]], "'wide': words that do not fit 100 bits"),
        ("wide", [[1 << 64, 0], [0, 0]], "'wide': words that do not fit 100 bits"),
        ("wide", [[TOP, -1], [0, 0]], "'wide': words that do not fit 100 bits"),
        ("given", MOST + 1, f"'given': {MOST + 1} does not fit 100 bits, signed"),
        ("given", [MOST + 1, 0], f"'given': {MOST + 1} does not fit 100 bits, signed"),
        ("given", [0, LEAST - 1], f"'given': {LEAST - 1} does not fit 100 bits, signed"),
        ("given", words(0, MOST + 1), "'given': words that do not fit 100 bits, signed"),
        ("given", words(LEAST - 1, 0), "'given': words that do not fit 100 bits, signed"),
        ("given", np.array([[0, 1 << 35]] * 2), "'given': words that do not fit 100 bits, signed"),
        ("given", np.array([[0, -(1 << 36)]] * 2), "'given': words that do not fit 100 bits, sig"),
        ("given", [[-TOP - 1, 0], [0, 0]], "'given': words that do not fit 100 bits, signed"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(port: str, values: Any, answer: str) -> None:
    with pytest.raises(BatchError, match=answer) as error:
        Batch(Shown(), 2, "threads").set(port, values)
    assert "\n" not in str(error.value)


def test_rows_that_do_not_fit_are_refused() -> None:
    batch = Batch(SyncFIFO(width=70, depth=2), 1, "threads")
    for rows in ([[[1 << 64, 0], [0, 0]]], [[[TOP, -1], [0, 0]]], [[[0, 64], [0, 0]]]):
        with pytest.raises(BatchError, match="memory 'storage' takes numbers of 70 bits"):
            batch.set_memory("storage", rows)
