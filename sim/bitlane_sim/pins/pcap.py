"""Recordings of Ethernet frames that Wireshark and tcpdump open (pcap, nanoseconds)."""

import struct
from pathlib import Path

_MAGIC, _VERSION, _ETHERNET = 0xA1B23C4D, (2, 4), 1
_MOST_BYTES = 1 << 16


class PcapWriter:
    """Writes frames to the file ``path``, which is replaced. Raises ``OSError``."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self._file.write(struct.pack("<IHHiIII", _MAGIC, *_VERSION, 0, 0, _MOST_BYTES, _ETHERNET))

    def write(self, seconds: float, content: bytes) -> None:
        """Record a frame without its FCS, at ``seconds``."""
        whole, nanoseconds = divmod(round(seconds * 1e9), 10**9)
        size = len(content)
        self._file.write(struct.pack("<IIII", whole, nanoseconds, size, size) + content)

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        """May be called twice."""
        self._file.close()
