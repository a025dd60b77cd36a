"""`bitlane simulate`: an iCE40 bitstream, unpacked to gates, equals the RTL in every cycle.

The driver works with a board's bitstream file at its pins: one board is built here from source to
file, the others in tests/verify. Files that are none of a board are refused in one line.
"""

import random
import select
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bitlane.command_line import INTERRUPTED
from bitlane_boards import boards
from bitlane_boards.pins import HIGH, CircuitModel, GateModel, PinSimulation
from bitlane_boards.readback import (
    LUT_BITS,
    Bitstream,
    BitstreamError,
    BoardPin,
    Constants,
    Ice40Netlist,
    extract,
)
from bitlane_boards.readback import netlist as netlists
from support.boards.board_builds import (
    DIVIDER,
    PACKAGES,
    PLACES,
    built,
    ecp5,
    ice40,
    talk,
    text_of,
    write,
)
from support.command_line import CommandLine
from support.sim.answerer import Answerer, Store, answers

pytestmark = [
    pytest.mark.slow,
    pytest.mark.any_circuit,
    pytest.mark.any_face,
    pytest.mark.reads("examples"),
]

CASES = [
    ("hx8k", Store.BLOCK),
    ("hx8k", Store.TALL),
    ("hx8k", Store.WIDE),
    ("up5k", Store.SINGLE_PORT),
]


_TEXTS: dict[tuple[str, Store], str] = {}


def unpacked(tmp_path: Path, device: str, store: Store) -> Bitstream:
    """Return the bits of the bitstream, which is unpacked once per device and store."""
    if (device, store) not in _TEXTS:
        file = tmp_path / "top.bin"
        file.write_bytes(ice40(device, store))
        _TEXTS[device, store] = text_of(Bitstream.read(file))
    return Bitstream.parse(_TEXTS[device, store])


def netlist(bits: Bitstream, device: str = "hx8k") -> Ice40Netlist:
    return extract(bits, PACKAGES[device], PLACES[device])


@pytest.mark.parametrize(("device", "store"), CASES)
def test_bitstream_answers_like_the_rtl_in_every_cycle(
    device: str, store: Store, tmp_path: Path
) -> None:
    found = netlist(unpacked(tmp_path, device, store), device)
    assert found.clock == "clk"
    assert not found.pll
    gates = PinSimulation(GateModel(found.netlist, device), DIVIDER)
    rtl = PinSimulation(CircuitModel(Answerer(DIVIDER, store)), DIVIDER)
    data = random.Random(3).randbytes(2000)
    got, cycles = talk(gates, data)
    assert got == bytes(answers(data, store))
    assert (got, cycles) == talk(rtl, data)
    for port in ("busy", "tx"):
        assert gates.get(port) == rtl.get(port)


def test_bits_survive_being_written_and_read(tmp_path: Path) -> None:
    file = tmp_path / "again.bin"
    bits = unpacked(tmp_path, "hx8k", Store.BLOCK)
    write(bits, file)
    assert file.read_bytes() == ice40("hx8k")
    again = Bitstream.parse(text_of(bits))
    assert text_of(again) == text_of(bits)
    assert again.extra == bits.extra


def test_a_flipped_bit_of_a_lut_shows(tmp_path: Path) -> None:
    """At least 3 of 12 flips of random LUT rows change the answers."""
    bits = unpacked(tmp_path, "hx8k", Store.BLOCK)
    data = random.Random(3).randbytes(200)
    right = bytes(answers(data))
    caught = 0
    cells = netlist(bits).cells
    choose = random.Random(1)
    for cell in choose.sample(cells, 12):
        tile = bits.tiles[cell.x, cell.y]
        position = cell.positions[LUT_BITS[choose.choice(cell.rows)]]
        tile[position] ^= 1
        simulation = PinSimulation(GateModel(netlist(bits).netlist, "flipped"), DIVIDER)
        caught += talk(simulation, data)[0] != right
        tile[position] ^= 1
    assert caught >= 3, f"{caught} of 12"
    simulation = PinSimulation(GateModel(netlist(bits).netlist, "as it was"), DIVIDER)
    assert talk(simulation, data)[0] == right


