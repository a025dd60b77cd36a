"""Only the circuit computes: NumPy's bitwise operations raise during a call that is right.

A computation on the host could hide in three places, so there are three guards:

- functions: the attributes ``np.bitwise_xor`` and the like raise;
- operators: ``a ^ b`` does not look up an attribute, so every array of data that the driver
  handles, the caller's and those read back from the device, is of a class that refuses *all* of
  NumPy's universal functions, which is what operators call;
- anything else: the operation in the command records is replaced on its way to the circuit. The
  result must then match the replacement; a result of the host would match the original operation.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import bitlane
import bitlane.arrays.array as array_module
from bitlane import array_api, dml, reference
from bitlane.arguments.operands import as_array, as_unsigned
from bitlane.arrays.elementwise import cast_on_host
from bitlane.arrays.transfers import download
from bitlane.compiler import CompiledForm
from bitlane.driver import Driver
from bitlane.lowering import lower
from bitlane.streaming import store
from bitlane.streaming.call import call_of
from bitlane_rtl.abi import CONTROL_BASE, Op
from support.host.arrays import random, same
from support.system.devices import DEFAULT, opened
from support.system.jobs import Job, evaluate, execute

FUNCTIONS = [
    *("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "bitwise_invert", "invert"),
    *("left_shift", "right_shift", "bitwise_left_shift", "bitwise_right_shift", "bitwise_count"),
    *("logical_and", "logical_or", "logical_xor", "logical_not", "packbits", "unpackbits"),
]

XOR, AND, COUNT = np.bitwise_xor, np.bitwise_and, np.bitwise_count

CALLS: dict[Op, Callable[[bitlane.Device, Any, Any], NDArray[Any]]] = {
    Op.NOT: lambda device, a, b: device.bit_not(a),
    Op.AND: lambda device, a, b: device.bit_and(a, b),
    Op.OR: lambda device, a, b: device.bit_or(a, b),
    Op.XOR: lambda device, a, b: device.bit_xor(a, b),
    Op.SHIFT_LEFT: lambda device, a, b: device.bit_shift_left(a, b),
    Op.SHIFT_RIGHT: lambda device, a, b: device.bit_shift_right(a, b),
    Op.COUNT: lambda device, a, b: device.bit_count(a),
}


class HostComputation(Exception):
    """An error that does not derive from BitlaneError, so that no handler catches it."""


def refuse(*arguments: Any, **options: Any) -> Any:
    raise HostComputation("a bitwise function of NumPy during a device call")


class Guarded(np.ndarray[Any, Any]):
    """An array that can be viewed, sliced and copied, but refuses all computation."""

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        raise HostComputation(f"{ufunc.__name__}.{method} of data during a device call")


@pytest.fixture(scope="module")
def device() -> Iterator[bitlane.Device]:
    with opened(DEFAULT) as device:
        yield device


@contextmanager
def guarded() -> Iterator[None]:
    """Make NumPy's bitwise functions raise, and make all data ``Guarded``."""
    read, write, exchange, run = Driver.read, Driver.write, Driver.exchange, Driver.run

    def checked(data: Any) -> Any:
        return data.view(Guarded) if isinstance(data, np.ndarray) else data

    def checked_write(driver: Driver, address: int, data: Any) -> None:
        write(driver, address, checked(data))

    def checked_exchange(driver: Driver, writes: Any, reads: Any) -> list[Any]:
        writes = [(address, checked(data)) for address, data in writes]
        return [data.view(Guarded) for data in exchange(driver, writes, reads)]

    def checked_run(driver: Driver, commands: Any, **transfers: Any) -> list[Any]:
        for name in ("before", "meanwhile"):
            transfers[name] = [(to, checked(data)) for to, data in transfers.get(name, ())]
        return [data.view(Guarded) for data in run(driver, commands, **transfers)]

    with pytest.MonkeyPatch.context() as patches:
        for name in FUNCTIONS:
            patches.setattr(np, name, refuse)
        for module in ("api.device", "arguments.promotion", "arrays.operands", "arrays.creation"):
            patches.setattr(f"bitlane.{module}.as_array", lambda *x: as_array(*x).view(Guarded))
        patches.setattr(
            "bitlane.arrays.array.download", lambda value: download(value).view(Guarded)
        )
        patches.setattr(
            "bitlane.streaming.transfer.as_unsigned", lambda array: as_unsigned(array).view(Guarded)
        )
        patches.setattr(Driver, "run", checked_run)
        patches.setattr(Driver, "read", lambda *where: read(*where).view(Guarded))
        patches.setattr(Driver, "write", checked_write)
        patches.setattr(Driver, "exchange", checked_exchange)
        yield


