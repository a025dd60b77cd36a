"""A pool of simulated devices gives NumPy's answers, also when devices are lost; it never hangs."""

import os
import re
import signal
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from time import monotonic, sleep
from weakref import ref

import numpy as np
import pytest

import bitlane
from bitlane.errors import (
    DataTypeError,
    LinkError,
    OtherDeviceError,
    SearchError,
    SettingError,
    ShapeError,
)
from support.board.line import DriverDevice, terminal
from support.board.model import BoardModel
from support.host.arrays import model, random, same
from support.processes import succeed
from support.system.devices import DEFAULT, NARROW

pytestmark = [pytest.mark.slow, pytest.mark.any_circuit]

LARGE = 3 << 20
"""Bytes that take several rounds of pieces."""


@pytest.fixture(scope="module")
def pool() -> Iterator[bitlane.Pool]:
    with bitlane.Pool([DEFAULT, NARROW]) as pool:
        yield pool
        assert pool.lost == ()
    assert pool.processes == ()


@pytest.fixture
def pair() -> Iterator[bitlane.Pool]:
    """One that may lose its devices."""
    with bitlane.Pool([DEFAULT, DEFAULT]) as pair:
        yield pair


def is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_an_output_may_overlap_what_is_read(pool: bitlane.Pool) -> None:
    memory = random((LARGE,), "u1", 1)
    expected = memory.copy()
    expected[1:] = memory[1:] & memory[:-1]
    out = memory[1:]
    assert pool.bit_and(memory[1:], memory[:-1], out=out) is out
    assert same(memory, expected)


def test_more_queries_than_a_piece_has(pool: bitlane.Pool) -> None:
    rows = random((700, 8), "u1", 1)
    distances, indices = pool.search(rows, rows, 1)
    assert same(indices[:, 0], np.arange(700))
    assert not distances.any()


def test_threads_share_a_pool(pool: bitlane.Pool) -> None:
    def work(seed: int) -> bool:
        a = random((200, 300), "u4", seed)
        return all(same(pool.bit_xor(a, number), a ^ number) for number in range(5))

    with ThreadPoolExecutor(6) as threads:
        assert all(threads.map(work, range(12)))


def test_a_pool_keeps_no_array_of_its_last_call(pool: bitlane.Pool) -> None:
    a = random((100,), "u1")
    result = pool.bit_not(a)
    gone = ref(a), ref(result)
    del a, result
    deadline = monotonic() + 20
    # The thread that has brought the result may not have come to its next wait yet.
    while any(each() is not None for each in gone):
        assert monotonic() < deadline, "an array is held"
        sleep(0.01)


