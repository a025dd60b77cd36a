"""Random programs of views, operators in place or not, and assignments give what NumPy gives.

As if everything were computed at once and every operand copied first: on a fast model of a device
and on simulated circuits of three kinds.
"""

import gc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from bitlane import Array, BitlaneError, Device
from support.host.arrays import KINDS, OPERATORS, model, random, same
from support.seeds import examples
from support.system.devices import DEVICES, opened

COMPARISONS: list[np.ufunc] = [
    np.equal,
    np.not_equal,
    np.logical_and,
    np.logical_or,
    np.logical_xor,
]


class Program:
    """NumPy's arrays, and beside each the array on a device that must always be equal to it."""

    def __init__(self, data: st.DataObject, device: Device) -> None:
        self._data = data
        self._device = device
        self.pairs: list[tuple[NDArray[Any], Array]] = []
        self.steps: list[str] = []

    def run(self, steps: int) -> None:
        """Do ``steps`` random things, then compare all arrays."""
        self.new()
        actions = [
            *(self.new, self.view, self.view, self.compute, self.compute, self.compute),
            *(self.invert, self.in_place, self.in_place, self.assign, self.convert, self.reduce),
            *(self.compare, self.compare, self.test, self.look, self.forget),
        ]
        for _ in range(steps):
            self._draw(st.sampled_from(actions))()
        for number in range(len(self.pairs)):
            self._compare(number)

    def new(self) -> None:
        shape = self._draw(st.sampled_from([(), (3,), (4, 3), (2, 4, 3), (4, 1), (0, 3)]))
        kind = self._draw(st.sampled_from(KINDS))
        seed = self._draw(st.integers(0, 99))
        self.steps.append(f"new {shape} {kind} {seed}")
        content = random(shape, "u1", seed) > 99 if kind == "?" else _mixed(shape, kind, seed)
        array = np.array(content, order=self._draw(st.sampled_from(["C", "F"])))
        self._keep(array, self._device.asarray(array))

    def view(self) -> None:
        number, (host, here) = self._pick()
        key = self._draw(hnp.basic_indices(host.shape, allow_newaxis=True, max_dims=4))
        full = key if isinstance(key, tuple) else (key,)
        key = full if ... in full else (*full, ...)
        turned = self._draw(st.booleans())
        self.steps.append(f"view {number}{key}{'.T' if turned else ''}")
        host, here = host[key], here[key]
        self._keep(host.T if turned else host, here.T if turned else here)

    def compute(self) -> None:
        function = self._draw(st.sampled_from(OPERATORS))
        first, (host, here) = self._pick()
        name, other_host, other_here = self._operand(host.shape)
        self.steps.append(f"{function.__name__}({first}, {name})")
        expected = self._expected(lambda: np.asarray(function(host, other_host)))
        if expected is None:
            _refuses(lambda: function(here, other_here), self)
        else:
            self._keep(expected, function(here, other_here))

    def invert(self) -> None:
        number, (host, here) = self._pick()
        self.steps.append(f"~{number}")
        self._keep(np.asarray(~host), ~here)

    def in_place(self) -> None:
        function = self._draw(st.sampled_from(OPERATORS))
        number, (host, here) = self._pick()
        name, other_host, other_here = self._operand(host.shape)
        self.steps.append(f"{function.__name__}({number}, {name}, out={number})")
        if self._expected(lambda: function(host, other_host, out=host)) is None:
            _refuses(lambda: function(here, other_here, out=here), self)
        else:
            assert function(here, other_here, out=here) is here

    def assign(self) -> None:
        number, (host, here) = self._pick()
        name, other_host, other_here = self._operand(host.shape)
        if isinstance(other_host, int):
            name, other_host, other_here = "1", 1, 1
        self.steps.append(f"{number}[...] = {name}")
        try:
            host[...] = other_host
        except ValueError:
            _refuses(lambda: here.__setitem__(..., other_here), self)
        else:
            here[...] = other_here

    def convert(self) -> None:
        number, (host, here) = self._pick()
        kind = self._draw(st.sampled_from(KINDS))
        self.steps.append(f"{number}.astype({kind})")
        self._keep(host.astype(kind), here.astype(kind))

    def reduce(self) -> None:
        number, (host, here) = self._pick()
        function = self._draw(st.sampled_from(OPERATORS[:3]))
        axes = self._draw(st.sampled_from([None, *range(host.ndim)]))
        keep = self._draw(st.booleans())
        self.steps.append(f"{function.__name__}.reduce({number}, {axes}, keepdims={keep})")
        expected = np.asarray(function.reduce(host, axis=axes, keepdims=keep))
        self._keep(expected, function.reduce(here, axis=axes, keepdims=keep))

    def compare(self) -> None:
        function = self._draw(st.sampled_from(COMPARISONS))
        first, (host, here) = self._pick()
        name, other_host, other_here = self._operand(host.shape)
        self.steps.append(f"{function.__name__}({first}, {name})")
        expected = self._expected(lambda: np.asarray(function(host, other_host)))
        kinds = {x.dtype.str for x in (host, other_host) if isinstance(x, np.ndarray) and x.ndim}
        mixed = len(kinds) > 1 and np.result_type(*kinds).kind == "f"
        if expected is None or (mixed and function in COMPARISONS[:2]):
            _refuses(lambda: function(here, other_here), self)
        else:
            self._keep(expected, function(here, other_here))

    def test(self) -> None:
        number, (host, here) = self._pick()
        axes = self._draw(st.sampled_from([None, *range(host.ndim)]))
        keep = self._draw(st.booleans())
        function = self._draw(st.sampled_from([np.any, np.all, np.sum, np.count_nonzero]))
        self.steps.append(f"{function.__name__}({number}, {axes}, keepdims={keep})")
        expected = np.asarray(function(host, axis=axes, keepdims=keep))
        self._keep(expected, function(here, axis=axes, keepdims=keep))

    def look(self) -> None:
        self._compare(self._pick()[0])

    def forget(self) -> None:
        if len(self.pairs) > 1:
            number, _ = self._pick()
            self.steps.append(f"del {number}")
            del self.pairs[number]

    def _compare(self, number: int) -> None:
        host, here = self.pairs[number]
        assert here.shape == host.shape, self
        assert same(here.get(), host), f"array {number} is not {host.tolist()}: {self}"

    def _operand(self, shape: tuple[int, ...]) -> tuple[str, Any, Any]:
        """Draw a second operand: an array of the device, one of the host, or a Python integer."""
        kind = self._draw(st.sampled_from(["here", "here", "here", "host", "number"]))
        if kind == "number":
            number = self._draw(st.sampled_from([0, 1, 5, 7, 64, 200, -1, -3, 70000]))
            return str(number), number, number
        number, (host, here) = self._pick()
        # The device gets a copy, because NumPy computes its side of a step first.
        return (
            (str(number), host, here) if kind == "here" else (f"host {number}", host, host.copy())
        )

    def _expected(self, call: Callable[[], Any]) -> Any:
        """Return NumPy's result, or None if NumPy raises an error."""
        try:
            return call()
        except (TypeError, ValueError, OverflowError):
            return None

    def _pick(self) -> tuple[int, tuple[NDArray[Any], Array]]:
        number = self._draw(st.integers(0, len(self.pairs) - 1))
        return number, self.pairs[number]

    def _keep(self, host: NDArray[Any], here: Array) -> None:
        assert here.dtype == host.dtype, f"{here.dtype}, not {host.dtype}: {self}"
        assert here.shape == host.shape, f"{here.shape}, not {host.shape}: {self}"
        self.pairs.append((host, here))

    def _draw(self, strategy: st.SearchStrategy[Any]) -> Any:
        return self._data.draw(strategy)

    def __repr__(self) -> str:
        return "; ".join(self.steps)


