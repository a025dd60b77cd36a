"""`make flips`: the traffic is valid, a flip is seen where a flipped netlist or file shows it.

The table counts each flip once. A small bitstream and that of a board are flipped; the flipped
netlists are evaluated in another way than the batch.
"""

import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from amaranth.hdl import Cat, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from bitlane.command_line import DONE, UNUSABLE
from bitlane.errors import BitlaneError
from bitlane_boards import boards
from bitlane_boards.pins import HIGH, NetlistBuilder
from bitlane_boards.readback import Bitstream, Ice40Netlist, board_netlist, extract
from bitlane_rtl.abi import (
    CONTROL_BASE,
    RECORD,
    RECORD_BYTES,
    RING_OFFSET,
    Mode,
    Op,
    Request,
    Status,
    register,
)
from bitlane_rtl.configuration import Configuration
from bitlane_rtl.configurations import full
from cppsim import Batch
from flips.campaign import FlipCampaign, all_flips
from flips.circuit import FlippableCircuit, FlippableLut, gates
from flips.copies import Flip, flipped, line_crc, seen_by_copies
from flips.exchanges import ExchangeWriter, levels
from flips.outcome import FlipOutcome, Flips, load_flips
from flips.run import main
from flips.stimulus import Section, Stimulus, compose
from support.boards.board_builds import DIVIDER, PACKAGES, PLACES, built, ice40
from support.record import Record
from support.serial.frames import DELIMITER, asked, request_in, uart_bytes
from support.sim.answerer import Store
from support.sim.flip_copies import COPIES
from support.watched import bounds_of, walk_of

pytestmark = [pytest.mark.any_rtl, pytest.mark.any_face, pytest.mark.reads("tests/support/sim")]

HX8K = boards()["hx8k"].configuration
FULL = replace(full(), memory_bytes=1 << 14)
BITS = {bits.name: bits for bits in RECORD["CONTROL"].bits}


def requests(burst: list[int]) -> list[tuple[int, int, int, bytes]]:
    """Return kind, address, size and data of each frame in ``burst``, all undamaged."""
    line, _ = uart_bytes(np.array(burst, np.uint8), 1)
    found = []
    for block in filter(None, line.split(DELIMITER)):
        request = request_in(block)
        assert request is not None
        _, kind, size, address, data = asked(request)
        found.append((kind, address, size, data))
    return found


def records(burst: list[int]) -> list[list[int]]:
    """Return the records of ``burst``, as words: all writes of 24 bytes or more to the ring."""
    ring = range(CONTROL_BASE + RING_OFFSET, CONTROL_BASE + RING_OFFSET + 64 * RECORD_BYTES)
    return [
        [int.from_bytes(data[k : k + 4], "little") for k in range(0, size, 4)]
        for kind, address, size, data in requests(burst)
        if kind == Request.WRITE and address in ring and size >= 24
    ]


@pytest.mark.parametrize("configuration", [HX8K, FULL], ids=["hx8k", "full"])
def test_every_operator_of_the_circuit_is_used(configuration: Configuration) -> None:
    writer = ExchangeWriter(configuration)
    assert writer.operators()
    assert writer.recovery()  # clears the engine, and so the doorbell
    (burst,) = writer.operators()
    written = records(burst)
    used = sorted(BITS["OP"].extract(words[0]) for words in written)
    assert used == sorted(configuration.ops - {Op.SEARCH})
    doorbells = [
        int.from_bytes(data, "little")
        for kind, address, _, data in requests(burst)
        if address == CONTROL_BASE + register("DOORBELL").offset
    ]
    assert doorbells[-1] == len(written)
    assert max(b - a for a, b in zip([0, *doorbells], doorbells, strict=False)) <= HX8K.slots


@pytest.mark.parametrize("configuration", [HX8K, FULL], ids=["hx8k", "full"])
def test_valid_commands_are_accepted_by_the_circuit(configuration: Configuration) -> None:
    writer = ExchangeWriter(configuration)
    modes, count = set(), 0
    for seed in range(300):
        bursts = writer.exchange(seed)
        # Many exchanges of other kinds are damaged; valid commands are one burst.
        for words in records(bursts[0]) if len(bursts) == 1 else []:
            record = Record(words)
            assert record.refusal(configuration) is Status.OK, f"seed {seed}: {words}"
            for name in record.streams:
                low, high = bounds_of(walk_of(record, name))
                assert configuration.memory_base <= low, f"seed {seed}: {words}"
                assert high == record.word(f"{name}_LAST"), f"seed {seed}: {words}"
            modes |= {BITS[f"{x}_MODE"].extract(words[0]) for x in "ABY"}
            count += 1
    assert count > 200
    assert modes >= {Mode.DENSE, Mode.STRIDED, Mode.REPEAT}