def test_contents_of_the_memory_are_those_of_the_file(tmp_path: Path) -> None:
    bits = unpacked(tmp_path, "hx8k", Store.BLOCK)
    ((tile, contents),) = [(at, c) for at, c in bits.contents.items() if c.any()]
    contents = contents.copy()
    contents[0] ^= 1
    bits.contents[tile] = contents
    simulation = PinSimulation(GateModel(netlist(bits).netlist, "flipped"), DIVIDER)
    data = bytes(range(256))
    right = bytes(answers(data))
    got, _ = talk(simulation, data)
    assert sum(a != b for a, b in zip(got, right, strict=True)) == 1


def test_half_a_bitstream_is_refused_by_its_name(tmp_path: Path) -> None:
    file = tmp_path / "half.bin"
    whole = ice40("hx8k")
    file.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(BitstreamError) as caught:
        Bitstream.read(file)
    assert str(caught.value).startswith(f"{file}: no whole bitstream of an iCE40: yowasp-iceunpack")
    assert "log" not in str(caught.value)


def test_pins_and_packages_that_are_unknown_are_refused(tmp_path: Path) -> None:
    bits = unpacked(tmp_path, "hx8k", Store.BLOCK)
    with pytest.raises(BitstreamError, match="port rx: package ct256 has no pin 'Z9'"):
        extract(bits, "ct256", {"rx": "Z9"})
    with pytest.raises(Exception, match="has no package 'dip40'; expected"):
        extract(bits, "dip40", {})


def test_constants_go_through_further_luts() -> None:
    """Nine wires, 1 to 9: a negative input is the inverse of the wire that drives it."""
    luts = {
        1: ((0, 0), 0b0001),  # nothing wired to it: HIGH
        2: ((~1,), 0b10),  # passes on 1
        3: ((~2, ~9), 0b0111),  # NAND of a constant and a variable
        4: ((~2, ~9), 0b1101),  # 2 inverted, or 9
        5: ((~2, ~9), 0b1011),  # 2, or 9 inverted
        6: ((~7,), 0b10),  # a loop of two
        7: ((~6,), 0b01),
        8: ((~8, ~1), 0b1111),  # wired to itself where that makes no difference
    }
    constants = Constants(luts.get)
    assert [constants.level(wire) for wire in range(1, 10)] == [
        HIGH, HIGH, None, None, HIGH, None, None, HIGH, None,
    ]  # fmt: skip


# --- the command ------------------------------------------------------------------------------


def interrupted(*_: object) -> Any:
    raise KeyboardInterrupt


def test_stopped_while_it_serves_is_no_error_but_before_it_is(
    monkeypatch: pytest.MonkeyPatch, run: CommandLine
) -> None:
    model = SimpleNamespace(description="hx8k", hidden=(), close=lambda: None)
    server = SimpleNamespace(
        name="/dev/pts/9", sent=0, received=0, warm_up=lambda: None, close=lambda: None
    )
    monkeypatch.setattr(netlists, "model_of", lambda *_: model)
    monkeypatch.setattr(
        "bitlane_boards.pins.PinSimulation", lambda *_: SimpleNamespace(cycle=0, framing_errors=0)
    )
    monkeypatch.setattr("bitlane_boards.pins.PtyServer", lambda *_: server)
    server.serve = interrupted
    ended = run("simulate", "hx8k")
    assert (ended.code, ended.out) == (0, "/dev/pts/9\n")
    assert "stopped after 0 cycles" in ended.err
    server.warm_up = interrupted
    ended = run("simulate", "hx8k")
    assert (ended.code, ended.out) == (INTERRUPTED, "")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("hx8k --bitstream missing", "missing: No such file"),
        ("ulx3s --netlist missing", "missing: No such file"),
        ("hx8k --bitstream text", "text: no bitstream of an iCE40"),
        ("ulx3s --netlist text", "text: no netlist of one top module"),
        ("ulx3s --bitstream text", "expected --netlist with the routed netlist"),
        ("hx8k --netlist text", "expected --bitstream"),
        ("hx8k --bitstream up5k", "for an iCE40 5k; expected one for Lattice iCE40-HX8K-B-EVN"),
        ("hx8k --bitstream slow", "runs at 12 MHz; expected 72 MHz"),
        ("ulx3s --netlist ecp5", "is it one of this board? it has"),
    ],
)
def test_files_of_another_kind_or_board_are_refused(
    words: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: CommandLine
) -> None:
    monkeypatch.chdir(tmp_path)
    name = words.split()[-1]
    if name != "missing":
        Path(name).write_bytes(FILES[name]())
    ended = run("simulate", *words.split())
    assert (ended.code, ended.out) == (2, "")
    assert message in ended.err.splitlines()[-1]