def test_a_long_call_shows_how_far_it_is(
    pool: bitlane.Pool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data = random((LARGE,), "u1")
    monkeypatch.setattr("bitlane.terminal.EVERY", 0.0005)
    pool.bit_not(data)
    assert capsys.readouterr().err == ""
    try:
        bitlane.progress()
        pool.bit_not(data)
        assert capsys.readouterr().err == ""
        monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
        pool.bit_not(data)
    finally:
        bitlane.progress(False)
    shown = capsys.readouterr().err
    assert re.search(r"pool, \d+ chunks +\d+ %", shown)
    assert shown.endswith("\r\033[K")


def test_mistakes_are_refused(pool: bitlane.Pool) -> None:
    a = random((300, 300), "u1")
    for wrong, error in [
        (lambda: pool.bit_xor(a, a[:7]), ShapeError),
        (lambda: pool.bit_xor(a, a, out=a[:7]), ShapeError),
        (lambda: pool.bit_xor(a, a + 0.5), DataTypeError),
        (lambda: pool.bit_count(a, "i8"), DataTypeError),
        (lambda: pool.hamming(a, a, dtype="f4"), DataTypeError),
        (lambda: pool.bit_xor(model(memory_bytes=1 << 20).asarray(a), a), OtherDeviceError),
        (lambda: pool.search(a, a, 0), SearchError),
        (lambda: pool.search(a, a, radius=-1), SearchError),
        (lambda: pool.search(a, a, 2, radius=6.5), SearchError),
        (lambda: pool.search(a, a, 2**31 - 1), SearchError),
        (lambda: pool.search(a[:, :9], a), ShapeError),
        (lambda: pool.search(a, a, select=[True]), ShapeError),
        (lambda: bitlane.Pool("sim"), SettingError),
        (lambda: bitlane.Pool([]), SettingError),
        (lambda: bitlane.Pool(["sim"], timeout=0), SettingError),
    ]:
        with pytest.raises(error) as caught:
            wrong()
        assert "\n" not in str(caught.value)
    assert same(pool.bit_not(a), ~a)


def test_a_device_that_cannot_be_opened_is_named(capfd: pytest.CaptureFixture[str]) -> None:
    bitlane.open(DEFAULT).close()  # compiles it, and says so, if no other test has
    capfd.readouterr()
    with pytest.raises(LinkError, match="'magic'"):
        bitlane.Pool([DEFAULT, "magic:1"])
    assert capfd.readouterr() == ("", "")


def test_what_a_killed_device_was_doing_is_done_by_the_other(pair: bitlane.Pool) -> None:
    data = random((LARGE,), "u1", 5)
    first, second = pair.processes
    # It takes a piece, and stands still with it.
    os.kill(first, signal.SIGSTOP)
    with ThreadPoolExecutor(1) as thread:
        result = thread.submit(pair.bit_not, data)
        sleep(0.2)
        assert not result.done()
        os.kill(first, signal.SIGKILL)
        assert same(result.result(600), ~data)
    assert pair.processes == (second,)
    assert pair.lost == (f"device 1, {DEFAULT!r}, process {first}: was ended by SIGKILL",)
    assert same(pair.bit_xor(data, 1), data ^ 1)


def test_a_device_that_stands_still_is_lost_in_time() -> None:
    data = random((1 << 16,), "u1", 6)  # chunks that a device computes in a hundredth of that time
    with bitlane.Pool([DEFAULT, DEFAULT], timeout=1) as pair:
        stopped = pair.processes[1]
        os.kill(stopped, signal.SIGSTOP)
        assert same(pair.bit_not(data), ~data)
        (lost,) = pair.lost
        assert lost == f"device 2, {DEFAULT!r}, process {stopped}: no answer within 1 s"
    assert not is_running(stopped)


def test_when_none_is_left_the_error_says_which(pair: bitlane.Pool) -> None:
    data = random((LARGE,), "u1", 7)
    processes = pair.processes
    for process in processes:
        os.kill(process, signal.SIGKILL)
    for _ in range(2):
        with pytest.raises(LinkError, match="no device is left") as caught:
            pair.bit_not(data)
        for process in processes:
            assert f"process {process}: was ended by SIGKILL" in str(caught.value)
        assert "\n" not in str(caught.value)


def test_a_link_that_fails_is_a_device_that_is_lost() -> None:
    data = random((400_000,), "u1", 8)
    with terminal(BoardModel(DriverDevice(memory_bytes=1 << 20)).feed) as board:
        with bitlane.Pool([DEFAULT, f"serial:{board.path}?timeout=1"]) as pool:
            assert same(pool.bit_not(data), ~data)
            board.pull()
            assert same(pool.bit_not(data), ~data)
            assert pool.devices == (DEFAULT,)
            assert pool.lost[0].startswith(f"device 2, 'serial:{board.path}")


def test_a_closed_pool_is_refused_and_leaves_no_process() -> None:
    pool = bitlane.Pool([DEFAULT])
    (process,) = pool.processes
    pool.close()
    pool.close()
    assert pool.closed
    assert not is_running(process)
    with pytest.raises(LinkError, match="is closed"):
        pool.bit_not(1)


LEFT_OPEN = f"""
import bitlane, os
pool = bitlane.Pool([{DEFAULT!r}])
print(pool.processes[0], pool.bit_not(0), flush=True)
os._exit(0)
"""


def test_a_program_that_ends_takes_its_processes_along() -> None:
    # Without `if __name__ == "__main__"`, and from no file.
    process, answer = succeed(sys.executable, "-c", LEFT_OPEN).split()
    assert answer == "-1"
    deadline = monotonic() + 20
    while is_running(int(process)):
        assert monotonic() < deadline, "the process runs on"
        sleep(0.01)
