"""An iCE40 bitstream, unpacked to gates, equals the RTL in every byte and every cycle."""

import random
from pathlib import Path

import pytest

from bitlane_boards.pins import CircuitModel, GateModel, PinSimulation
from bitlane_boards.pins.netlist import HIGH
from bitlane_boards.readback.asc import Bitstream, BitstreamError
from bitlane_boards.readback.ice40 import LUT_BITS, Constants, Ice40Netlist, extract
from support.boards.asc import text_of, write
from support.boards.small_builds import DIVIDER, PACKAGES, PLACES, ice40, talk
from support.sim.answerer import Answerer, Store, answers

pytestmark = [pytest.mark.slow, pytest.mark.any_circuit]

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


def test_what_is_no_bitstream_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "top.bin"
    file.write_bytes(b"no bitstream")
    with pytest.raises(BitstreamError, match=r"top\.bin: no bitstream of an iCE40"):
        Bitstream.read(file)
    with pytest.raises(FileNotFoundError):
        Bitstream.read(tmp_path / "nothing")


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