@pytest.fixture
def guard() -> Iterator[None]:
    with guarded():
        yield


def operands(op: Op) -> tuple[NDArray[Any], NDArray[Any]]:
    a, b = random((7, 33), "u4", 1), random((7, 33), "u4", 2)
    return a, (b % 40).astype("u4") if op in (Op.SHIFT_LEFT, Op.SHIFT_RIGHT) else b


def layouts(array: NDArray[Any]) -> list[NDArray[Any]]:
    """Return the same elements in layouts that are sent and stored differently."""
    gaps = np.empty((array.shape[0], 3 * array.shape[1]), array.dtype)[:, ::3]
    gaps[...] = array
    return [array, array.copy(order="F"), gaps, array[::-1].copy()[::-1], array.astype(">u4")]


@pytest.mark.parametrize("op", CALLS, ids=lambda op: op.name)
def test_arrays_are_computed_by_the_circuit(device: bitlane.Device, op: Op) -> None:
    a, b = operands(op)
    expected = reference.compute(op, a, b, saturate=True)
    pairs = list(zip(layouts(a), layouts(b), strict=True))
    with guarded():
        for first, second in pairs:
            assert same(CALLS[op](device, first, second), expected)


@pytest.mark.parametrize("op", [Op.NOT, Op.AND, Op.SHIFT_LEFT], ids=lambda op: op.name)
def test_in_place_and_into_an_output_too(device: bitlane.Device, op: Op) -> None:
    a, b = operands(op)
    expected = reference.compute(op, a, b, saturate=True)
    output = np.zeros((33, 7), "u4").T
    with guarded():
        for out in (output, a):
            if op is Op.NOT:
                device.bit_not(a, out=out)
            elif op is Op.AND:
                device.bit_and(a, b, out=out)
            else:
                device.bit_shift_left(a, b, out=out)
            assert same(out, expected)


ARRAY_CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "operators": lambda x, y: ((x ^ y) & 0x7FFF | 5) << 1 >> 2,
    "inversion": lambda x, y: ~x,
    "the host's operand": lambda x, y: x ^ np.arange(33, dtype="u2"),
    "reflected": lambda x, y: 0xFF00 ^ x,
    "functions": lambda x, y: AND(x, XOR(x, y)),
    "function of the host": lambda x, y: XOR(np.arange(33, dtype="i8"), x),
    "counts": lambda x, y: COUNT(x),
    "reduction": lambda x, y: XOR.reduce(x, axis=1),
    "widened": lambda x, y: x.astype("i8"),
    "signs": lambda x, y: x.view("i2").astype("i4"),
    "narrowed": lambda x, y: x.astype("u1"),
    "sums of counts": lambda x, y: np.sum(COUNT(x ^ y), axis=1, dtype=np.uint32),
    "sums of numbers": lambda x, y: (x ^ y).sum(axis=1),
    "sums of signed numbers": lambda x, y: np.sum(x.view("i2"), axis=0),
    "truth": lambda x, y: x.astype("?"),
    "logic": lambda x, y: ~x.astype("?") ^ y.astype("?"),
    "equality": lambda x, y: x == y,
    "difference": lambda x, y: ~(x == y[0]),
    "equality of floats": lambda x, y: x.view("f2") == y.view("f2"),
    "a number": lambda x, y: x != 7,
    "any": lambda x, y: (x & y).any(axis=1),
    "all": lambda x, y: (x | y).all(axis=0),
    "choice": lambda x, y: np.where(x == y, x, y),
    "part": lambda x, y: x[1::2, ::-1] ^ y[:-1:2],
    "roll": lambda x, y: np.roll(x, 3),
    "concatenation": lambda x, y: np.concatenate([x, y]),
}
"""Operations that both NumPy's arrays and device arrays support."""


@pytest.mark.parametrize("name", ARRAY_CALLS)
def test_arrays_that_stay_are_computed_by_the_circuit(device: bitlane.Device, name: str) -> None:
    a, b = random((7, 33), "u2", 1), random((7, 33), "u2", 2)
    expected = np.asarray(ARRAY_CALLS[name](a, b))
    with guarded():
        x, y = device.asarray(a), device.asarray(b)
        assert same(ARRAY_CALLS[name](x, y).get(), expected)


