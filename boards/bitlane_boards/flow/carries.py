"""Carry chains of an ECP5 without the cells that nextpnr would add at their ends.

It leads each carry-in that has a net, a constant's too, into the chain through a CCU2C of its own,
and each carry-out that has one, if nobody reads it, out of it through another. Here the first cell
of a chain takes the constant in, where its sum is not read, and unread carry-outs lose their nets.
Never changes what any net that is read carries.
"""

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

__all__ = ["bare", "shorten"]

_CONSTANTS = ("0", "1")
_UNCONNECTED = ["x"]


def shorten(text: str) -> str:
    """Yosys' netlist ``text``, in JSON, with all chains shortened."""
    netlist = json.loads(text)
    for module in netlist["modules"].values():
        nets: Counter[object] = Counter()
        for port in module["ports"].values():
            nets.update(port["bits"])
        for cell in module["cells"].values():
            for bits in cell["connections"].values():
                nets.update(bits)
        for cell in module["cells"].values():
            if cell["type"] == "CCU2C":
                bare(cell, nets)
    return json.dumps(netlist)


def bare(cell: dict[str, Any], nets: Mapping[object, int]) -> None:
    """Shorten one CCU2C; ``nets``: to how many ports each net goes, the one that drives it too.

    A half of it has a carry-out of its carry-in where the table INIT0 is 1 at A0, B0, C0 and D0,
    else of the table's first four rows at A0 and B0 (Yosys' lattice/ccu2c_sim.vh). So a table that
    is 0 in all other rows, with D0 at 1, makes a carry of A0 and B0 alone.
    """
    pins, parameters = cell["connections"], cell["parameters"]
    carry_in, c, d = (pins[name][0] for name in ("CIN", "C0", "D0"))
    if nets[pins["COUT"][0]] == 1:
        pins["COUT"] = _UNCONNECTED
    if nets[pins["S0"][0]] > 1 or any(bit not in _CONSTANTS for bit in (carry_in, c, d)):
        return
    table = int(parameters["INIT0"], 2)
    first = table if parameters["INJECT1_0"].strip() == "NO" else 0
    row = 4 * int(c) + 8 * int(d)
    carries = 0
    for ab in range(4):
        passes = table >> row + ab & 1
        carries |= (int(carry_in) if passes else first >> ab & 1) << ab
    parameters |= {"INIT0": f"{carries:016b}", "INJECT1_0": "NO"}
    cell["connections"] |= {"CIN": _UNCONNECTED, "C0": ["0"], "D0": ["1"]}
