"""An array on a device: what it says of itself, when it is computed, how long memory is held."""

import gc
import re
from collections.abc import Callable
from html import escape
from itertools import groupby
from typing import Any

import numpy as np
import pytest

import bitlane
from bitlane import CopyError, DataTypeError, Device, OtherDeviceError
from bitlane.compiler import count_pending
from bitlane_rtl.abi import CONTROL_BASE
from support.host.arrays import link_of, model, random, same, uploads


def downloads(device: Device) -> int:
    """Return the bytes read from the memory since the traffic was last cleared."""
    traffic = link_of(device).traffic
    return sum(size for kind, at, size in traffic if kind == "read" and at < CONTROL_BASE)


def test_what_an_array_says_of_itself(device: Device) -> None:
    a = random((2, 3, 4), "u2")
    x = device.asarray(a)
    assert (x.shape, x.dtype, x.strides, x.nbytes) == (a.shape, a.dtype, a.strides, a.nbytes)
    assert (x.ndim, x.size, x.itemsize, len(x)) == (3, 24, 2, 2)
    assert x.device is device
    assert x.T.strides == a.T.strides
    assert x.mT.shape == (2, 4, 3)
    assert device.asarray(np.asfortranarray(a)).strides == np.asfortranarray(a).strides


def test_values_that_are_all_needed_are_cheaper_read_forwards(device: Device) -> None:
    commands = []
    for step in (1, -1):
        link_of(device).log.clear()
        chain = [device.asarray(random(64, "u1"))]
        for number in range(4):
            chain.append(chain[-1] ^ np.uint8(number) if number % 2 else ~chain[-1] << 1)
        pending = chain[1:]
        for x in pending[::step]:
            x.get()
        commands.append(len(link_of(device).log))
    assert commands[0] < commands[1]


def test_arrays_are_computed_together_as_one_job(device: Device) -> None:
    a, b = random(64, "u4", 1), random(64, "u4", 2)
    x = device.asarray(a) ^ device.asarray(b)
    y, z = x & 7, device.asarray(a)
    log = link_of(device).log
    log.clear()
    bitlane.compute(x, y, z, y)
    assert len(log) == 2, "the exclusive or is shared"
    assert not x.pending
    assert not y.pending
    assert same(x.get(), a ^ b)
    assert same(y.get(), (a ^ b) & np.uint32(7))
    bitlane.compute(x, z)
    assert len(log) == 2, "computed already"


def test_other_things_are_not_computed(device: Device) -> None:
    x, other = device.asarray([1]) ^ 1, model()
    with pytest.raises(OtherDeviceError, match=r"device\.asarray copies it there"):
        bitlane.compute(x, other.asarray([1]) ^ 1)
    assert x.pending


def test_its_representation_has_its_elements(device: Device) -> None:
    for a in (random((2, 3), "u4"), random((), "f4"), random((0, 3), "i1"), random(50, "u1") > 9):
        x = device.asarray(a)
        what = f"bitlane.Array: shape {a.shape}, {a.dtype}, on {device!r}"
        assert repr(x) == f"<{what}\n{np.array2string(a)}>"
        assert np.array2string(x, separator=",") == np.array2string(a, separator=",")
        assert f"{x}" == repr(x)
        html = x._repr_html_()
        assert html.endswith(f"</table><pre>{escape(np.array2string(a))}</pre>")
        assert facts(html) == {
            "shape": str(a.shape),
            "dtype": str(a.dtype),
            "device": escape(device.description),
            "state": "computed",
        }


def facts(html: str) -> dict[str, str]:
    """Return the rows of the table that a notebook shows for an array."""
    return dict(re.findall(r"<tr><th>(\w+)</th><td>(.*?)</td></tr>", html))


def test_a_notebook_shows_the_passes_as_a_table(device: Device) -> None:
    x = device.asarray(np.arange(12, dtype=np.uint8)) ^ 1
    shown = bitlane.explain(x)
    cells = re.findall(r"<t[hd]>(.*?)</t[hd]>", shown._repr_html_())
    assert shown._repr_html_().count("<tr>") == len(shown.splitlines()) == 4
    assert cells[:3] == ["pass", "elements", "commands"]
    assert cells[7:9] == ["XOR", "12 of 8 bits"]
    assert len(cells) == 4 * 7
    assert repr(shown) == str(shown)
    x.get()
    assert bitlane.explain(x)._repr_html_() == (
        "<table><tr><th>computed already: no commands</th></tr></table>"
    )


def test_the_representation_of_what_is_pending_says_so_and_computes_nothing(device: Device) -> None:
    x = device.asarray(random((2, 3), "u4")) ^ 1
    link_of(device).traffic.clear()
    assert repr(x) == f"<bitlane.Array: shape (2, 3), uint32, on {device!r}, pending>"
    assert facts(x._repr_html_())["state"] == "pending"
    assert x._repr_html_().endswith("</table>")
    assert x.pending
    assert link_of(device).traffic == []


