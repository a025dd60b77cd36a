"""A netlist with a feature that the gates do not simulate is refused, with the feature's name.

Netlists of several clocks have an input for each of their domains.
"""

from ctypes import CFUNCTYPE, byref, c_int, c_size_t, c_uint64, c_void_p

import pytest

from bitlane_boards.pins import GateModel
from bitlane_boards.readback import BoardPin, JsonNetlist, NetlistError, Side, convert, ecp5, gowin
from bitlane_boards.readback.json_netlist import Cell

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


RX_CLK = BoardPin("rx_clk", "A1", False, Side.IN)
DOMAINS: dict[str, float | BoardPin] = {"sync": 3.75, "tx": 5.0, "rx": RX_CLK}
PORTS = {"rx_clk": [2], "data": [3]}

PLL = {"FEEDBK_PATH": "CLKOP", "CLKFB_DIV": "101", "CLKI_DIV": "1", "CLKOP_DIV": "110"}


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        (
            Cell("c", "TRELLIS_FF", {}, {"CLK": [9]}, {}),
            "TRELLIS_FF c, port CLK: clocked by neither the PLL nor a pin with a clock",
        ),
        (
            Cell("c", "EHXPLLL", {**PLL, "CLKOS_DIV": "111"}, {"CLKOP": [4], "CLKOS": [5]}, {}),
            r"EHXPLLL c: makes 4\.28571 of its input's clock; expected 3\.75 or 5",
        ),
        (Cell("c", "EHXPLLL", PLL, {"CLKOS": [5]}, {}), "only a PLL with the output CLKOP"),
    ],
    ids=["clock", "ratio", "output"],
)
def test_clocks_of_no_domain_are_refused(cell: Cell, said: str) -> None:
    with pytest.raises(NetlistError, match=said):
        convert(JsonNetlist(PORTS, (cell,)), ecp5.CELLS, {}, domains=DOMAINS)


@pytest.mark.parametrize("side", [Side.IN_FALLING, Side.OUT_FALLING])
def test_a_pin_without_a_double_data_rate_is_refused(side: Side) -> None:
    pins = {"data": BoardPin("data", "B2", False, side)}
    with pytest.raises(NetlistError, match="pin B2 has no double data rate"):
        convert(JsonNetlist(PORTS, ()), ecp5.CELLS, pins, domains=DOMAINS)


def test_a_step_is_an_edge_of_the_domains_that_are_high() -> None:
    """Two flip-flops divide their clocks: one the clock of a pin, the other one the PLL's."""
    cells = [
        Cell("pll", "EHXPLLL", {**PLL, "CLKOS_DIV": "1000"}, {"CLKOP": [4], "CLKOS": [5]}, {}),
        Cell("pin", "TRELLIS_IO", {"DIR": "INPUT"}, {"B": [2], "O": [6]}, {}),
    ]
    for name, clock, q in (("rx", 6, 10), ("tx", 4, 20), ("sync", 5, 30)):
        flip_flop = {"CLK": [clock], "M": [q + 1], "Q": [q]}
        inverter = {"A": [q], "F": [q + 1]}
        cells += [
            Cell(name, "TRELLIS_FF", {"SD": "0"}, flip_flop, {}),
            Cell(f"not {name}", "TRELLIS_COMB", {"INITVAL": f"{0x5555:b}"}, inverter, {}),
        ]
    ports = {**PORTS, "rx": [11], "tx": [21], "sync": [31]}
    pins = {name: BoardPin(name, name, False) for name in ("rx", "tx", "sync")}
    netlist = JsonNetlist(ports, tuple(cells))
    model = GateModel(convert(netlist, ecp5.CELLS, pins, domains=DOMAINS), "dividers")
    simulated = {"rx": 0, "tx": 0, "sync": 0}
    before = {name: model.get(name) for name in simulated}
    entry = model.entry()
    run = CFUNCTYPE(c_int, c_void_p, c_size_t, c_uint64, c_void_p)(entry.run_until)
    for domains in (("rx",), ("tx", "sync"), (), ("sync",), ("rx", "tx", "sync")):
        for name in simulated:
            model.set(f"{name}_edge", name in domains)
            simulated[name] ^= name in domains
        assert run(entry.model, entry.numbers["rx"], 1, byref(c_int())) == 1
        assert {name: model.get(name) ^ before[name] for name in simulated} == simulated
    model.close()
