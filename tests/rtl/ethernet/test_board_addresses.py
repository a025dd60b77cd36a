"""Addresses that a single board cannot have are refused."""

from ipaddress import IPv4Address
from typing import Any

import pytest

from bitlane_rtl.ethernet.board_addresses import BoardAddresses


def test_the_default_is_a_legal_address() -> None:
    addresses = BoardAddresses()
    assert addresses.mac[0] & 3 == 2, "not a local address of one board"
    assert addresses.ip.is_private


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"mac": b"\1\0\0\0\0\1"}, "mac: 01:00:00:00:00:01"),
        ({"mac": b"\2\0\0\0\0"}, "mac: 02:00:00:00:00 is"),
        ({"ip": IPv4Address("224.0.0.1")}, "ip: 224.0.0.1"),
        ({"ip": IPv4Address("255.255.255.255")}, "ip: 255.255.255.255"),
        ({"ip": IPv4Address("0.0.0.0")}, "ip: 0.0.0.0"),
        ({"ip": IPv4Address("127.0.0.1")}, "ip: 127.0.0.1 .*; expected one like 192.168.1.50"),
        ({"mac": bytes(6)}, "mac: 00:00:00:00:00:00 .*; expected one like 02:"),
        ({"port": 0}, "port: 0; expected 1 to 65535"),
        ({"port": 65536}, "port: 65536; expected 1 to 65535"),
    ],
)
def test_wrong_addresses(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BoardAddresses(**wrong)