def _mixed(shape: tuple[int, ...], kind: str, seed: int) -> NDArray[Any]:
    """Return random integers; half of them are small enough for shift counts."""
    wide = random(shape, kind, seed)
    small = np.asarray(wide % np.array(19, kind))
    return np.where(random(shape, "u1", seed) > 127, wide, small)


def _refuses(call: Callable[[], Any], program: Program) -> None:
    """Expect that ``call`` raises an error of bitlane that is also one of NumPy's types."""
    with pytest.raises((TypeError, ValueError, OverflowError)) as caught:
        call()
    assert isinstance(caught.value, BitlaneError), f"{caught.value!r}: {program}"
    assert "\n" not in str(caught.value), program


@pytest.fixture(scope="module", params=DEVICES)
def circuit(request: pytest.FixtureRequest) -> Iterator[Device]:
    with opened(request.param) as device:
        yield device
        gc.collect()


@examples(0.4)
@given(data=st.data())
def test_programs_on_a_model(data: st.DataObject) -> None:
    device = model()
    Program(data, device).run(data.draw(st.integers(1, 14)))
    gc.collect()
    assert device.driver.allocator.pieces == 0, "memory was not given back"


@given(data=st.data())
def test_programs_on_circuits(circuit: Device, data: st.DataObject) -> None:
    Program(data, circuit).run(data.draw(st.integers(1, 14)))
