"""Tests of an exported stream core between the streams of cocotbext-axi.

cocotb finds them here, pytest does not.
"""

import os
import random
from collections.abc import Iterator
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles
from cocotbext.axi import (
    AxiLiteBus,
    AxiLiteMaster,
    AxiStreamBus,
    AxiStreamFrame,
    AxiStreamSink,
    AxiStreamSource,
)

from bitlane_rtl.abi import BIT_OPS, Lane, Op
from bitlane_rtl.stream_unit import (
    STREAM_IDENTITY,
    PacketReduction,
    StreamConfiguration,
    stream_registers,
)
from support.rtl.packets import HOLES, REFUSED, UNEQUAL, Beat, Packet, control, results

CORE = "BITLANE_STREAM_CORE"
"""Environment variable: the data width."""

_NS = 10
_USER = 3


def configuration() -> StreamConfiguration:
    """Return the configuration with which the core was exported."""
    return StreamConfiguration(data_width=int(os.environ[CORE]))


class StreamBench:
    """A core between two sources and a sink, which pause in a cycle with probability ``chance``."""

    def __init__(self, dut: Any, chance: float) -> None:
        self._dut = dut
        self.configuration = configuration()
        self.generator = random.Random(chance)
        clock = dut.clk, dut.rst
        self.a = AxiStreamSource(AxiStreamBus.from_prefix(dut, "s_axis_a"), *clock)
        self.b = AxiStreamSource(AxiStreamBus.from_prefix(dut, "s_axis_b"), *clock)
        self.y = AxiStreamSink(AxiStreamBus.from_prefix(dut, "m_axis_y"), *clock)
        if hasattr(dut, "s_axil_awaddr"):
            self.window = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axil"), *clock)
        for stream in (self.a, self.b, self.y):
            stream.log.setLevel("WARNING")
            if chance:
                stream.set_pause_generator(self._pauses(chance))

    def _pauses(self, chance: float) -> Iterator[bool]:
        while True:
            yield self.generator.random() < chance

    async def start(self) -> None:
        dut = self._dut
        dut.rst.value = 1
        for name, bits in self.configuration.control.items():
            if bits and hasattr(dut, f"control_{name}"):
                getattr(dut, f"control_{name}").value = 0
        Clock(dut.clk, _NS, "ns").start()
        await ClockCycles(dut.clk, 5)
        dut.rst.value = 0
        await ClockCycles(dut.clk, 5)

    def control(self, inputs: dict[str, int]) -> None:
        """Drive the control inputs."""
        for name, bits in self.configuration.control.items():
            if bits:
                getattr(self._dut, f"control_{name}").value = int(inputs[name])

    def packet(self, length: int) -> Packet:
        """Return a packet of ``length`` bytes, 1 or more."""
        size = self.configuration.data_bytes
        beats = []
        for at in range(0, length, size):
            kept = min(size, length - at)
            beats.append(Beat(self.generator.getrandbits(8 * kept), (1 << kept) - 1, _USER))
        return [Beat(beat.data, beat.keep, _USER & 1) for beat in beats]

    async def send(self, stream: Any, packet: Packet) -> None:
        size = self.configuration.data_bytes
        data, keep = bytearray(), []
        for beat in packet:
            data += beat.data.to_bytes(size, "little")
            keep += [beat.keep >> k & 1 for k in range(size)]
        await stream.send(AxiStreamFrame(bytes(data), tkeep=keep, tuser=_USER & 1))

    async def exchange(self, inputs: dict[str, int], *packets: Packet) -> int:
        """Send a packet of A, and of B, and compare that of Y. Return its flags."""
        for stream, packet in zip((self.a, self.b), packets, strict=False):
            await self.send(stream, packet)
        return await self.receive(inputs, *packets)

    async def receive(self, inputs: dict[str, int], a: Packet, b: Packet | None = None) -> int:
        """Compare the next packet of Y. Return its flags."""
        size = self.configuration.data_bytes
        frame = await self.y.recv(compact=False)
        expected = results(self.configuration, inputs, a, b)
        assert len(frame.tdata) == size * len(expected)
        for number, want in enumerate(expected):
            lanes = range(size * number, size * (number + 1))
            found = [frame.tdata[k] if frame.tkeep[k] else None for k in lanes]
            data = want.data.to_bytes(size, "little")
            assert found == [data[k] if want.keep >> k & 1 else None for k in range(size)]
            user = {frame.tuser[k] for k in lanes}
            assert user == {want.user | want.flags << 1}
        return expected[-1].flags


