"""The circuit of a bitstream with flippable LUT rows equals the file, with and without a flip."""

import json
import os
import random
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from amaranth.hdl import Cat, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from bitlane.errors import BitlaneError
from bitlane_boards.pins import GateModel, PinSimulation
from bitlane_boards.pins.netlist import HIGH, NetlistBuilder
from bitlane_boards.readback.asc import Bitstream
from bitlane_boards.readback.ice40 import Ice40Netlist, extract
from cppsim import Batch, Program
from flips.campaign import FlipCampaign, all_flips
from flips.circuit import FlippableCircuit, FlippableLut
from flips.copies import Flip, flipped, line_crc, seen_by_copies
from flips.exchanges import levels
from flips.outcome import load_flips
from flips.stimulus import Section, Stimulus
from flips.tables import gates
from support.boards.small_builds import DIVIDER, PACKAGES, PLACES, ice40
from support.sim.answerer import Store
from support.sim.flip_copies import COPIES

pytestmark = [pytest.mark.slow, pytest.mark.any_circuit]

TABLES = random.Random(1).sample(range(1 << 16), 500)


class Tables(wiring.Component):
    """One LUT for each of `TABLES`, all with the same four inputs."""

    row: In(4)
    out: Out(len(TABLES))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.comb += self.out.eq(Cat(gates(table, list(self.row)) for table in TABLES))
        return m


def test_gates_give_every_row_of_a_table() -> None:
    batch = Batch(Tables(), 16, "threads")
    batch.set("row", np.arange(16))
    words = np.ascontiguousarray(batch.get("out")).astype("<u8").view(np.uint8)
    bits = np.unpackbits(words, axis=1, bitorder="little")[:, : len(TABLES)]
    for table, column in zip(TABLES, bits.T, strict=True):
        assert sum(int(bit) << row for row, bit in enumerate(column)) == table, hex(table)