def test_an_exchange_depends_on_its_seed_and_the_exchanges_before() -> None:
    one, other = ExchangeWriter(HX8K), ExchangeWriter(HX8K)
    for seed in (3, 1, 3, 8):
        assert one.exchange(seed) == other.exchange(seed)
    assert one.exchange(3) != one.exchange(4)


def test_memory_is_folded_in_halves() -> None:
    bursts = ExchangeWriter(HX8K).folding()
    folded = [words for burst in bursts for words in records(burst)]
    runs = [words[RECORD["RUN"].word] for words in folded]
    assert runs == [4096, 2048, 1024, 512, 256, 128]
    assert requests(bursts[-1])[0][:3] == (Request.READ, HX8K.memory_base, 128)


PARTS = ("greeting", "memory")
FLIPS = Flips(
    luts=np.array([0, 0, 1, 2, 2]),
    rows=np.array([3, 7, 0, 1, 2]),
    locations=np.array([[1, 2, 0], [1, 2, 0], [1, 2, 1], [5, 5, 7], [5, 5, 7]]),
    reached=np.array([True, True, True, True, False]),
    longest=12_345,
)
SHOWN = {
    # The last instance runs without a flip.
    "line 0": [9, 4, 4, 4, 4, 4],
    "line 1": [8, 5, 5, 5, 5, 5],
    "leds 0": [1, 1, 1, 1, 1, 1],
    "leds 1": [2, 3, 2, 2, 2, 2],
    "addressed 0": [1, 1, 0, 0, 0, 0],
    "addressed 1": [1, 1, 1, 0, 0, 0],
}
RESULTS = {name: np.array(shown, np.uint64) for name, shown in SHOWN.items()}
TABLE = """\
bits that inputs can choose                                    5
  seen at a pin                                                2
    seen on the line                                           1
    seen after greeting                                        1
    seen after memory                                          2
  looked up, not seen                                          1
  never looked up                                              2
    nor by the sound board in 12,345 cycles                    1
"""


def test_each_flip_is_counted_where_it_was_seen_first() -> None:
    outcome = FlipOutcome.of(FLIPS, PARTS, RESULTS)
    assert outcome.line.tolist() == [0, 2, 2, 2, 2]
    assert outcome.leds.tolist() == [2, 1, 2, 2, 2]
    assert outcome.looked_up.tolist() == [0, 0, 1, 2, 2]
    same_later = RESULTS | {"line 1": np.full(6, 5, np.uint64)}
    assert FlipOutcome.of(FLIPS, PARTS, same_later).line[0] == 0


def test_a_flip_that_is_seen_and_never_looked_up_is_an_error() -> None:
    results = RESULTS | {"line 1": np.array([8, 5, 5, 6, 5, 5], np.uint64)}
    with pytest.raises(BitlaneError, match=r"row 1 of LUT 7 in tile 5,5 was seen and never looked"):
        FlipOutcome.of(FLIPS, PARTS, results)