FILES = {
    "text": lambda: b"nothing of the sort",
    "up5k": lambda: ice40("up5k", Store.SINGLE_PORT),
    "slow": lambda: ice40("hx8k"),
    "ecp5": lambda: ecp5().read_bytes(),
}


@pytest.mark.parametrize("invert", [(), ("tx",), ("rx", "busy")], ids=" ".join)
def test_pins_that_are_active_low_are_turned_round(
    invert: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model inverts pins that the board declares active low, even where the file's are not."""
    file = tmp_path / "top.bin"
    file.write_bytes(ice40("hx8k"))
    board = replace(boards()["hx8k"], clock_hz=12_000_000, baud=12_000_000 // DIVIDER)
    pins = {role: BoardPin(role, place, role in invert) for role, place in PLACES["hx8k"].items()}
    monkeypatch.setattr(netlists, "board_pins", lambda _: pins)
    model = netlists.bitstream_model(board, file)
    assert "pin J3, driven directly" in model.hidden[0]
    if "tx" in invert:
        assert model.get("tx") == 0
    elif "rx" in invert:
        assert model.get("busy") == 1
    else:
        simulation = PinSimulation(model, DIVIDER)
        simulation.send(b"abc")
        assert simulation.wait(3, 10_000)
        assert simulation.receive() == bytes(answers(b"abc"))


# --- the driver at the pins ---------------------------------------------------------------------


NAME = "hx8k"
BOARD = boards()[NAME]
EXAMPLES = Path(__file__).parents[2] / "examples"

DEADLINE = 300
"""Time limit of a program that should end, in seconds."""

MAIN = "import sys; from bitlane.command_line.cli import main; sys.exit(main())"


@pytest.fixture(scope="module")
def bitstream() -> Path:
    return built(BOARD) / f"{NAME}.bin"


class Simulated:
    """`bitlane simulate` in a separate process; ``name`` is the path of its terminal."""

    def __init__(self, *arguments: str) -> None:
        words = [sys.executable, "-c", MAIN, "simulate", *arguments]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert self.process.stdout
        ready, _, _ = select.select([self.process.stdout], [], [], DEADLINE)
        self.name = self.process.stdout.readline().decode().strip() if ready else ""

    def stop(self) -> tuple[int, str]:
        """Terminate the process as a service manager does; return its exit code and its log."""
        self.process.terminate()
        _, said = self.process.communicate(timeout=DEADLINE)
        return self.process.returncode, said.decode()


@pytest.fixture
def simulated(bitstream: Path) -> Iterator[Simulated]:
    started = Simulated(NAME, "--bitstream", str(bitstream))
    yield started
    if started.process.poll() is None:
        started.process.kill()
        started.process.communicate()


def test_driver_and_bitstream_work_together(simulated: Simulated, run: CommandLine) -> None:
    assert simulated.name.startswith("/dev/"), simulated.stop()
    device = f"serial:{simulated.name}?baud={BOARD.baud}"
    for model in ("bit_not", "bit_xor", "bit_count", "hamming", "in_place", "strided"):
        ended = run("run", str(EXAMPLES / f"{model}.json"), "--device", device)
        assert ended.code == 0, (model, ended)
        assert "equal" in ended.out
    ended = run("validate", device, "--quick", "--memory", "1KiB")
    assert ended.code == 0, ended
    code, said = simulated.stop()
    assert code == 0, said
    assert f"the PLL, set for {BOARD.clock_hz // 10**6} MHz" in said
    assert "0 framing errors" in said
