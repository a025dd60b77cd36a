"""A netlist with a feature that the gates do not simulate is refused, with the feature's name."""

import pytest

from bitlane_boards.readback import ecp5, gowin
from bitlane_boards.readback.json_netlist import Cell, JsonNetlist, NetlistError, convert

REFUSED = [
    (
        Cell("c", "TRELLIS_FF", {"CLKMUX": "INV"}, {}, {}),
        "TRELLIS_FF c: falling edges of the clock",
    ),
    (Cell("c", "TRELLIS_FF", {"LSRMODE": "PRLD"}, {}, {}), "TRELLIS_FF c: LSRMODE PRLD is not"),
    (
        Cell("c", "DP16KD", {"REGMODE_B": "OUTREG"}, {"DOB0": [2], "DOB1": [2]}, {}),
        "DP16KD c: output registers are not simulated",
    ),
    (Cell("c", "DFFN", {}, {}, {}), "DFFN c: falling edges of the clock are not simulated"),
    (Cell("c", "ALU", {"ALU_MODE": "0"}, {}, {}), "ALU c: ALU_MODE 0 is not simulated"),
]


@pytest.mark.parametrize(("cell", "said"), REFUSED)
def test_features_that_are_not_simulated_are_refused(cell: Cell, said: str) -> None:
    with pytest.raises(NetlistError, match=said):
        convert(JsonNetlist({}, (cell,)), {**ecp5.CELLS, **gowin.CELLS}, {})
