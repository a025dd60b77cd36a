"""The MAC makes and accepts legal frames alone, and RGMII carries their bytes."""

import random
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from amaranth.back import rtlil
from amaranth.hdl import Fragment, Module
from amaranth.lib import io
from amaranth.sim import Simulator
from amaranth_boards.colorlight_5a75b_r7_0 import Colorlight_5A75B_R70Platform

from bitlane_rtl.ethernet import MacReceiver, MacTransmitter, RgmiiReceiver, RgmiiTransmitter
from cppsim import Model
from support.ethernet.line import (
    HEAD,
    PLATFORM,
    Burst,
    bursts_on,
    checked,
    frame,
    gmii,
    on_line,
    padded,
    run,
    with_fcs,
)

PORTS = ("o__valid", "o__byte", "o__end", "o__good")


@pytest.fixture(scope="module")
def receiver() -> Model:
    return Model(MacReceiver())


class Received:
    """The frames that a receiver outputs, each with its verdict."""

    def __init__(self, model: Model, bursts: Sequence[Burst]) -> None:
        model.reset()
        inputs = {f"i__{name}": column for name, column in gmii(bursts).items()}
        out = run(model, inputs, PORTS)
        self.frames: list[tuple[bytes, bool]] = []
        ends = np.flatnonzero(out["o__end"])
        assert not (out["o__valid"] & out["o__end"]).any()
        begin = 0
        for end in ends:
            inside = out["o__valid"][begin:end] == 1
            data = out["o__byte"][begin:end][inside].astype(np.uint8).tobytes()
            self.frames.append((data, bool(out["o__good"][end])))
            begin = end
        assert not out["o__valid"][begin:].any()

    @property
    def good(self) -> list[bytes]:
        return [data for data, good in self.frames if good]


@pytest.mark.parametrize("idle", [1, 5, 12])
def test_legal_frames_are_good(receiver: Model, idle: int) -> None:
    rng = random.Random(idle)
    sizes = [*range(40, 70), 200, 1517, 1518, *(rng.randrange(60, 1519) for _ in range(20))]
    contents = [rng.randbytes(size) for size in sizes]
    received = Received(receiver, [on_line(content, idle) for content in contents])
    assert received.frames == [(frame(content), True) for content in contents]


@pytest.mark.parametrize("preamble", [0, 1, 6, 7, 20])
def test_a_preamble_of_any_length_is_accepted(receiver: Model, preamble: int) -> None:
    whole = frame(b"content")
    received = Received(receiver, [Burst(b"\x55" * preamble + b"\xd5" + whole)] * 2)
    assert received.frames == [(whole, True)] * 2


@pytest.mark.parametrize("idle", [1, 2, 3])
@pytest.mark.parametrize("preamble", [0, 1])
def test_gap_and_preamble_have_two_bytes(receiver: Model, idle: int, preamble: int) -> None:
    """A frame that starts earlier is dropped; the one behind it is not."""
    wholes = [frame(bytes([number])) for number in range(3)]
    line = [Burst(b"\x55" * preamble + b"\xd5" + whole, idle) for whole in wholes]
    received = Received(receiver, line)
    early = idle + preamble < 2
    assert received.good == ([wholes[0], wholes[2]] if early else wholes)


