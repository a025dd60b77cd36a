"""A board at its simulated pins is found by a query to all, and set to another address."""

from collections.abc import Iterator
from ipaddress import IPv4Address
from random import Random

import pytest

from bitlane.links.udp_link import UdpLink
from bitlane_boards import boards
from bitlane_boards.pins import NoAnswerError, SimulatedNetwork
from bitlane_boards.readback import rtl_model
from bitlane_rtl.abi import CONTROL_BASE, LINE_STATUS, LINE_STATUS_OFFSET
from support.boards.session import connect_network, networked
from support.host.queries import query_of
from support.verdicts import AT_THE_PINS

pytestmark = [pytest.mark.slow, AT_THE_PINS, pytest.mark.judges("bitlane_sim.device")]

BOARD = boards()["colorlight-i5"]
PORT = 50_001
OLD, NEW = "192.168.1.50", "10.66.0.9"


@pytest.fixture(scope="module")
def network() -> Iterator[SimulatedNetwork]:
    made = networked(rtl_model(BOARD), BOARD)
    yield made
    assert made.simulation.illegal == 0
    made.close()


def mac() -> bytes:
    assert BOARD.ethernet is not None
    return BOARD.ethernet.addresses.mac


def asked(network: SimulatedNetwork, query: bytes) -> list[tuple[int, bytes]]:
    """Return the datagrams that answer ``query``, sent to all."""
    network.send_to_all(PORT, query)
    found = []
    while not network.quiet:
        found += network.advance(1.0)
    return found


def expect_silence(network: SimulatedNetwork, ip: str) -> None:
    """Expect that nobody answers ARP at ``ip``."""
    network.move(IPv4Address(ip))
    with pytest.raises(NoAnswerError, match=f"{ip} does not answer ARP"):
        network.resolve(3)


def connected(network: SimulatedNetwork, ip: str) -> UdpLink:
    network.move(IPv4Address(ip))
    network.resolve(3)
    return connect_network(network, BOARD.name)


def test_a_board_is_set_to_another_address_and_back(network: SimulatedNetwork) -> None:
    data = Random(1).randbytes(3000)
    answer = query_of()[:8] + mac() + query_of()[14:]
    assert asked(network, query_of()) == [(PORT, answer)]
    with connected(network, OLD) as link:
        link.write(0x1001, data)
    expect_silence(network, NEW)
    for before, after in ((OLD, NEW), (NEW, OLD)):
        # Malformed queries set nothing.
        for wrong in (
            query_of(mac(), after)[:-1],
            query_of(mac(), after) + b"\0",
            query_of(mac()[:-1] + b"\0", after),
            query_of(mac(), "127.0.0.1"),
            query_of(mac(), "255.255.255.255"),
            b"\0\0\0\0bind" + query_of(mac(), after)[8:],
        ):
            assert asked(network, wrong) == []
        with connected(network, before) as link:
            assert link.read(0x1001, len(data)).tobytes() == data
        assert asked(network, query_of(mac(), after)) == [(PORT, query_of(mac(), after))]
        expect_silence(network, before)
        with connected(network, after) as link:
            assert link.read(0x1001, len(data)).tobytes() == data


def test_the_status_of_the_line_is_in_the_window(network: SimulatedNetwork) -> None:
    with connected(network, OLD) as link:

        def status() -> dict[str, int]:
            data = link.read(CONTROL_BASE + LINE_STATUS_OFFSET, 4).tobytes()
            word = int.from_bytes(data, "little")
            return {name: bits.extract(word) for name, bits in LINE_STATUS.items()}

        before = status()
        assert before == {
            "UP": 1, "SPEED": 2, "FULL_DUPLEX": 1, "PRESENT": 1, "DAMAGED": before["DAMAGED"]
        }  # fmt: skip
        network.simulation.report(mbits=100, full_duplex=False)
        for number in range(3):
            network.simulation.send(bytes(64 + number))
        link.write(0x2000, bytes(4))
        now = status()
        assert (now["UP"], now["SPEED"], now["FULL_DUPLEX"]) == (1, 1, 0)
        assert now["DAMAGED"] == before["DAMAGED"] + 3
        # Another word of the window is the engine's.
        assert link.read(CONTROL_BASE, 4).tobytes() == b"LTIB"
        network.simulation.report()