@pytest.mark.parametrize("shape", [(3000,), (40, 50), (3, 900), (2, 30, 40), (1001, 1)])
def test_only_the_corners_of_a_large_array_are_read(device: Device, shape: tuple[int, ...]) -> None:
    a = random(shape, "u2")
    for x, here in ((device.asarray(a), a), (device.asarray(a).T, a.T)):
        link_of(device).traffic.clear()
        assert repr(x).endswith(f"\n{np.array2string(here)}>")
        read = sum(size for kind, _, size in link_of(device).traffic if kind == "read")
        assert read < a.nbytes / 4
    with np.printoptions(formatter={"int": "<{}>".format}):
        assert "&lt;1&gt;" in device.asarray([1])._repr_html_()
    with np.printoptions(threshold=8, edgeitems=1):
        assert repr(x).endswith(f"\n{np.array2string(a.T)}>")


def test_an_array_is_sent_once_and_its_views_are_not(device: Device) -> None:
    a = random((40, 50), "u4")
    uploads(device)
    x = device.asarray(a)
    assert uploads(device) == [8000]
    views = [x.T, x[::2, ::-1], x[None, 3], x.reshape(4, 500), x.view("u1"), x[...]]
    expected = [a.T, a[::2, ::-1], a[None, 3], a.reshape(4, 500), a.view("u1"), a]
    assert uploads(device) == []
    assert device.driver.allocator.pieces == 1
    for view, want in zip(views, expected, strict=True):
        assert same(view.get(), want)
    assert same(x[0].broadcast_to((3, 50)).get(), np.broadcast_to(a[0], (3, 50)))
    assert same((x ^ x[:, :1]).get(), a ^ a[:, :1])
    # A board's line carries the constants of an expression alone.
    assert sum(uploads(device)) == 0


def test_elements_far_apart_come_without_their_gaps() -> None:
    device = model(memory_bytes=1 << 17)
    a = random((60, 60), "u4")
    x = device.asarray(a)
    link_of(device).traffic.clear()
    assert same(x[::10, ::10].get(), a[::10, ::10])
    assert downloads(device) == 4 * 36
    link_of(device).traffic.clear()
    assert np.array_equal(x, a)
    assert downloads(device) == 4


def test_an_operator_runs_when_its_value_is_needed(device: Device) -> None:
    a = random(9, "u1")
    x = device.asarray(a)
    log = link_of(device).log
    y = (x ^ 5) & 0x3F
    assert y.pending
    assert log == []
    assert same(y.get(), (a ^ 5) & 0x3F)
    assert not y.pending
    count = len(log)
    assert same(np.asarray(y), y.get())
    assert len(log) == count
    for need in (lambda z: z[1:], lambda z: z.T, lambda z: z.view("i1"), lambda z: z.reshape(3, 3)):
        z = x | 1
        need(z)
        assert not z.pending


OVERWRITTEN = {
    "an operand": """
first = x ^ 1
second = first & x
view = x[1:, ::2]
third = view | 4
x ^= 0xFFFF
x[...] = 0
view[...] = 7
results = first, second, third, x
""",
    "a computed value": """
first = x ^ 1
second = first & 0x7F
third = ~second
need(first)
first[...] = 0
results = third, second
""",
    "by way of a dropped one": """
part = x ^ 1
between = part & 3
need(part)
whole = between ^ 1
del between
part[...] = 0
results = whole,
""",
    "without a name between": """
first = x.copy()
last = ~(first.astype("u2") ^ 1).astype("i4")
first[...] = 1
second = x ^ 2
later = ~second.astype("u2")
need(second)
latest = later.astype("u4") << 1
second |= 0xF0
results = last, latest
""",
    "a selection": """
selected, sums = x[m], x[m].sum()
both = selected[:4] ^ x[[0], 2:]
x[:] = 0
results = selected, both, sums
""",
}
"""Lines that read ``x`` and then write over it; NumPy computes each line at once."""


@pytest.mark.parametrize("scene", OVERWRITTEN)
def test_what_is_read_is_computed_before_it_is_overwritten(device: Device, scene: str) -> None:
    a = random((4, 6), "u2")
    needs: list[Callable[[Any], object]] = [lambda x: x, lambda x: x.get()]
    results = []
    for x, need in zip((a.copy(), device.asarray(a)), needs, strict=True):
        names = {"x": x, "m": a % 3 > 0, "need": need}
        exec(OVERWRITTEN[scene], names)
        results.append(names["results"])
    for host, here in zip(*results, strict=True):
        assert same(here.get(), np.asarray(host))


