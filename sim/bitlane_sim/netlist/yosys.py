"""The flat netlist of a circuit, as the Yosys that comes with Amaranth gives it. Changes nothing.

Only one clock domain is taken, and only what Amaranth emits; anything else is refused by name.
"""

import json
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cppsim.design import Bits, DesignPort

from ..toolchain import run_yosys

__all__ = ["YosysCell", "YosysNetlist", "flat_netlist"]

_PASSES = "proc; flatten; opt; memory_collect; opt_clean -purge"


@dataclass(frozen=True, slots=True)
class YosysCell:
    """A cell of Yosys' library: what it is, its parameters as bit strings, its connections."""

    name: str
    kind: str
    parameters: Mapping[str, str]
    ports: Mapping[str, Bits]

    def number(self, parameter: str, default: int = 0) -> int:
        """A parameter as an unsigned number; bits that do not matter count as 0."""
        text = self.parameters.get(parameter)
        return default if text is None else int(text.replace("x", "0").replace("z", "0"), 2)

    def flag(self, parameter: str) -> bool:
        """Whether a parameter is not 0."""
        return self.number(parameter) != 0


@dataclass(frozen=True, slots=True)
class YosysNetlist:
    """A circuit without hierarchy or processes.

    ``names`` gives the bits of every signal that a designer named; ``initial`` what a net is at
    power-on, where that is known.
    """

    ports: tuple[DesignPort, ...]
    cells: tuple[YosysCell, ...]
    names: Mapping[str, Bits] = field(default_factory=dict)
    initial: Mapping[int, int] = field(default_factory=dict)


def flat_netlist(text: str) -> YosysNetlist:
    """The netlist of ``text``, RTLIL whose top level is called ``top``.

    Raises ``SimulationError`` if Yosys is missing or fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        (work / "design.il").write_text(text, encoding="utf-8")
        run_yosys(f"read_rtlil design.il; {_PASSES}; write_json flat.json\n", work)
        flat = (work / "flat.json").read_text(encoding="utf-8")
    # Yosys takes the bytes of strings as signed: for 0xC3 it writes \uFFFFFFC3.
    flat = re.sub(r"\\uFFFFFF([0-9A-F]{2})", r"\\u00\1", flat)
    return _read(json.loads(flat)["modules"]["top"])


def _bits(entries: list[int | str]) -> Bits:
    # What does not matter is 0 from here on; numbers of nets begin at 2.
    return tuple(bit if isinstance(bit, int) else int(bit == "1") for bit in entries)


def _read(module: dict[str, Any]) -> YosysNetlist:
    names: dict[str, Bits] = {}
    initial: dict[int, int] = {}
    for name, net in module["netnames"].items():
        bits = _bits(net["bits"])
        if not net["hide_name"]:
            names[name] = bits
        for bit, value in zip(bits, reversed(net["attributes"].get("init", "")), strict=False):
            if value in "01":
                initial[bit] = int(value)
    return YosysNetlist(
        ports=tuple(
            DesignPort(name, port["direction"] == "output", _bits(port["bits"]))
            for name, port in module["ports"].items()
        ),
        cells=tuple(
            YosysCell(
                name,
                cell["type"],
                cell["parameters"],
                {port: _bits(bits) for port, bits in cell["connections"].items()},
            )
            for name, cell in module["cells"].items()
        ),
        names=names,
        initial=initial,
    )