def test_sums_over_rows_are_computed_by_the_circuit(device: bitlane.Device) -> None:
    a, b = random((7, 33), "u2", 1), random((7, 33), "u2", 2)
    expected = COUNT(a ^ b).sum(axis=1, dtype=np.uint32)
    columns = COUNT(a).sum(axis=0, dtype=np.uint32)
    with guarded():
        assert same(device.hamming(a, b), expected)
        assert same(device.cardinality(a, 0), columns)
        assert same(device.hamming(device.asarray(a), b).get(), expected)


def test_their_other_faces_too(device: bitlane.Device) -> None:
    a, b = random((7, 33), "u2", 1), random((7, 33), "u2", 2)
    in_place = a.copy()
    in_place[1:] ^= in_place[:-1].copy()
    expected = [~(a & b), ~(a | b), a ^ b, a << 3, in_place, np.full(3, 7, "u1")]
    with guarded():
        x, y = device.asarray(a), device.asarray(b)
        shifted = array_api.bitwise_left_shift(x, 3)
        results = [
            device.bit_nand(x, y),
            bitlane.bit_nor(x, b),
            array_api.bitwise_xor(x, y),
            shifted,
        ]
        x[1:] ^= x[:-1]
        results += [x, array_api.full(3, 7, dtype=array_api.uint8, device=device)]
        for got, want in zip(results, expected, strict=True):
            assert same(got.get(), want)
        assert np.array_equal(y, b)
        assert not np.array_equal(y, x)


def test_operands_of_two_types_are_computed_by_the_circuit(device: bitlane.Device) -> None:
    a, b = random((7, 33), "u2", 1), random((7, 33), "i1", 2)
    truth = random(9, "u1") > 99
    expected, flipped = a ^ b, ~truth
    with guarded():
        assert same(device.bit_xor(a, b), expected)
        assert same(device.bit_not(truth), flipped)
        assert same(device.bit_nand(truth, truth), flipped)


def test_operators_of_directml_are_computed_by_the_circuit(device: bitlane.Device) -> None:
    tensor = dml.BufferTensorDesc(dml.DataType.UINT16, [5, 9], [1, 5])
    job = Job(dml.ElementWiseBitXorOperatorDesc(tensor, tensor, tensor), (0, 96, 192), 288)
    before = random(288, "u1")
    expected = evaluate(before, job)
    with guarded():
        with dml.Device(device.driver) as dml_device:
            buffer = dml_device.create_buffer(job.size)
            buffer.write(before)
            execute(dml_device, buffer, job)
            assert same(np.asarray(buffer.read()), expected)