def test_a_folder_that_was_run_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    FLIPS.save(tmp_path / "flips.npz", PARTS)
    np.savez(tmp_path / "results.npz", **RESULTS)  # type: ignore[arg-type]
    assert main(["hx8k", "--results", str(tmp_path)]) == DONE
    assert capsys.readouterr().out == TABLE


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--results", "nowhere"), "expected a folder of flips that was run"),
        (("--bitstream", "nowhere"), "nowhere: no such file; bitlane build hx8k makes it"),
        (("--json", "nowhere/flips.json"), "expected a folder that is there"),
        (("--instances", "0"), "argument --instances: '0': expected 1 or more"),
        (("--cycles", "0"), "argument --cycles: '0': expected 1 or more"),
        (("--pool", "0"), "argument --pool: '0': expected 1 or more"),
    ],
)
def test_bad_input_is_refused(
    words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code: object = main(["hx8k", *words])
    except SystemExit as stop:
        code = stop.code
    *usage, line = capsys.readouterr().err.splitlines()
    assert (code, said in line) == (UNUSABLE, True), line
    assert bool(usage) == line.startswith("flips: error: argument")


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


def small(store: Store, count: int, seed: int) -> FlipCampaign:
    """Return a campaign of ``count`` flips: the line has a break, then a stop bit is missing."""
    found = made(small_bits(store))
    line = [1] * 5 + [0] * 11 + [1] * 3 + levels(random.Random(4).randbytes(14))
    line[-15] ^= 1
    never = np.zeros(sum(len(cell.rows) for cell in found.cells), np.bool_)
    sections = Section("greeting", 0, 60), Section("memory", 60, len(line))
    traffic = Stimulus(np.array(line, np.uint8), DIVIDER, sections, (), never, 0)
    flips = all_flips(found.cells, traffic)
    return FlipCampaign(found.netlist, found.cells, flips, traffic).sampled(count, seed)


def agreed(campaign: FlipCampaign, oscillating: float = 0) -> dict[str, int]:
    """Assert that a batch sees the flips that copies of the netlist see; return its table.

    The copies show an oscillating LUT at once, the batch only if a pin shows it. ``oscillating`` is
    the largest share of such flips.
    """
    results = campaign.batch("threads").run(campaign.program())
    last = len(campaign.parts()) - 1
    assert int(results[f"line {last}"][-1]) == line_crc(campaign.netlist, campaign.stimulus)
    outcome, apart = campaign.outcome(results), set[int]()
    for shown, pins in ((outcome.line, False), (outcome.seen, True)):
        seen = shown < len(outcome.parts)
        copies = np.array(seen_by_copies(campaign, pins=pins))
        for number in np.flatnonzero(seen != copies):
            cell = campaign.cells[campaign.flips.luts[number]]
            where = f"row {campaign.flips.rows[number]} of LUT {cell.number} in {cell.x},{cell.y}"
            assert copies[number], where
            assert cell.output in cell.inputs, where
            apart.add(int(number))
    assert len(apart) <= oscillating * len(campaign.flips)
    return {str(row["what"]): int(row["flips"]) for row in outcome.rows(campaign.flips)}


@pytest.mark.slow
@pytest.mark.parametrize("store", [Store.BLOCK, Store.WIDE])
def test_each_flip_is_seen_where_a_flipped_netlist_is(store: Store) -> None:
    rows = agreed(small(store, COPIES, seed=1))
    # A kind without flips would compare nothing.
    for kind in ("seen on the line", "looked up, not seen", "never looked up"):
        assert rows[kind] > 0, rows


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_flips_of_a_board_are_seen_where_flipped_netlists_are(
    record_property: Callable[[str, object], None],
) -> None:
    board, cycles = boards()["hx8k"], 300_000
    found, _ = board_netlist(board, built(board) / "hx8k.bin")
    traffic = compose(board, found.netlist, found.cells, cycles, 300)
    assert cycles // 2 < traffic.cycles <= cycles
    flips = all_flips(found.cells, traffic)
    campaign = FlipCampaign(found.netlist, found.cells, flips, traffic).sampled(2 * COPIES, seed=1)
    # Which flips are drawn depends on the circuit: all but a few agree exactly.
    rows = agreed(campaign, oscillating=0.05)
    record_property("report", f"hx8k: {rows}")
    # Of all flips, two in five are seen; in a sample of 126, three standard errors are 13 %.
    assert rows["seen at a pin"] >= 0.27 * len(campaign.flips)
    unseen = rows["looked up, not seen"] + rows["never looked up"]
    assert rows["seen at a pin"] + unseen == len(campaign.flips)


@pytest.mark.slow
def test_a_flip_is_seen_where_a_flipped_file_is() -> None:
    campaign, bits = small(Store.BLOCK, 8, seed=6), small_bits(Store.BLOCK)
    outcome = campaign.outcome(campaign.batch("threads").run(campaign.program()))
    sound = line_crc(campaign.netlist, campaign.stimulus)
    expected = []
    for lut, row in zip(campaign.flips.luts, campaign.flips.rows, strict=True):
        with flipped(bits, Flip(campaign.cells[lut], int(row))):
            crc = line_crc(made(bits).netlist, campaign.stimulus)
        expected.append(bool(crc != sound))
    assert (outcome.line < len(outcome.parts)).tolist() == expected
    assert set(expected) == {False, True}


@pytest.mark.slow
def test_a_folder_gives_the_same(tmp_path: Path) -> None:
    campaign = small(Store.BLOCK, 70, seed=2)
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


TABLES = random.Random(1).sample(range(1 << 16), 500)


class Tables(wiring.Component):
    """One LUT for each of `TABLES`, all with the same four inputs."""

    row: In(4)
    out: Out(len(TABLES))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.comb += self.out.eq(Cat(gates(table, list(self.row)) for table in TABLES))
        return m


@pytest.mark.slow
def test_gates_give_every_row_of_a_table() -> None:
    batch = Batch(Tables(), 16, "threads")
    batch.set("row", np.arange(16))
    words = np.ascontiguousarray(batch.get("out")).astype("<u8").view(np.uint8)
    bits = np.unpackbits(words, axis=1, bitorder="little")[:, : len(TABLES)]
    for table, column in zip(TABLES, bits.T, strict=True):
        assert sum(int(bit) << row for row, bit in enumerate(column)) == table, hex(table)


@pytest.mark.slow
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
    with pytest.raises(BitlaneError, match="memory 0 of the netlist has ports of different widths"):
        FlippableCircuit(builder.build(), []).elaborate(None)
