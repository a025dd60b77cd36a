"""The addresses of a board on its network. Plain data only."""

from dataclasses import dataclass, field
from ipaddress import IPv4Address

from .abi import DEFAULT_PORT

__all__ = ["BoardAddresses"]


@dataclass(frozen=True, kw_only=True)
class BoardAddresses:
    """The addresses at which a board answers. A query may change ``ip``: see `abi.queries`.

    Parameters
    ----------
    mac
        MAC address. The default has the bit of addresses that an administrator chooses.
    ip
        IPv4 address.
    port
        UDP port, from 1 on.

    Raises ``ValueError`` for an address that a single board cannot have.
    """

    mac: bytes = bytes.fromhex("026269746c6e")
    ip: IPv4Address = field(default_factory=lambda: IPv4Address("192.168.1.50"))
    port: int = DEFAULT_PORT

    def __post_init__(self) -> None:
        if len(self.mac) != 6 or self.mac[0] & 1 or not any(self.mac):
            raise ValueError(
                f"mac: {self.mac.hex(':')} is not the MAC address of one board; expected one like"
                " 02:00:00:00:00:01"
            )
        ip = self.ip
        if ip.is_multicast or ip.is_unspecified or ip.is_reserved or ip.is_loopback:
            raise ValueError(
                f"ip: {ip} is not the address of one board; expected one like 192.168.1.50"
            )
        if not 0 < self.port < 1 << 16:
            raise ValueError(f"port: {self.port}; expected 1 to 65535")
