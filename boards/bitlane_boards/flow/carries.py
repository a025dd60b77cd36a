"""Removes the CCU2C cells that nextpnr would add at the ends of an ECP5's carry chains.

nextpnr adds one CCU2C for each carry-in with a net, even a constant, and one for each carry-out
with a net, even an unread one. Here the first cell of a chain absorbs a constant carry-in if its
sum is not read, and unread carry-outs lose their nets. Nets that are read keep their values.
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
    """Shorten one CCU2C; ``nets`` counts the ports of each net, its driver included.

    The carry-out of a half is its carry-in where the table INIT0 is 1 at A0, B0, C0 and D0, and
    otherwise the table's row at A0 and B0, of its first four (Yosys' lattice/ccu2c_sim.vh). So a
    table that is 0 in all other rows, with D0 at 1, makes a carry of A0 and B0 alone.
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