async def started(dut: Any, chance: float = 0.0) -> StreamBench:
    bench = StreamBench(dut, chance)
    await bench.start()
    return bench


@cocotb.test(timeout_time=2, timeout_unit="ms")
@cocotb.parametrize(chance=[0.0, 0.3, 0.8])
async def test_packets_of_every_operation(dut: Any, chance: float) -> None:
    bench = await started(dut, chance)
    for op in sorted(BIT_OPS):
        lane = bench.generator.choice([x for x in Lane if x in bench.configuration.lanes])
        inputs = control(op, lane)
        if op.counts and bench.generator.random() < 0.7:
            inputs["out_lane"] = Lane.BITS_8
        bench.control(inputs)
        packets = []
        for _ in range(4):
            length = lane.bytes * bench.generator.randint(1, 9)
            packets.append([bench.packet(length) for _ in range(1 + op.reads_b)])
            for stream, packet in zip((bench.a, bench.b), packets[-1], strict=False):
                await bench.send(stream, packet)
        for packet in packets:
            assert await bench.receive(inputs, *packet) == 0


@cocotb.test(timeout_time=2, timeout_unit="ms")
@cocotb.parametrize(chance=[0.0, 0.5])
async def test_reductions(dut: Any, chance: float) -> None:
    bench = await started(dut, chance)
    for reduction, negate in ((PacketReduction.SUM, 0), (PacketReduction.ANY, 1)):
        inputs = control(Op.COUNT_XOR, reduction=reduction, negate=negate)
        bench.control(inputs)
        for number in range(12):
            a = bench.packet(bench.generator.randint(1, 70))
            b = a if number % 3 == 0 else bench.packet(sum(x.keep.bit_count() for x in a))
            assert await bench.exchange(inputs, a, b) == 0


@cocotb.test(timeout_time=2, timeout_unit="ms")
@cocotb.parametrize(chance=[0.0, 0.5])
async def test_faults_are_flagged_and_nothing_hangs(dut: Any, chance: float) -> None:
    bench = await started(dut, chance)
    inputs = control(Op.AND)
    bench.control(inputs)
    for lengths in ((1, 60), (60, 1), (17, 18), (40, 8)):
        a, b = map(bench.packet, lengths)
        assert await bench.exchange(inputs, a, b) == UNEQUAL
    full = (1 << bench.configuration.data_bytes) - 1
    holed = [Beat(5, full & ~2, 1), Beat(6, full, 1)]
    assert await bench.exchange(inputs, holed, holed) == HOLES
    bench.control(control(Op.AND, test=1))
    a = bench.packet(20)
    assert await bench.exchange(control(Op.AND, test=1), a, a) == REFUSED
    bench.control(inputs)
    assert await bench.exchange(inputs, a, a) == 0


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def test_registers_control_the_packets(dut: Any) -> None:
    bench = await started(dut, 0.3)
    known = {entry.name: entry for entry in stream_registers(bench.configuration)}

    async def read(name: str) -> int:
        return int(await bench.window.read_dword(known[name].offset))

    async def write(name: str, word: int) -> None:
        await bench.window.write_dword(known[name].offset, word)

    for name, entry in known.items():
        assert await read(name) == (entry.reset or 0)
    assert await read("IDENTITY") == STREAM_IDENTITY
    assert await read("CAPABILITIES") & 0xFFFF == sum(1 << op for op in BIT_OPS)
    cases = [
        (control(Op.AND), 20, 20),
        (control(Op.COUNT_XOR, reduction=PacketReduction.SUM), 33, 33),
        (control(Op.SHIFT_RIGHT, Lane.BITS_16, arithmetic=1, saturate=1), 16, 16),
        (control(Op.OR), 9, 30),
        (control(Op.NOT, negate=1), 12, 12),
    ]
    flags = 0
    for number, (inputs, *lengths) in enumerate(cases):
        fields = known["CONTROL"].bits
        word = sum(bits.insert(inputs[bits.name.lower()]) for bits in fields)
        await write("CONTROL", word)
        assert await read("CONTROL") == word
        two = Op(inputs["op"]).reads_b
        flags |= await bench.exchange(inputs, *map(bench.packet, lengths[: 1 + two]))
        await ClockCycles(dut.clk, 4)
        assert await read("PACKETS") == number + 1
        assert await read("FLAGS") == flags
    assert flags == REFUSED | UNEQUAL
    await write("FLAGS", UNEQUAL)
    assert await read("FLAGS") == REFUSED
    await write("FLAGS", REFUSED)
    assert await read("FLAGS") == 0