@pytest.mark.parametrize(
    ("told", "does"),
    [
        (Op.XOR, Op.XNOR),
        (Op.AND, Op.OR),
        (Op.NOT, Op.COPY),
        (Op.SHIFT_LEFT, Op.SHIFT_RIGHT),
        (Op.COUNT, Op.COPY),
    ],
)
def test_what_comes_back_is_what_the_circuit_was_told(
    device: bitlane.Device,
    told: Op,
    does: Op,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    a, b = (array.astype("u1") for array in operands(told))
    expected = reference.compute(does, a, b, saturate=True)
    monkeypatch.setattr("bitlane.streaming.call.lower", lambda op, *rest: lower(does, *rest))
    # Lowered calls are cached.
    call_of.cache_clear()
    request.addfinalizer(call_of.cache_clear)
    assert same(CALLS[told](device, a, b), expected)


def test_sums_are_of_what_the_circuit_was_told_to_count(
    device: bitlane.Device, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    a, b = random((7, 33), "u2", 1), random((7, 33), "u2", 2)
    monkeypatch.setattr("bitlane.streaming.call.lower", lambda op, *rest: lower(Op.COUNT_OR, *rest))
    call_of.cache_clear()
    request.addfinalizer(call_of.cache_clear)
    assert same(device.hamming(a, b), COUNT(a | b).sum(axis=1, dtype=np.uint32))


def _plan_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no plan of another test take the place of one that is to be made."""
    monkeypatch.setattr("bitlane.compiler.evaluation.compile_form", CompiledForm)


def test_sums_of_numbers_are_of_what_the_circuit_counted(
    device: bitlane.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The host multiplies counts by weights, and receives nothing else."""
    a = random((7, 33), "u2", 1)
    received: list[int] = []
    exchange = Driver.exchange

    def note(driver: Driver, writes: Any, reads: Any) -> list[Any]:
        received.extend(size for address, size in reads if address < CONTROL_BASE)
        return exchange(driver, writes, reads)

    def turn(op: Op, *rest: Any) -> Any:
        return lower(Op.COUNT_XOR if op is Op.COUNT_AND else op, *rest)

    monkeypatch.setattr("bitlane.lowering.fences.lower", turn)
    _plan_anew(monkeypatch)
    monkeypatch.setattr(Driver, "exchange", note)
    bits = 2 ** np.arange(16)
    ones = COUNT(a[..., None] ^ bits.astype("u2")).sum(axis=1, dtype="u8")
    sums = device.asarray(a).sum(axis=1)
    assert same(sums.get(), ones @ bits.astype("u8"))
    assert received == [7 * 4] * 16


@pytest.mark.parametrize(("told", "does"), [(Op.XOR, Op.XNOR), (Op.AND, Op.OR), (Op.OR, Op.NOR)])
def test_what_arrays_become_is_what_the_circuit_was_told(
    device: bitlane.Device, told: Op, does: Op, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = (array.astype("u1") for array in operands(told))
    expected = reference.compute(does, a, b)
    monkeypatch.setattr("bitlane.lowering.fences.lower", lambda op, *rest: lower(does, *rest))
    _plan_anew(monkeypatch)
    x, y = device.asarray(a), device.asarray(b)
    assert same(CALLS[told](device, x, y).get(), expected)


COMPUTATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "function": lambda a, b: np.bitwise_xor(a, b),
    "operator": lambda a, b: a ^ b,
    "operator with a number": lambda a, b: 255 ^ a,
    "operator in place": lambda a, b: a.__ixor__(b),
    "method of a function": lambda a, b: np.add.reduce(a),
    "arithmetic": lambda a, b: a + b - 2 * a,
    "comparison": lambda a, b: a == b,
    "inversion": lambda a, b: ~a,
    "shift": lambda a, b: a << 1,
}


@pytest.mark.parametrize("compute", COMPUTATIONS.values(), ids=COMPUTATIONS)
@pytest.mark.usefixtures("guard")
def test_a_computation_on_the_host_is_caught(
    device: bitlane.Device, compute: Callable[[Any, Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def cheat(driver: Driver, op: Op, inputs: list[Any], *_: Any, **__: Any) -> Any:
        return compute(*inputs)

    monkeypatch.setattr("bitlane.api.device.compute", cheat)
    with pytest.raises(HostComputation):
        device.bit_xor(random(9, "u4", 1), random(9, "u4", 2))


@pytest.mark.usefixtures("guard")
def test_a_computation_on_what_the_device_gave_back_is_caught(
    device: bitlane.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bitlane.streaming.eager.store", lambda content, *to: store(~content, *to))
    with pytest.raises(HostComputation, match="invert"):
        device.bit_not(random(9, "u4", 1), out=np.zeros(9, "u4"))
    read = Driver.read
    monkeypatch.setattr(Driver, "read", lambda *where: ~read(*where))
    with pytest.raises(HostComputation, match="invert"):
        device.bit_not(random(9, "u4", 1))


@pytest.mark.usefixtures("guard")
@pytest.mark.parametrize("shape", [(3000,), (300, 7)])
def test_elements_that_the_host_selects_are_only_copied(
    device: bitlane.Device, shape: tuple[int, ...]
) -> None:
    a, mask = random(shape, "u2", 1), random(shape[:1], "u1", 2) > 99
    x = device.asarray(a)
    for key in (mask, np.flatnonzero(mask)[::-1]):
        assert "host       selects" in bitlane.explain(x[key])
        assert same(np.asarray(x[key].get()), a[key])
        x[key] = a[key][:1]
        a[key] = a[key][:1]
        assert same(np.asarray(x.get()), a)


@pytest.mark.usefixtures("guard")
def test_a_computation_for_an_array_is_caught(
    device: bitlane.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    a = random((3, 9), "u4", 1)
    x = device.asarray(a)
    with monkeypatch.context() as patch:
        patch.setattr(
            "bitlane.arrays.elementwise.cast_on_host", lambda *given: cast_on_host(*given) ^ 1
        )
        with pytest.raises(HostComputation, match="bitwise_xor"):
            device.bit_xor(x, a)
    guarded = array_module.download
    with monkeypatch.context() as patch:
        patch.setattr("bitlane.arrays.array.download", lambda value: ~guarded(value))
        with pytest.raises(HostComputation, match="invert"):
            (x ^ a).get()