CONTENT = bytes(range(100))
BAD: dict[str, list[Burst]] = {
    "runt": [Burst(HEAD + with_fcs(CONTENT[:size])) for size in (0, 1, 10, 59)],
    "giant": [Burst(HEAD + with_fcs(bytes(size))) for size in (1519, 1520, 2044, 2108, 9000)],
    "error": [on_line(CONTENT, errors=[place]) for place in (8, 9, 60, 111)],
    "truncated": [Burst(HEAD + frame(CONTENT)[:-missing]) for missing in (1, 2, 3, 4, 5)],
    "longer": [Burst(HEAD + frame(CONTENT) + more) for more in (b"\0", b"\xff" * 4)],
    "only a start": [Burst(HEAD)],
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_frames_are_not_good(receiver: Model, kind: str) -> None:
    good = on_line(b"good")
    for burst in BAD[kind]:
        received = Received(receiver, [good, burst, good])
        assert [verdict for _, verdict in received.frames] == [True, False, True], len(burst.data)


def test_any_wrong_bit_is_found(receiver: Model) -> None:
    whole = frame(CONTENT)
    bursts = []
    for bit in range(8 * len(whole)):
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        bursts.append(Burst(HEAD + damaged))
    received = Received(receiver, bursts)
    assert received.good == []
    assert len(received.frames) == len(bursts)


NOTHING = {
    **{
        f"a start with {x.hex()}": Burst(x + HEAD + frame(CONTENT))
        for x in (b"\x55\x54", b"\xd4", b"\0", b"\xff" * 3)
    },
    "an error in the preamble": on_line(CONTENT, errors=[3]),
    "a frame that had begun before the reset": Burst(HEAD + frame(CONTENT), idle=0),
}


@pytest.mark.parametrize("burst", NOTHING.values(), ids=NOTHING)
def test_without_a_legal_start_nothing_appears(receiver: Model, burst: Burst) -> None:
    received = Received(receiver, [burst, on_line(b"good")])
    assert received.frames == [(frame(b"good"), True)]


def test_random_bytes_are_never_good(receiver: Model) -> None:
    """Half of the bursts start like a frame. After each, a good frame is good."""
    rng = random.Random(1)
    bursts: list[Burst] = []
    for number in range(600):
        data = rng.randbytes(rng.choice([1, 8, 63, 64, 300, 1600]))
        bursts += [Burst(HEAD * (number % 2) + data, rng.randrange(1, 20)), on_line(b"good")]
    received = Received(receiver, bursts)
    assert received.good == [frame(b"good")] * 600


# --- the transmitter ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def transmitter() -> Model:
    return Model(MacTransmitter())


def words(content: bytes) -> list[int]:
    """Return the packet of a frame: its length and its bytes, in words."""
    data = len(content).to_bytes(2, "big") + content
    data += b"\xaa" * (-len(data) % 4)
    return np.frombuffer(data, "<u4").tolist()


def transmitted(
    model: Model, contents: Sequence[bytes], *, wait: int = 0, pause: int = 0
) -> list[Burst]:
    """Transmit ``contents``, each ``wait`` cycles after the one before, and return the line.

    A word within a packet is valid ``pause`` cycles after the one before is accepted.
    """
    model.reset()
    line: dict[str, list[int]] = {"data": [], "valid": [], "error": []}

    def step() -> None:
        for name, column in line.items():
            column.append(model.get(f"o__{name}"))
        model.step()

    for content in contents:
        for number, word in enumerate(words(content)):
            model.set("i__valid", 0)
            for _ in range(pause if number else wait):
                step()
            model.set("i__payload", word)
            model.set("i__valid", 1)
            while not model.get("i__ready"):
                step()
            step()
    model.set("i__valid", 0)
    for _ in range(100):
        step()
    return bursts_on({name: np.array(column) for name, column in line.items()})


SIZES = [*range(1, 66), 100, 101, 102, 103, 1511, 1512, 1513, 1514]


def test_packets_become_frames_without_idle_time(transmitter: Model) -> None:
    rng = random.Random(1)
    contents = [rng.randbytes(size) for size in SIZES]
    bursts = transmitted(transmitter, contents)
    assert [checked(burst) for burst in bursts] == [padded(content) for content in contents]
    assert {burst.idle for burst in bursts[1:]} == {12}


@pytest.mark.parametrize("wait", range(1, 30, 4))
def test_a_frame_starts_at_any_time_after_the_gap(transmitter: Model, wait: int) -> None:
    contents = [bytes([number]) * 61 for number in range(4)]
    bursts = transmitted(transmitter, contents, wait=wait)
    assert [checked(burst) for burst in bursts] == contents
    idle = {burst.idle for burst in bursts[1:]}
    assert min(idle) >= 12
    assert max(idle) <= 12 + wait


def test_a_frame_starts_after_its_latency(transmitter: Model) -> None:
    [burst] = transmitted(transmitter, [bytes(60)], wait=20)
    assert burst.idle == 20 + 3


def test_a_word_that_is_late_is_an_error(transmitter: Model) -> None:
    """The receiver drops the frame, and the next one is whole."""
    late, good = (
        transmitted(transmitter, [bytes(100)], pause=9),
        transmitted(transmitter, [b"x" * 80]),
    )
    assert late[0].errors
    assert checked(good[0]) == b"x" * 80


# --- the pins -------------------------------------------------------------------------------------

PERIOD = 8e-9


def ports(direction: str, *widths: int) -> list[io.SimulationPort]:
    return [io.SimulationPort(direction, width) for width in widths]


def simulate(circuit: Any, testbench: Any) -> None:
    simulator = Simulator(Fragment.get(circuit, PLATFORM))
    simulator.add_clock(PERIOD, phase=PERIOD)  # rises at every multiple of the period
    simulator.add_testbench(testbench)
    simulator.run()


def random_line(seed: int) -> list[tuple[int, int, int]]:
    rng = random.Random(seed)
    return [(rng.randrange(256), rng.randrange(2), rng.randrange(2)) for _ in range(200)]


def test_bytes_arrive_at_both_edges() -> None:
    data, control = ports("i", 4, 1)
    circuit = RgmiiReceiver(data, control)
    line = random_line(1)
    received: list[tuple[int, int, int]] = []

    async def testbench(ctx: Any) -> None:
        await ctx.delay(0.75 * PERIOD)
        for byte, valid, error in line:
            for nibble, level in ((byte & 15, valid), (byte >> 4, valid ^ error)):
                ctx.set(data.i, nibble)
                ctx.set(control.i, level)
                await ctx.delay(0.5 * PERIOD)
            o = circuit.o
            received.append((ctx.get(o.data), ctx.get(o.valid), ctx.get(o.error)))

    simulate(circuit, testbench)
    # The edges of a byte are 0.25 and 0.75 of a period after its start; it is valid in the next.
    assert received[1:] == line[:-1]


def test_bytes_leave_at_both_edges() -> None:
    data, control, clock = ports("o", 4, 1, 1)
    circuit = RgmiiTransmitter(data, control, clock)
    line = random_line(2)
    sent: list[tuple[int, int, int]] = []

    async def testbench(ctx: Any) -> None:
        i = circuit.i
        await ctx.delay(0.75 * PERIOD)
        for byte, valid, error in line:
            ctx.set(i.data, byte)
            ctx.set(i.valid, valid)
            ctx.set(i.error, error)
            halves = []
            for half in range(2):
                await ctx.delay(0.5 * PERIOD)
                assert ctx.get(clock.o) == 1 - half
                halves.append((ctx.get(data.o), ctx.get(control.o)))
            (low, first), (high, second) = halves
            sent.append((low | high << 4, first, first ^ second))

    simulate(circuit, testbench)
    assert sent == line


def test_pins_of_a_board_are_cells_with_a_double_data_rate() -> None:
    platform = Colorlight_5A75B_R70Platform()
    pins = platform.request("eth_rgmii", 0, dir="-")
    m = Module()
    m.submodules.receiver = RgmiiReceiver(pins.rx_data, pins.rx_ctl)
    m.submodules.transmitter = RgmiiTransmitter(pins.tx_data, pins.tx_ctl, pins.tx_clk)
    text = rtlil.convert(Fragment.get(m, platform), ports=[])
    cells = re.findall(r"cell \\(\w+) ", text)
    assert cells.count("IDDRX1F") == 5
    assert cells.count("ODDRX1F") == 6
