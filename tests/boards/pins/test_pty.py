"""Pins as a port and behind a pseudo-terminal: not a byte is lost, and time passes by itself."""

import os
import random
import select
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from serial import Serial

from bitlane_boards.pins import PinSimulation, PtyServer, SimulatedPort, pty
from support.sim.answerer import Answerer, answers, serving

DIVIDER = 8
CLOCK_HZ = 8_000_000
BAUD = CLOCK_HZ // DIVIDER


@pytest.fixture
def server() -> Iterator[PtyServer]:
    simulation = PinSimulation(Answerer(DIVIDER), DIVIDER)
    server = PtyServer(simulation, CLOCK_HZ)
    server.warm_up()
    yield server
    server.close()
    server.close()
    simulation.close()


def exchange(port: Serial, data: bytes) -> bytes:
    """Write from a thread of its own: answers come while the terminal takes no more."""
    writer = threading.Thread(target=port.write, args=(data,))
    writer.start()
    got = port.read(len(data))
    writer.join()
    return bytes(got)


def test_bytes_go_through_both_ways_and_none_is_lost(server: PtyServer) -> None:
    data = random.Random(5).randbytes(60_000)
    with serving(server), Serial(server.name, BAUD, timeout=20) as port:
        assert exchange(port, data) == bytes(answers(data))
    assert server.sent == server.received == len(data)
    assert server.simulation.framing_errors == 0


def test_single_bytes_are_answered_before_the_next_one(server: PtyServer) -> None:
    data = random.Random(6).randbytes(100)
    with serving(server), Serial(server.name, BAUD, timeout=20) as port:
        for byte, answer in zip(data, answers(data), strict=True):
            port.write(bytes([byte]))
            assert port.read(1) == bytes([answer])


def test_clients_that_know_nothing_of_terminals_get_every_byte_as_it_is(server: PtyServer) -> None:
    """A terminal that is not raw would eat or change control characters, and echo."""
    data = bytes(range(256))
    right = bytes(answers(data))
    with serving(server):
        client = os.open(server.name, os.O_RDWR | os.O_NOCTTY)
        assert os.write(client, data) == len(data)
        got = b""
        while len(got) < len(right) and select.select([client], [], [], 20)[0]:
            got += os.read(client, 1000)
        os.close(client)
    assert got == right


@pytest.mark.parametrize("baud", [115_200, BAUD // 2, 2 * BAUD])
def test_a_client_at_another_speed_gets_nothing_right(server: PtyServer, baud: int) -> None:
    data = random.Random(9).randbytes(20)
    with serving(server):
        with Serial(server.name, baud, timeout=0.25) as port:
            port.write(data)
            assert port.read(len(data)) != bytes(answers(data))
    assert server.simulation.divider == pytest.approx(CLOCK_HZ / baud)


@pytest.mark.parametrize("baud", [BAUD - 12_345, BAUD + 12_345])
def test_a_speed_without_a_name_that_is_close_will_do(server: PtyServer, baud: int) -> None:
    with serving(server), Serial(server.name, baud, timeout=20) as port:
        port.write(b"x")
        assert port.read(1) == bytes(answers(b"x"))
    assert server.simulation.divider == pytest.approx(CLOCK_HZ / baud)


def test_clients_come_and_go(server: PtyServer) -> None:
    data = random.Random(7).randbytes(4000)
    right = bytes(answers(data))
    with serving(server):
        for start in range(0, 4000, 1000):
            with Serial(server.name, BAUD, timeout=20) as port:
                part = slice(start, start + 1000)
                assert exchange(port, data[part]) == right[part]


def test_answers_that_nobody_reads_are_kept(server: PtyServer) -> None:
    """More than the kernel holds: the clock waits for the reader, and nothing is dropped."""
    data = random.Random(8).randbytes(150_000)
    with serving(server), Serial(server.name, BAUD, timeout=20, write_timeout=20) as port:
        writer = threading.Thread(target=port.write, args=(data,))
        writer.start()
        writer.join(1)
        got = port.read(len(data))
        writer.join()
    assert got == bytes(answers(data))


def test_the_clock_stands_while_nothing_is_to_be_done(
    server: PtyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert server.resting
    start = server.simulation.cycle
    with serving(server), Serial(server.name, BAUD, timeout=20) as port:
        port.write(b"x")
        assert port.read(1)
    for _ in range(1000):
        if server.resting:
            break
        server.serve(0.01)
    assert server.resting
    before = server.simulation.cycle
    # A byte each way, and 64 byte times of rest.
    assert before - start <= (2 + 64 + 1) * 10 * DIVIDER
    turns = 0

    def counted(*arguments: Any) -> Any:
        nonlocal turns
        turns += 1
        return wait(*arguments)

    wait = select.select
    monkeypatch.setattr(pty.select, "select", counted)
    server.serve(0.05)
    assert server.simulation.cycle == before
    # Once until the end; twice if that is a bit early.
    assert turns <= 3


def test_a_terminal_that_is_closed_is_gone(server: PtyServer) -> None:
    with Serial(server.name, BAUD, timeout=0.1) as port:
        server.close()
        with pytest.raises(OSError, match=r"Input/output error|disconnected|readiness"):
            port.write(b"x")


# --- pins as a port -------------------------------------------------------------------------------


@pytest.fixture
def port() -> SimulatedPort:
    return SimulatedPort(PinSimulation(Answerer(DIVIDER), DIVIDER), CLOCK_HZ)


def test_read_gives_what_there_is_and_waits_for_one_byte(port: SimulatedPort) -> None:
    assert port.write(b"abcdef") == 6
    assert port.simulation.cycle == 0
    first = port.read(100)
    assert first == bytes(answers(b"a"))
    port.simulation.run(1000)
    assert port.in_waiting == 5
    assert first + port.read(2) + port.read(100) == bytes(answers(b"abcdef"))
    assert port.in_waiting == 0


def test_timeout_is_simulated_time(port: SimulatedPort) -> None:
    port.timeout = 0.001
    assert port.read(1) == b""
    assert port.simulation.cycle == 8000
    port.timeout = 0
    assert port.read(1) == b""
    assert port.simulation.cycle == 8000
    assert port.seconds == pytest.approx(0.001)


def test_flush_lets_everything_go_out(port: SimulatedPort) -> None:
    port.write(bytes(20))
    assert port.out_waiting == 20
    port.flush()
    assert port.out_waiting == 0
    port.reset_input_buffer()
    assert port.in_waiting == 0


def test_a_closed_port_is_told(port: SimulatedPort) -> None:
    port.close()
    port.close()
    assert not port.is_open
    for use in (port.read, port.flush, lambda: port.write(b"x"), lambda: port.in_waiting):
        with pytest.raises(OSError, match="closed"):
            use()
