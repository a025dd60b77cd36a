"""Comparisons, tests, `any`, `all` and counts of elements: NumPy's truth values, in few passes."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bitlane
from bitlane import Device
from bitlane.errors import UnsupportedError
from bitlane_rtl.abi import Lane, Mode, Op
from support.host.arrays import KINDS, link_of, model, passes, random, same
from support.host.beside_numpy import special
from support.seeds import examples

FLOATS = ["f2", "f4", "f8"]
TESTS: list[np.ufunc] = [np.logical_not, np.isnan, np.isfinite, np.isinf, np.signbit]


@pytest.mark.parametrize("kind", FLOATS)
def test_every_encoding_of_16_bits_and_many_others_are_tested_as_numpy_does(kind: str) -> None:
    device = model(memory_bytes=1 << 20)
    a = np.arange(1 << 16, dtype="u2").view("f2") if kind == "f2" else random(20000, kind)
    x = device.asarray(a)
    with np.errstate(all="ignore"):
        for function in TESTS:
            assert same(function(x).get(), function(a))
        assert same(x.astype(bool).get(), a.astype(bool))
    assert same((x == x[::-1]).get(), a == a[::-1])
    assert same((x != x).get(), a != a)


NUMBERS: list[Any] = [
    *(0, 1, -1, True, 255, 256, -128, 2**31, 2**63, -(2**63), 2**64, 10**30),
    *(0.0, -0.0, 0.1, 1.0, -1.0, 2.0**52, 1e300, float("inf"), float("nan")),
    *(np.uint8(1), np.int64(300), np.uint64(2**64 - 1), np.float16(1), np.bool_(True)),
    *(np.float32(0.1), np.float64(0.1), np.float64(-0.0), np.array(1), np.array(1.0, ">f4")),
]


@pytest.mark.parametrize("kind", [*KINDS, *FLOATS])
def test_numbers_are_compared_by_their_value(device: Device, kind: str) -> None:
    a = np.concatenate([special(kind), np.array([0.1], kind)])
    x = device.asarray(a)
    for number in NUMBERS:
        with np.errstate(all="ignore"):
            # NumPy compares truth values with integers of 64 bits alone.
            expected = (a.astype("u1") if kind == "?" else a) == number
        assert same((x == number).get(), expected), repr(number)
        assert same(np.equal(x, number).get(), expected), repr(number)
        assert same((number != x).get(), ~expected), repr(number)
        assert len(passes(x == number)) == 1, repr(number)


@examples(0.4)
@given(data=st.data())
def test_types_meet_as_in_numpy_or_are_refused(data: st.DataObject) -> None:
    device = model()
    kinds = data.draw(st.tuples(st.sampled_from(KINDS), st.sampled_from(KINDS)))
    a, b = (np.append(special(kind), random(6, "u1", 1) % 3) for kind in kinds)
    a, b = a.astype(kinds[0])[:, None], b.astype(kinds[1])
    x, y = device.asarray(a), device.asarray(b)
    if np.result_type(a, b).kind == "f":
        with pytest.raises(bitlane.DataTypeError, match="int64"):
            x == y  # noqa: B015
        return
    assert same((x == y).get(), a == b)
    assert same((x != y).get(), a != b)


# --- arrays that are equal ------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [*KINDS, *FLOATS])
def test_arrays_are_equal_as_numpy_says(device: Device, kind: str) -> None:
    a = special(kind)
    x = device.asarray(a)
    cases: list[Any] = [a, a[::-1], a[:-1], a[:0], special("?"), list(a[:1])]
    for b in cases:
        expected = np.array_equal(a, b)
        assert np.array_equal(x, b) is expected
        assert np.array_equal(b, x) is expected
    zeros = device.asarray(np.array([0.0, 1]).astype(kind))
    assert np.array_equal(zeros, np.array([-0.0, 1]).astype(kind))
    assert not np.array_equal(zeros, np.array([-0.0, 0]).astype(kind))


def test_equal_is_one_command_and_one_word_to_the_host(device: Device) -> None:
    a = random((64, 8), "u4")
    x, y = device.asarray(a), device.asarray(a.copy())
    link_of(device).traffic.clear()
    link_of(device).log.clear()
    assert np.array_equal(x, y)
    (record,) = link_of(device).log
    assert (record.op, record.modes[2]) == (Op.COUNT_XOR, Mode.SUM)
    reads = [size for kind, at, size in link_of(device).traffic if kind == "read" and size == 4]
    assert len(reads) >= 1
    y[5, 3] ^= 1
    assert not np.array_equal(x, y)


@pytest.mark.parametrize("place", [0, 1250, 2500, 4999, 5000, 9999])
@pytest.mark.parametrize("kind", ["u1", "u2"])
def test_rows_longer_than_a_sum_are_halved(place: int, kind: str) -> None:
    a = np.zeros((4, 10000), kind)
    device = model(memory_bytes=4 * a.nbytes + (1 << 14), length_bits=12)
    x = device.asarray(a)
    b = a.copy()
    b[2, place] = 1
    y = device.asarray(b)
    assert np.array_equal(x, a)
    assert not np.array_equal(x, y)
    assert np.any(y, axis=1).tolist() == [False, False, True, False]
    assert np.all(y == x, axis=1).tolist() == [True, True, False, True]
    assert not np.all(x == y)
    assert np.all(x == a)
    assert np.count_nonzero(y, axis=1).tolist() == [0, 0, 1, 0]


@pytest.mark.parametrize("kind", ["u2", "u8", "f8"])
def test_a_row_whose_truth_fits_a_sum_may_have_elements_that_do_not(kind: str) -> None:
    """1,000 truth values are less than the 4,095 bytes of a run, and their elements are more."""
    device = model(memory_bytes=1 << 20, length_bits=12)
    a = np.ones(4000 if kind == "u2" else 1000, kind)
    for b in (a, np.where(np.arange(a.size) == a.size - 1, 0, a).astype(kind)):
        x, y = device.asarray(a), device.asarray(b)
        assert bool(np.all(y)) == np.all(b)
        assert bool(np.all(x == y)) == np.all(a == b)
        assert bool(np.any(x != y)) == np.any(a != b)
        assert bool((y == 0).any()) == (b == 0).any()
        assert np.array_equal(x, y) == np.array_equal(a, b)
        assert not np.isnan(y).any()


@pytest.mark.parametrize("kind", ["?", "u1", "f4"])
def test_repeated_elements_are_tested_once(kind: str, device: Device) -> None:
    a = np.array([[0], [1]], kind)
    wide = device.asarray(a).broadcast_to((3, 2, 1 << 40))
    for truth, wanted in ((np.any, a.any()), (np.all, a.all())):
        assert truth(wide).tolist() == wanted
        assert truth(wide, axis=2).tolist() == [[False, True]] * 3
        assert truth(wide, axis=(0, -1), keepdims=True).tolist() == [[[False], [True]]]


def test_differences_of_long_rows_are_not_stored() -> None:
    a = random(40000, "u1")
    device = model(memory_bytes=3 * a.nbytes, length_bits=12)
    x, y = device.asarray(a), device.asarray(a)
    _held = device.asarray(a[:-4096])
    assert np.array_equal(x, y)
    assert not np.any(x ^ y)


# --- passes ---------------------------------------------------------------------------------------


def test_truth_values_that_others_need_are_written_once(device: Device) -> None:
    a, b = random(40, "u2", 1) % np.uint16(3), random(40, "u2", 2) % np.uint16(3)
    x, y = device.asarray(a), device.asarray(b)
    equal = x == y
    differ, count = ~equal, np.count_nonzero(equal)
    link_of(device).log.clear()
    bitlane.compute(equal, differ, count)
    assert [record.op for record in link_of(device).log].count(Op.COUNT_XOR) == 1
    assert same(equal.get(), a == b)
    assert same(differ.get(), a != b)
    assert int(count) == np.count_nonzero(a == b)


# --- as objects -----------------------------------------------------------------------------------


def test_in_and_truth_of_one_element(device: Device) -> None:
    x = device.asarray(np.array([[3, 5], [7, 9]], np.uint8))
    assert 7 in x
    assert 8 not in x
    assert 300 not in x
    assert bool(np.all(x != 0))
    assert not (x == 4).any()
    assert np.array_equal(x[x == 7], [7])
    with pytest.raises(TypeError, match="unhashable"):
        hash(x)
    with pytest.raises(bitlane.ShapeError, match="4 elements"):
        bool(x == x)


@pytest.mark.parametrize("kind", ["O", "c8", "V8", "f4", "m8[s]", "S1"])
def test_arrays_of_other_types_take_no_results(device: Device, kind: str) -> None:
    x = device.asarray(np.arange(1, 5, dtype=np.uint8))
    out = np.zeros(4, kind)
    for function in (np.equal, np.bitwise_xor):
        with pytest.raises(bitlane.DataTypeError, match=r"^out: data type "):
            function(x, x, out=out)
    assert out.tolist() == np.zeros(4, kind).tolist()


def test_numbers_and_lists_beside_arrays_are_as_in_numpy(device: Device) -> None:
    x, three = device.asarray(np.arange(3, dtype=np.uint8)), device.asarray(np.uint8(3))
    assert not np.array_equal(x, [[1, 2], [3]])
    assert [np.array_equal(three, number) for number in (3, 3.0, 300)] == [True, True, False]
    wide = device.asarray(np.array([1, -1], np.int64))
    assert (wide == 1e19).tolist() == (wide == -1e19).tolist() == [False, False]
    truth = device.asarray(np.array([True, False]))
    for pair in ((0, np.nan), (np.nan, 0)):
        expected = np.where(np.array([True, False]), *pair)
        assert np.where(truth, *pair).get().tobytes() == expected.tobytes()
    with pytest.raises(bitlane.OutOfRangeError, match="expected a number that float32 holds"):
        np.where(truth, device.asarray(np.ones(2, np.float32)), 10**400)
    with pytest.raises(bitlane.DataTypeError, match=r"a: of type list; expected a bitlane\.Array"):
        np.all([1, 2], out=truth)


def test_a_device_without_the_lane_is_refused_by_name() -> None:
    device = model(lanes=frozenset({Lane.BITS_8}))
    x = device.asarray(np.zeros(3, np.uint16))
    with pytest.raises(UnsupportedError, match="no 16-bit lanes for COUNT_XOR"):
        (x == device.asarray(np.ones(3, np.uint16))).get()
    with pytest.raises(UnsupportedError, match="no 16-bit lanes for sums of tests"):
        np.count_nonzero(x).get()
    assert np.array_equal(x, np.zeros(3, np.uint16))
    with pytest.raises(UnsupportedError, match="no 16-bit lanes for COUNT"):
        np.any(x).get()


@pytest.mark.parametrize(
    "changes",
    [
        {"modes": frozenset(Mode) - {Mode.SUM}},
        {"modes": frozenset({Mode.DENSE})},
        {"lanes": frozenset({Lane.BITS_8, Lane.BITS_16})},
    ],
)
def test_devices_without_sums_reduce_by_logic(changes: dict[str, Any]) -> None:
    device = model(**changes)
    a = random((5, 7), "u2", 1) % np.uint16(2)
    x = device.asarray(a)
    assert np.array_equal(x, a)
    assert not np.array_equal(x, a[::-1])
    for axis in (None, 0, 1, ()):
        assert same(np.any(x, axis).get(), np.asarray(np.any(a, axis)))
        assert same(np.all(x == a[0], axis).get(), np.asarray(np.all(a == a[0], axis)))


def test_a_device_of_logic_alone_compares_whole_arrays() -> None:
    device = model(ops=frozenset({Op.XOR, Op.OR}))
    a = random((5, 7), "u4")
    x = device.asarray(a)
    assert np.array_equal(x, a)
    assert not np.array_equal(x, a[::-1])
    with pytest.raises(UnsupportedError, match="built without COUNT"):
        (x == a).get()


@pytest.mark.parametrize("thing", [None, "a", b"a", np.str_("a"), ""])
def test_no_element_equals_a_thing_that_is_no_number(device: Device, thing: Any) -> None:
    for shape in ((3, 4), (), (0, 2)):
        a = random(shape, "u2")
        x = device.asarray(a)
        assert same((x == thing).get(), np.zeros(shape, bool))
        assert same((x != thing).get(), np.ones(shape, bool))
        assert same((thing == x).get(), np.zeros(shape, bool))
        assert thing not in x
        assert not (x ^ 1 == thing).any()


def mask(shape: Any, seed: int = 3) -> np.ndarray[Any, Any]:
    return random(shape, "u1", seed) > 127


def test_a_result_in_another_type(device: Device) -> None:
    a, where = random((4, 6), "u1"), mask(6)
    wanted, out = np.full((4, 6), 7, "i8"), device.asarray(np.full((4, 6), 7, "i8"))
    np.bitwise_count(a, out=wanted, where=where)
    np.bitwise_count(device.asarray(a), out=out, where=where)
    assert same(out.get(), wanted)
    pending = device.asarray(wanted) ^ 1
    np.equal(device.asarray(a), 7, out=(copy := pending ^ 2).astype(bool), where=where)
    assert copy.pending


def test_a_pending_output_stays_pending(device: Device) -> None:
    a, where = random(9, "u2"), mask(9)
    out = device.asarray(a) ^ 1
    np.bitwise_or(out, 0xF0, out=out, where=where)
    assert out.pending
    assert same(out.get(), np.where(where, (a ^ 1) | 0xF0, a ^ 1))


def test_sums_of_chosen_truth_values_are_one_pass(device: Device) -> None:
    x = device.asarray(mask(4096, 1))
    table = bitlane.explain(np.sum(x, where=device.asarray(mask(4096, 2)), dtype=np.uint32))
    assert table.splitlines()[1].startswith("COUNT_AND SUM")
    assert "fused          1 pass " in table
