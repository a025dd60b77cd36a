"""What is dropped without ``close`` leaves nothing: no process, no thread, no file, no session."""

import gc
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from threading import enumerate as threads
from time import monotonic, sleep

import numpy as np
import pytest

import bitlane
from bitlane import dml
from support.board.line import DriverDevice, terminal
from support.board.model import BoardModel
from support.host.network import network_board
from support.processes import succeed
from support.seeds import slow
from support.system.devices import DEFAULT

Url = Callable[[Path], AbstractContextManager[str]]
Use = Callable[[str], object]

SECONDS = 20.0
"""Most seconds until processes and threads have ended."""


def simulator(text: str) -> Url:
    return lambda folder: nullcontext(text.replace("FOLDER", str(folder)))


@contextmanager
def serial(folder: Path) -> Iterator[str]:
    with terminal(BoardModel(DriverDevice(memory_bytes=1 << 20)).feed) as board:
        yield f"serial:{board.path}"


@contextmanager
def network(folder: Path) -> Iterator[str]:
    with network_board(DriverDevice(memory_bytes=1 << 20)) as board:
        yield board.url


def device(url: str) -> bitlane.Device:
    opened = bitlane.open(url)
    assert opened.bit_not(np.uint8(1)) == 254
    return opened


def array(url: str) -> bitlane.Array:
    lazy = bitlane.open(url).asarray([1, 2, 3]) ^ 1
    assert lazy.get().tolist() == [0, 3, 2]
    return lazy


def index(url: str) -> bitlane.BinaryIndex:
    rows = bitlane.BinaryIndex(bitlane.open(url), 64)
    rows.add(np.arange(64, dtype=np.uint8).reshape(8, 8))
    rows.search(np.zeros((1, 8), np.uint8), 1)
    return rows


def cycle(url: str) -> list[object]:
    """Return a device that refers to itself, as in a traceback of a user's."""
    around: list[object] = [device(url)]
    around.append(around)
    return around


def pool(url: str) -> bitlane.Pool:
    opened = bitlane.Pool([url])
    assert opened.bit_not(np.uint8(1)) == 254
    return opened


def pool_with_a_lost_device(url: str) -> bitlane.Pool:
    opened = bitlane.Pool([url, url])
    os.kill(opened.processes[0], 9)
    data = np.zeros(1 << 16, np.uint8)
    while not opened.lost:
        opened.bit_not(data)
    return opened


SIM = simulator(DEFAULT)
SMALL = "memory=64KiB&width=32&ports=1&loops=1&ops=not"
"""Options of a circuit that is made in less time, for rows that need one of their own."""

ROWS: dict[str, tuple[Url, Use]] = {
    "sim": (SIM, device),
    "sim-cycle": (SIM, cycle),
    "sim-vcd": (simulator(f"sim:compiled?{SMALL}&vcd=FOLDER/waves.vcd"), device),
    "sim-record": (simulator(f"sim:compiled?{SMALL}&record=1000"), device),
    "sim-pysim": (simulator(f"sim:pysim?{SMALL}"), lambda url: bitlane.open(url)),
    "sim-array": (SIM, array),
    "sim-index": (SIM, index),
    "sim-dml": (SIM, lambda url: dml.Device(bitlane.open(url))),
    "serial": (serial, device),
    "serial-array": (serial, array),
    "network": (network, device),
    "network-cycle": (network, cycle),
    "network-array": (network, array),
    "pool-sim": (SIM, pool),
    "pool-serial": (serial, pool),
    "pool-network": (network, pool),
    "pool-lost": (SIM, pool_with_a_lost_device),
}


def held() -> tuple[set[str], set[str], set[str]]:
    """Return the descriptors, threads and processes that this process holds."""
    descriptors = set()
    for entry in Path("/proc/self/fd").iterdir():
        try:
            descriptors.add(f"{entry.name} {entry.readlink()}")
        except FileNotFoundError:
            continue
    children = (path.read_text() for path in Path("/proc/self/task").glob("*/children"))
    return descriptors, {str(x.ident) for x in threads()}, set(" ".join(children).split())


def wait_until_none_is_held(but: tuple[set[str], set[str], set[str]]) -> None:
    deadline = monotonic() + SECONDS
    while any(left := [sorted(now - before) for now, before in zip(held(), but, strict=True)]):
        assert monotonic() < deadline, f"held: {left}"
        sleep(0.01)


SLOW = {"sim-pysim", "sim-vcd", "pool-sim", "pool-serial", "pool-network", "pool-lost"}


@pytest.mark.parametrize("row", [slow(row) if row in SLOW else row for row in ROWS])
def test_nothing_stays(row: str, tmp_path: Path) -> None:
    url, use = ROWS[row]
    with url(tmp_path) as text:
        # The first one may load libraries, and compiles the circuit.
        closed = use(text)
        if isinstance(closed, bitlane.Device | bitlane.Pool):
            closed.close()
        del closed
        gc.collect()
        before = held()
        # The board has one session: the second one is refused if the first has not ended.
        for _ in range(2):
            dropped = use(text)
            assert row.startswith("sim") or held() != before
            del dropped
            gc.collect()
            wait_until_none_is_held(before)


LEFT_OPEN = """
import bitlane, sys
device = bitlane.open(sys.argv[1])
print(device.bit_not(0))
"""


def test_a_program_that_ends_leaves_the_board_to_others(tmp_path: Path) -> None:
    with network(tmp_path) as url:
        for _ in range(2):
            assert succeed(sys.executable, "-c", LEFT_OPEN, url) == "-1\n"


def test_a_forked_process_that_drops_a_device_does_not_end_its_session(tmp_path: Path) -> None:
    with network(tmp_path) as url:
        opened = device(url)
        child = os.fork()
        if child == 0:
            # What a child does at its end without ``os._exit``, too.
            del opened
            gc.collect()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert opened.bit_not(np.uint8(1)) == 254
        opened.close()
