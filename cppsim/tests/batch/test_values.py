"""A batch accepts and returns numbers of NumPy and Python, signed ones and those above 64 bits."""

import enum
import random
from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest
from amaranth.hdl import Module, Shape, signed
from amaranth.lib.enum import Enum, Flag
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from cppsim import Batch, BatchError, Model, Program, ReferenceModel
from cppsim.netlist import from_words, to_words
from support.carriers import Part
from support.seeds import seeds
from support.small import refused

TOP = 1 << 63
ONES = (1 << 64) - 1
LEAST, MOST = -(1 << 99), (1 << 99) - 1
"""The range of signed numbers of 100 bits."""


def shown() -> Part:
    """Return inputs of many sizes; a signed one is output, extended and negated."""
    return Part(
        {"word": In(64), "small": In(signed(8)), "wide": In(100), "whole": In(signed(128))}
        | {"given": In(signed(100)), "negated": Out(signed(100)), "longer": Out(signed(130))},
        comb=lambda x: [x.negated.eq(-x.given), x.longer.eq(x.given)],
    )


def words(*values: int, count: int = 2) -> list[list[int]]:
    """Return the 64-bit words of each value in two's complement, least significant first."""
    return [[x >> 64 * k & ONES for k in range(count)] for x in values]


def test_lists_of_small_numbers_and_of_those_from_2_to_the_63_on(backend: str) -> None:
    batch = Batch(shown(), 3, backend)
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
    dut = shown()
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


def test_whole_numbers_beyond_64_bits(backend: str) -> None:
    batch = Batch(shown(), 3, backend)
    for numbers in ([1 << 99, 3, TOP], [1, 2, 3], [0, (1 << 100) - 1, ONES]):
        for given in (numbers, np.array(numbers, object)):
            batch.set("wide", given)
            assert batch.get("wide").tolist() == words(*numbers)
    for kind in (np.int64, np.uint64):
        batch.set("wide", np.array([5, 1 << 62, 0], kind))
        assert batch.get("wide").tolist() == words(5, 1 << 62, 0)
    batch.set("given", np.array([-5, 1 << 62, -(1 << 63)]))
    assert batch.get("given").tolist() == words(-5, 1 << 62, -(1 << 63))
    batch.set("given", [LEAST, MOST, -1])
    assert batch.get("given").tolist() == words(LEAST, MOST, -1)


def test_signed_words_have_their_sign_above_their_bits(backend: str) -> None:
    batch = Batch(shown(), 4, backend)
    given = words(-1, LEAST, MOST, -5 << 70)
    mixed = [[low, high - (high >> 63 << 64)] for low, high in given]
    # The same bits, as numbers of either kind.
    for values in (np.array(given, np.uint64), np.array(given, np.uint64).view(np.int64), mixed):
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


REFUSED: dict[str, list[Any]] = {
    "'word': 18446744073709551616 does not fit 64 bits": [[1 << 64, 0]],
    "'word': -1 does not fit 64 bits": [[TOP, -1]],
    "'word' takes integers, not float64": [[TOP, 0.5], np.array([1.0, 2.0]), np.array(0.5)],
    "'word' takes integers, not object": [[1 << 64, 0.5], [1 << 64, None], Text.A],
    "'small': 128 does not fit 8 bits, signed": [[128, 0], *(np.array([0, 128], x) for x in "OlL")],
    f"'wide': {1 << 100} does not fit 100 bits": [[1 << 100, 0]],
    "'wide': -1 does not fit 100 bits": [[0, -1], *(np.array([0, -1], x) for x in "Ol")],
    "'wide': words that do not fit 100 bits": [
        [row, [0, 0]] for row in ([0, 1 << 36], [1 << 64, 0], [TOP, -1])
    ],
    f"'given': {MOST + 1} does not fit 100 bits, signed": [MOST + 1, [MOST + 1, 0]],
    f"'given': {LEAST - 1} does not fit 100 bits, signed": [[0, LEAST - 1]],
    "'given': words that do not fit 100 bits, signed": [
        *(words(0, MOST + 1), words(LEAST - 1, 0), [[-TOP - 1, 0], [0, 0]]),
        *(np.array([[0, top]] * 2) for top in (1 << 35, -(1 << 36))),
    ],
    "memory 'storage': words that do not fit 70 bits": [
        [[row, *[[0, 0]] * 3]] for row in ([1 << 64, 0], [TOP, -1], [0, 64])
    ],
    "'storage': -1 does not fit 70 bits": [[[-1, 0, 0, 0]]],
    f"'storage': {1 << 70} does not fit 70 bits": [[[1 << 70, 0, 0, 0]]],
}