def test_an_operator_in_place_on_a_part_is_one_command(device: Device) -> None:
    a = random((4, 6), "u2")
    x = device.asarray(a)
    x[1:, ::2] ^= x[:3, 1::2]
    a[1:, ::2] ^= a[:3, 1::2]
    assert same(x.get(), a)
    log = link_of(device).log
    before = len(log)
    x[2] |= 7
    assert len(log) == before + 1


def test_an_operator_in_place_keeps_the_array_and_its_views(device: Device) -> None:
    a = random((4, 6), "u2")
    x = device.asarray(a)
    row = x[2]
    same_array = x
    x |= 0x1001
    assert x is same_array
    assert same(row.get(), a[2] | 0x1001)
    y = x ^ 1
    y <<= 2
    assert y.pending
    assert same(y.get(), ((a | 0x1001) ^ 1) << 2)
    with pytest.raises(DataTypeError, match="out: data type uint16 for a result of int64"):
        x ^= np.int64(3)


def test_copies_and_outputs(device: Device) -> None:
    a = random((3, 4), "u4")
    x = device.asarray(a)
    y = x.copy()
    y[...] = 0
    assert same(x.get(), a)
    out = np.zeros((4, 3), "u4").T
    assert x.get(out=out) is out
    assert same(np.ascontiguousarray(out), a)
    assert device.bit_xor(x, 1, out=y) is y
    assert same(y.get(), a ^ 1)
    assert device.bit_xor(a, x, out=out) is out
    assert not out.any()


def test_one_element_as_a_number(device: Device) -> None:
    x = device.asarray(np.array([[5]], "u2"))
    assert (int(x), bool(x), x.item(), x.tolist()) == (5, True, 5, [[5]])
    assert not device.asarray(np.zeros((), "i4"))
    assert range(9)[x[0, 0]] == 5
    assert x[x[0, 0] ^ x[0, 0], 0].item() == 5
    assert [int(row[0]) for row in device.asarray([[1], [2]])] == [1, 2]


def test_an_array_that_is_there_comes_back_as_it_is(device: Device) -> None:
    x = device.asarray(random(5, "u1"))
    assert device.asarray(x) is x
    assert device.asarray(x, copy=True) is not x
    assert device.asarray(x, np.uint16).dtype == np.uint16
    for wrong in (
        lambda: device.asarray(x, np.uint16, copy=False),
        lambda: x.__array__(copy=False),
    ):
        with pytest.raises(CopyError, match="copy: False"):
            wrong()
    with pytest.raises(CopyError):
        device.asarray([1, 2], copy=False)


# --- memory -------------------------------------------------------------------------------------


def test_memory_is_freed_with_the_last_array_that_shows_it() -> None:
    gc.disable()
    try:
        device = model()
        allocator = device.driver
        x = device.asarray(random(1000, "u4"))
        view, pending = x[::2], x ^ 1
        del x
        assert allocator.allocator.pieces == 1
        del view
        assert allocator.allocator.pieces == 1
        pending.get()
        assert allocator.allocator.pieces == 1
        del pending
        assert allocator.allocator.pieces == 0
        for _ in range(100):
            device.asarray(random(2000, "u4")).T[1:].copy().get()
    finally:
        gc.enable()


def test_an_assignment_takes_no_memory_where_the_bytes_can_be_sent_as_they_are() -> None:
    device = model(memory_bytes=1 << 15)
    a = random((40, 500), "u1")
    x = device.asarray(a)
    assert 2 * x.nbytes > 1 << 15
    kept = x[:2] ^ 1
    x[...] = a[::-1]
    assert same(x.get(), a[::-1])
    assert same(kept.get(), a[:2] ^ 1)
    x[3:30] = a[3:30].astype(">i8")
    assert same(x[3:30].get(), a[3:30])


def test_a_long_chain_is_computed_on_the_way(device: Device) -> None:
    a = random(9, "u4")
    y = device.asarray(a)
    pending = []
    for i in range(1000):
        y, a = y ^ i, a ^ np.uint32(i)
        pending.append(y.pending)
    longest = max(len(list(run)) for state, run in groupby(pending) if state)
    assert 128 <= longest <= 256
    assert count_pending(y._value.node) <= 256
    assert same(y.get(), a)


def test_what_two_operands_share_counts_once(device: Device) -> None:
    a = random(9, "u4")
    y = device.asarray(a)
    for i in range(100):
        y, a = y ^ (y << i % 3), a ^ (a << np.uint32(i % 3))
        assert y.pending
    assert same(y.get(), a)


def test_an_operator_in_place_waits_only_where_nothing_is_in_memory_yet(device: Device) -> None:
    a = random(9, "u4")
    y = device.asarray(a).copy()
    link_of(device).log.clear()
    y ^= 1
    y &= 7
    assert y.pending
    assert link_of(device).log == []
    y.get()
    y |= 8
    assert not y.pending
    assert same(y.get(), ((a ^ 1) & 7) | 8)
