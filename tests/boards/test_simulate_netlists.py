"""Routed netlists of ECP5 and synthesised ones of Gowin: bytes and cycles as the RTL has them."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bitlane_boards.pins import GateModel, PinSimulation
from bitlane_boards.pins.netlist import Netlist
from bitlane_boards.readback import ecp5 as ecp5_readback
from bitlane_boards.readback import gowin as gowin_readback
from bitlane_boards.readback.json_netlist import JsonNetlist, NetlistError, convert
from support.boards.small_builds import DIVIDER, ECP5_PINS, GOWIN_PINS, ecp5, gowin, talk
from support.sim.answerer import Answerer, Store, answers

pytestmark = pytest.mark.slow


def from_ecp5(path: Path) -> Netlist:
    return convert(JsonNetlist.read(path), ecp5_readback.CELLS, ECP5_PINS)


def from_gowin(path: Path) -> Netlist:
    return convert(JsonNetlist.read(path), gowin_readback.CELLS, GOWIN_PINS)


FAMILIES = [(ecp5, from_ecp5), (gowin, from_gowin)]


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


def test_a_changed_lut_of_the_netlist_shows(tmp_path: Path) -> None:
    def flip(cell: dict[str, Any]) -> None:
        table = cell["parameters"]["INITVAL"]
        cell["parameters"]["INITVAL"] = "".join("10"[int(bit)] for bit in table)

    data = random.Random(4).randbytes(100)
    path = changed(ecp5(), tmp_path, "TRELLIS_COMB", flip, "CCU2")
    simulation = PinSimulation(GateModel(from_ecp5(path), "flipped"), DIVIDER)
    assert talk(simulation, data)[0] != bytes(answers(data))


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


def test_what_is_no_netlist_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "top.json"
    for text in ("", "[]", "{}", '{"modules": {}}', '{"modules": {"a": {}}}'):
        path.write_text(text)
        with pytest.raises(NetlistError, match=r"top\.json: no netlist of one top module"):
            JsonNetlist.read(path)
    with pytest.raises(FileNotFoundError):
        JsonNetlist.read(tmp_path / "nothing")


def test_what_is_no_text_is_not_quoted(tmp_path: Path) -> None:
    path = tmp_path / "top.json"
    for content in (b"\xff" * 10_000, b"[" * 100_000):
        path.write_bytes(content)
        with pytest.raises(NetlistError, match=r"top\.json: no netlist") as caught:
            JsonNetlist.read(path)
        assert len(str(caught.value)) < 300