@pytest.mark.parametrize(
    ("answer", "values"), [(answer, x) for answer, values in REFUSED.items() for x in values]
)
def test_what_does_not_fit_is_refused_in_one_line(answer: str, values: Any) -> None:
    port = answer.split("'")[1]
    queue, batch = SyncFIFO(width=70, depth=4), Batch(shown(), 2, "threads")
    call = batch.set if port != "storage" else Batch(queue, 1, "threads").set_memory
    refused(BatchError, answer, call, port, values)


def stores() -> Part:
    """Return memories of all `KINDS`, which are read and written at ``at``."""

    def build(m: Module, x: Any) -> None:
        for name, (of, depth) in KINDS.items():
            m.submodules[name] = memory = Memory(shape=of, depth=depth, init=[])
            read, write = memory.read_port(domain="comb"), memory.write_port()
            m.d.comb += [read.addr.eq(x.at), write.addr.eq(x.at), write.en.eq(x.enable)]
            m.d.comb += write.data.eq(getattr(x, f"to_{name}"))
            m.d.comb += getattr(x, f"of_{name}").eq(read.data)

    ports: dict[str, Any] = {"at": In(2), "enable": In(1)}
    for name, (of, _) in KINDS.items():
        ports |= {f"to_{name}": In(of), f"of_{name}": Out(of)}
    return Part(ports, build=build)


KINDS = {
    f"{'s' if negative else 'u'}{width}_{depth}": (Shape(width, signed=negative), depth)
    for width in (1, 8, 31, 32, 33, 64, 65, 70, 128, 200)
    for negative in (False, True)
    for depth in ((0, 1, 2, 3) if width in (8, 70) and negative else (2 + negative,))
}


def as_numbers(array: Any, layout: Any) -> list[int]:
    """Return the whole numbers of an array that ``memory`` or ``get`` returned, one by one."""
    if layout.words == 1:
        return np.asarray(array).reshape(-1).tolist()  # type: ignore[no-any-return]
    numbers = [from_words(words) for words in array.reshape(-1, layout.words)]
    top = 1 << 64 * layout.words - 1
    return [x - 2 * top if layout.signed and x >= top else x for x in numbers]