@cache
def small_bits(store: Store) -> Bitstream:
    """Return the bits of a small bitstream, which is built once per ``store``."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "top.bin"
        file.write_bytes(ice40("hx8k", store))
        return Bitstream.read(file)


def made(bits: Bitstream) -> Ice40Netlist:
    """Extract the netlist from ``bits``."""
    return extract(bits, PACKAGES["hx8k"], PLACES["hx8k"])


@cache
def small(store: Store) -> Ice40Netlist:
    """Return the netlist of `small_bits`, which is extracted once per ``store``."""
    return made(small_bits(store))


def stimulus(found: Ice40Netlist, data: bytes) -> Stimulus:
    """Return line levels: a break, then ``data`` with one stop bit missing."""
    line = [1] * 5 + [0] * 11 + [1] * 3 + levels(data)
    line[-15] ^= 1
    count = sum(len(cell.rows) for cell in found.cells)
    sections = Section("greeting", 0, 60), Section("memory", 60, len(line))
    never = np.zeros(count, np.bool_)
    return Stimulus(np.array(line, np.uint8), DIVIDER, sections, (), never, 0)


@pytest.mark.parametrize("store", [Store.BLOCK, Store.WIDE])
def test_each_flip_is_seen_where_a_flipped_netlist_is(store: Store) -> None:
    found = small(store)
    traffic = stimulus(found, random.Random(4).randbytes(14))
    flips = all_flips(found.cells, traffic)
    campaign = FlipCampaign(found.netlist, found.cells, flips, traffic).sampled(COPIES, seed=1)
    results = campaign.batch("threads").run(campaign.program())
    assert int(results["line 1"][-1]) == line_crc(found.netlist, traffic)
    outcome = campaign.outcome(results)
    never = len(outcome.parts)
    assert (outcome.line < never).tolist() == seen_by_copies(campaign, pins=False)
    assert (outcome.seen < never).tolist() == seen_by_copies(campaign, pins=True)
    rows = {str(row["what"]): int(row["flips"]) for row in outcome.rows(campaign.flips)}
    # A kind without flips would compare nothing.
    for kind in ("seen on the line", "looked up, not seen", "never looked up"):
        assert rows[kind] > 0, rows


def test_a_flip_is_seen_where_a_flipped_file_is() -> None:
    found, bits = small(Store.BLOCK), small_bits(Store.BLOCK)
    traffic = stimulus(found, random.Random(4).randbytes(14))
    flips = all_flips(found.cells, traffic)
    campaign = FlipCampaign(found.netlist, found.cells, flips, traffic).sampled(8, seed=6)
    outcome = campaign.outcome(campaign.batch("threads").run(campaign.program()))
    sound = line_crc(found.netlist, traffic)
    expected = []
    for lut, row in zip(campaign.flips.luts, campaign.flips.rows, strict=True):
        with flipped(bits, Flip(found.cells[lut], int(row))):
            crc = line_crc(made(bits).netlist, traffic)
        expected.append(bool(crc != sound))
    assert (outcome.line < len(outcome.parts)).tolist() == expected
    assert set(expected) == {False, True}


def test_a_folder_gives_the_same(tmp_path: Path) -> None:
    found = small(Store.BLOCK)
    traffic = stimulus(found, random.Random(4).randbytes(14))
    flips = all_flips(found.cells, traffic)
    campaign = FlipCampaign(found.netlist, found.cells, flips, traffic).sampled(70, seed=2)
    expected = campaign.batch("threads").run(campaign.program())
    campaign.export(tmp_path)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-m", "cppsim.batch", ".", "--no-memories", "--backend", "threads"]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout)["instances"] == 71
    with np.load(tmp_path / "results.npz") as results:
        assert not [name for name in results.files if name.startswith("memory:")]
    loaded, outcome = load_flips(tmp_path)
    assert (loaded.locations == campaign.flips.locations).all()
    assert outcome.rows(loaded) == campaign.outcome(expected).rows(campaign.flips)
    assert 0 < int(outcome.rows(loaded)[1]["flips"]) < 70


def test_without_a_flip_the_line_is_the_files_in_every_cycle() -> None:
    found = small(Store.BLOCK)
    traffic = stimulus(found, random.Random(5).randbytes(30))
    luts = [FlippableLut(cell.inputs, cell.output, cell.table) for cell in found.cells]
    circuit = FlippableCircuit(found.netlist, luts)
    program = Program().set("flip_lut", circuit.none)
    with program.repeat(len(traffic.levels)):
        program.set("rx", traffic.levels[None].astype(np.int64))
        with program.repeat(DIVIDER):
            program.get("tx").get("busy").step()
    got = Batch(circuit, 1, "threads").run(program)
    simulation = PinSimulation(GateModel(found.netlist, "gates"), DIVIDER)
    for bit, level in enumerate(traffic.levels.tolist()):
        simulation.set("rx", level)
        for cycle in range(DIVIDER):
            shown = {name: simulation.get(name) for name in ("tx", "busy")}
            expected = {name: int(got[name][0, bit, cycle]) for name in shown}
            assert shown == expected, f"bit {bit}, cycle {cycle}"
            simulation.run(1)


def test_a_lut_on_itself_gets_the_level_of_the_cycle_before() -> None:
    builder = NetlistBuilder()
    rx, tx = builder.signal(), builder.signal()
    builder.inputs["rx"], builder.outputs["tx"] = (rx,), (tx,)
    # The table ignores its second input.
    builder.lut(0b1010, [rx, tx], tx)
    circuit = FlippableCircuit(builder.build(), [FlippableLut((rx, tx), tx, 0b1010)])
    batch = Batch(circuit, 3, "threads")
    # Row 2: the output stays high once it is high. Row 3: it falls after a cycle and rises again.
    batch.set("flip_lut", np.array([circuit.none, 0, 0]))
    batch.set("flip_row", np.array([0, 2, 3]))
    shown = []
    for level in (0, 1, 1, 1, 0, 0):
        batch.set("rx", level)
        shown.append(batch.get("tx").tolist())
        batch.step()
    assert shown == [[0, 0, 0], [1, 1, 1], [1, 1, 0], [1, 1, 1], [0, 1, 0], [0, 1, 0]]


def test_memories_with_ports_of_two_widths_are_refused() -> None:
    builder = NetlistBuilder()
    signals = [builder.signal() for _ in range(4)]
    memory = builder.memory(np.zeros(4, np.uint8))
    builder.read_port(memory, HIGH, [(signals[0], 1)], [(signals[1], 0)])
    builder.write_port(memory, HIGH, [(signals[0], 2)], [(signals[2], 0, HIGH)])
    builder.outputs["tx"] = (signals[1],)
    circuit = FlippableCircuit(builder.build(), [])
    with pytest.raises(BitlaneError, match="memory 0 of the netlist has ports of different widths"):
        circuit.elaborate(None)