def test_rows_are_the_numbers_that_the_design_reads(backend: str) -> None:
    batch = Batch(stores(), 2, backend)
    least = {name: -(1 << of.width >> 1) if of.signed else 0 for name, (of, _) in KINDS.items()}
    wanted: dict[str, list[list[int]]] = {}
    for name, (of, depth) in KINDS.items():
        most = least[name] + (1 << of.width) - 1
        numbers = [least[name], most, 0, min(1, most), least[name] // 2]
        rows = [[numbers[(k + row) % 5] for row in range(depth)] for k in range(2)]
        wanted[name] = rows
        layout = batch.description.memory(name)
        array: Any = rows if depth else np.zeros((2, 0), object)
        in_words = depth == layout.words == 2  # their shape is also that of numbers
        if in_words:
            with pytest.raises(BatchError, match=rf"'{name}': \(2, 2\) is the shape of whole numb"):
                batch.set_memory(name, rows)
            array = np.array([[to_words(x, 2) for x in row] for row in rows], np.uint64)
        batch.set_memory(name, array)
        found = batch.memory(name)
        assert as_numbers(found, layout) == [x for row in rows for x in row], name
        batch.set_memory(name, found)
        for number in (least[name] - 1, most + 1) if depth and not in_words else ():
            with pytest.raises(BatchError, match=f"'{name}': {number} does not fit {of.width}"):
                batch.set_memory(name, np.full((2, depth), number, object))
    for row in range(4):
        batch.set("at", row)
        for name, (_, depth) in KINDS.items():
            layout = batch.description.ports[f"of_{name}"]
            at = row & (1 << max(0, depth - 1).bit_length()) - 1
            numbers = [x[at] if at < depth else 0 for x in wanted[name]]
            assert as_numbers(batch.get(f"of_{name}"), layout) == numbers, (name, row)
    batch.set("enable", 1)
    for name in KINDS:
        batch.set(f"to_{name}", least[name])
    for row in range(4):
        batch.set("at", row)
        batch.step()
    for name, (_, depth) in KINDS.items():
        layout = batch.description.memory(name)
        assert as_numbers(batch.memory(name), layout) == [least[name]] * 2 * depth, name


def test_a_shape_of_numbers_and_of_words_is_refused() -> None:
    """Whole numbers of more than 64 bits are never taken for words, nor words for numbers."""
    batch = Batch(shown(), 3, "threads")
    both = (
        r"\(3, 2\) is the shape of whole numbers and of words; expected words of shape \(3, 2, 2\)"
    )
    program = Program()
    with program.repeat(2):
        program.set("wide", [[1, 2]] * 3).get("wide")
    with pytest.raises(BatchError, match=both):
        batch.run(program)
    with pytest.raises(BatchError, match=r"\(1, 2\) is the shape of whole numbers and of words"):
        Model(shown()).run(program.replaced("wide", [[1, 2]]))


@pytest.mark.parametrize("seed", seeds(10, 200))
def test_whole_numbers_and_words_in_repeats(seed: int) -> None:
    rng = random.Random(seed)
    dut = shown()
    port = rng.choice(["word", "small", "wide", "whole", "given"])
    layout = Batch(dut, 1, "threads").description.ports[port]
    loops = [rng.randint(1, 4) for _ in range(rng.randint(1, 3))]
    axes = rng.randint(0, len(loops))
    shape = (1, *loops[:axes])
    least = -(1 << layout.width >> 1) if layout.signed else 0
    small = rng.random() < 0.5
    numbers = np.empty(shape, object)
    for index in np.ndindex(shape):
        number = rng.randint(least, least + (1 << layout.width) - 1)
        numbers[index] = number % 100 if small else number
    given: Any = numbers
    if in_words := layout.words > 1 and rng.random() < 0.5:
        given = np.array([to_words(x, layout.words) for x in numbers.reshape(-1)], np.uint64)
        given = given.reshape(*shape, layout.words)
    elif small and rng.random() < 0.5:
        given = numbers.astype(np.int64)
    program = Program()
    with ExitStack() as stack:
        for times in loops:
            stack.enter_context(program.repeat(times))
        program.set(port, given).get(port)
    longer = (1, *loops)
    other = (
        given.shape in [longer[: k + 1] for k in range(len(longer))]
        if in_words
        else (layout.words > 1 and len(shape) > 1 and shape[-1] == layout.words)
    )
    models = [Batch(dut, 1, "threads"), Model(dut), ReferenceModel(dut)]
    if other:
        for model in models:
            with pytest.raises(BatchError, match="is the shape of whole numbers and of words"):
                model.run(program)
        return
    spread = numbers.reshape(shape + (1,) * (len(loops) - axes))
    wanted = np.broadcast_to(spread, longer).reshape(-1).tolist()
    for model in models:
        found = np.asarray(model.run(program)[port])
        assert as_numbers(found, layout) == wanted, (seed, port, shape, loops)
