"""The stream unit: a packet of results for each packet, whatever is wrong with it, at full rate."""

import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from amaranth.hdl import Cat
from amaranth.lib.data import Layout

from bitlane_rtl.abi import COUNT_OPS, LOGIC_OPS, SHIFT_OPS, Lane, Op
from bitlane_rtl.stream_unit import (
    FLAG_FIELDS,
    STREAM_IDENTITY,
    PacketAssembler,
    PacketFlags,
    PacketReduction,
    StreamConfiguration,
    StreamCore,
    StreamRegisters,
    StreamUnit,
    stream_registers,
)
from support.rtl.bench import Host
from support.rtl.packets import EMPTY, HOLES, REFUSED, UNEQUAL, Beat, Traffic, control, exchange
from support.rtl.streams import Sink, Source, Stalls, channel, compiled, simulate
from support.seeds import slow

ALL = StreamConfiguration()
LOGIC = StreamConfiguration(ops=LOGIC_OPS)
UNITS = {
    "logic, 64 bits": LOGIC,
    "all, 64 bits": ALL,
    "counts, 16 bits": StreamConfiguration(data_width=16, ops=LOGIC_OPS | COUNT_OPS),
    "NOT, 8 bits": StreamConfiguration(data_width=8, ops=frozenset({Op.NOT}), user_width=0),
}
SLOW_UNITS = {
    "all, 8 bits": StreamConfiguration(data_width=8),
    "all, 16 bits": StreamConfiguration(data_width=16, user_width=3),
    "all, 32 bits": StreamConfiguration(data_width=32),
    "all, 128 bits": StreamConfiguration(data_width=128),
    "shifts, 16 bits": StreamConfiguration(data_width=16, ops=SHIFT_OPS),
    "one count": StreamConfiguration(ops=frozenset({Op.COUNT_XOR})),
    "one count of 16 bits, no sums": StreamConfiguration(
        ops=frozenset({Op.COUNT}), lanes=frozenset({Lane.BITS_16}), reduces=False
    ),
}
NAMES = [*UNITS, *map(slow, SLOW_UNITS)]


def unit(config: StreamConfiguration) -> StreamUnit:
    return compiled(StreamUnit, config)


@pytest.mark.parametrize("name", NAMES)
def test_packets_of_any_kind(name: str, stalls: Stalls) -> None:
    config = (UNITS | SLOW_UNITS)[name]
    traffic = Traffic(config, random.Random(f"{name} {stalls}"))
    for _ in range(60 if config == ALL else 25):
        traffic.random(traffic.random_control(wrong=0.15), faults=0.3)
    exchange(unit(config), traffic, stalls)


XOR = StreamConfiguration(ops=frozenset({Op.XOR}))
FULL = 0xFF


def beats(*keeps: int, data: int = 0x0102_0304_0506_0708, user: int = 0) -> list[Beat]:
    return [Beat(data * (number + 1), keep, user) for number, keep in enumerate(keeps)]


FAULTS = {
    "A is shorter": (beats(FULL), beats(FULL, FULL, FULL), UNEQUAL),
    "B is shorter": (beats(FULL, FULL, FULL), beats(FULL), UNEQUAL),
    "B ends in the beat before": (beats(FULL, 0x01), beats(FULL), UNEQUAL),
    "B is shorter by a byte": (beats(FULL, 0x0F), beats(FULL, 0x07), UNEQUAL),
    "a hole in both": (beats(FULL, 0x05), beats(FULL, 0x05), HOLES),
    "null bytes before the last beat": (beats(0x0F, FULL), beats(0x0F, FULL), HOLES),
    "a null beat in the middle": (beats(FULL, 0, FULL), beats(FULL, 0, FULL), HOLES),
    "a null beat at the end": (beats(FULL, 0), beats(FULL, 0), 0),
    "no byte": (beats(0), beats(0), EMPTY),
    "no byte of A": (beats(0), beats(FULL), UNEQUAL | EMPTY),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_flagged_and_the_next_packet_is_not(fault: str) -> None:
    a, b, flags = FAULTS[fault]
    traffic = Traffic(XOR, random.Random(fault))
    traffic.add(control(Op.XOR), a, b)
    assert traffic.expected[-1].flags == flags
    traffic.add(control(Op.XOR), beats(FULL, 0x7F), beats(FULL, 0x7F, data=0xFEDC))
    assert traffic.expected[-1].flags == 0
    exchange(unit(XOR), traffic)


REFUSALS = {
    "an operation that was not built": control(Op.COUNT_AND),
    "no operation": control(10),  # type: ignore[arg-type]
    "a lane that was not built": control(Op.COUNT, Lane.BITS_64),
    "a wider output": control(Op.COUNT, out_lane=Lane.BITS_32),
    "16 bits of 32": control(Op.COUNT, Lane.BITS_32, out_lane=Lane.BITS_16),
    "a sum of no counts": control(Op.NOT, reduction=PacketReduction.SUM),
    "no reduction": control(Op.COUNT, reduction=3),
    "a test of no count": control(Op.NOT, test=1),
    "a test of a truth value": control(Op.COUNT, test=1, reduction=PacketReduction.ANY),
    "nothing to negate": control(Op.COUNT, negate=1),
}


@pytest.mark.parametrize("refusal", REFUSALS)
def test_a_refused_packet_is_null_and_keeps_its_length(refusal: str) -> None:
    lanes = frozenset({Lane.BITS_8, Lane.BITS_32})
    config = StreamConfiguration(
        ops=frozenset({Op.NOT, Op.AND, Op.COUNT}), lanes=lanes, data_width=32
    )
    inputs = REFUSALS[refusal]
    traffic = Traffic(config, random.Random(refusal))
    two = inputs["op"] == Op.COUNT_AND
    traffic.add(inputs, beats(0xF, 0xF, 0x3), beats(0xF, 0xF, 0x3) if two else None)
    assert [(beat.keep, beat.flags) for beat in traffic.expected] == [(0, REFUSED)] * 3
    traffic.add(control(Op.AND), beats(0xF), beats(0xF))
    exchange(unit(config), traffic)


def test_elements_that_are_cut_have_no_result() -> None:
    config = StreamConfiguration(ops=frozenset({Op.COUNT, Op.NOT}), data_width=32)
    traffic = Traffic(config, random.Random(0))
    traffic.add(control(Op.COUNT, Lane.BITS_16), beats(0xF, 0x7))
    assert [(beat.keep, beat.flags) for beat in traffic.expected] == [(0xF, 0), (0x3, HOLES)]
    traffic.add(control(Op.COUNT, Lane.BITS_16, reduction=PacketReduction.SUM), beats(0xF, 0x7))
    assert traffic.expected[-1].flags == 0
    traffic.add(control(Op.NOT, Lane.BITS_16), beats(0xF, 0x7))
    assert traffic.expected[-1].keep == 0x7
    exchange(unit(config), traffic)


@pytest.mark.parametrize("name", NAMES)
def test_a_beat_a_cycle_at_the_latency_that_is_stated(name: str) -> None:
    config = (UNITS | SLOW_UNITS)[name]
    traffic = Traffic(config, random.Random(name))
    for _ in range(30):
        inputs = traffic.random_control()
        if config.counts:
            inputs["out_lane"], inputs["reduction"] = inputs["lane"], 0
        two = {op for op in config.ops if op.reads_b}
        if two and inputs["op"] not in two:
            inputs["op"] = min(two)
            inputs["test"] = inputs["negate"] = 0
        traffic.random(inputs)
    circuit = unit(config)
    sources, sink = exchange(circuit, traffic)
    count = len(traffic.a)
    for source in sources.values():
        assert source.cycles == list(range(count))
    assert sink.cycles == list(range(circuit.latency, circuit.latency + count))


@pytest.mark.parametrize("reduction", [PacketReduction.NONE, PacketReduction.SUM])
def test_narrowed_and_summed_counts_leave_as_their_last_beat_is_counted(
    reduction: PacketReduction,
) -> None:
    traffic = Traffic(ALL, random.Random(reduction))
    inputs = control(Op.COUNT_XOR, Lane.BITS_64, out_lane=Lane.BITS_8, reduction=reduction)
    due = []
    for length in (8, 1, 3, 16, 9, 2):
        first = len(traffic.a)
        traffic.add(inputs, beats(*[FULL] * length), beats(*[FULL] * length, data=77))
        step = length if reduction else 8
        due += [first + min(at + step, length) - 1 for at in range(0, length, step)]
    circuit = unit(ALL)
    sources, sink = exchange(circuit, traffic)
    assert sources["a"].cycles == sources["b"].cycles == list(range(len(traffic.a)))
    assert sink.cycles == [cycle + circuit.latency for cycle in due]


def test_a_packet_that_needs_no_b_passes_while_the_rest_of_b_is_missing() -> None:
    config = StreamConfiguration(ops=frozenset({Op.XOR, Op.NOT}))
    traffic = Traffic(config, random.Random(0))
    traffic.add(control(Op.XOR), beats(FULL), beats(FULL, FULL, FULL))
    traffic.add(control(Op.NOT), beats(FULL, FULL))
    pauses = Stalls(seed=5, probability=0.8, longest=30)
    sources, sink = exchange(unit(config), traffic, stalls_of_b=pauses)
    assert sink.cycles[-1] < sources["b"].cycles[-1]


# --- truth values of packets ----------------------------------------------------------------------


@pytest.mark.parametrize("negate", [0, 1])
def test_a_sum_that_comes_back_to_zero_is_not_none(negate: int) -> None:
    def result(total: int, *, last: bool) -> dict[str, Any]:
        side = {"keep": 0xFF, "last": last, "sums": 1, "truth": 1, "negate": negate}
        edge = {"last": last, "end": last}
        lanes = {"lane": Lane.BITS_32, "out_lane": Lane.BITS_32}
        data = {"data": total << 32 | total, "partial": not last, "edge": edge, **lanes}
        return {"result": data, "sideband": side}

    packets = [(0, 1 << 31, 0), (0, 0), (0xFFFF_FFFF,), (0,)]
    sent = [
        result(total, last=number == len(packet) - 1)
        for packet in packets
        for number, total in enumerate(packet)
    ]
    circuit = compiled(PacketAssembler, StreamConfiguration())
    source, sink = Source(circuit.i, sent), Sink(circuit.o, len(packets))
    simulate(circuit, source, sink)
    assert [beat.data & 0xFF for beat in sink.payloads] == [1 - negate, negate, 1 - negate, negate]
    assert {beat.keep for beat in sink.payloads} == {1}


# --- the stream core ------------------------------------------------------------------------------


FIELDS = ("data", "keep", "last", "user")


@pytest.mark.parametrize("registers", [False, True])
def test_packets_between_the_buses(registers: bool) -> None:
    config = StreamConfiguration(data_width=8, user_width=2, ops=frozenset({Op.XOR, Op.NOT}))
    core = compiled(StreamCore, config, registers=registers)
    assert core.latency == StreamUnit(config).latency
    a, y = (channel(bus, "t", *FIELDS) for bus in (core.s_axis_a, core.m_axis_y))
    b = channel(core.s_axis_b, "t", *FIELDS[:3])
    if not registers:
        a.payload = Cat(a.payload, core.control.op)
    # Registers begin with the lowest operation that was built, XOR.
    beats = [(0x5A, 1, 0, 0b10), (0xFF, 1, 1, 0b01), (0x00, 1, 1, 0b11)]
    packed = [d | k << 8 | e << 9 | u << 10 | Op.XOR << 12 for d, k, e, u in beats]
    others = [d | 1 << 8 | e << 9 for d, e in ((0x0F, 0), (0xF0, 1), (0x11, 0), (0x22, 1))]
    if registers:
        packed = [word & 0xFFF for word in packed]
    sink = Sink(y, 3)
    simulate(core, Source(a, packed), Source(b, others), sink)
    found = [(x & 0xFF, x >> 8 & 1, x >> 9 & 1, x >> 10) for x in sink.bits]
    assert found == [
        (0x55, 1, 0, 0b10),
        (0x0F, 1, 1, 0b01),
        (0x11, 1, 1, 0b11 | UNEQUAL << 2),
    ]


# --- registers ------------------------------------------------------------------------------------


NARROW = StreamConfiguration(data_width=32)


def check(config: StreamConfiguration, bench: Callable[[Host], Awaitable[None]]) -> None:
    """Run a testbench for the registers of a unit."""
    circuit = compiled(StreamRegisters, config)
    offsets = {entry.name: entry.offset for entry in stream_registers(config)}
    simulate(circuit, lambda ctx: bench(Host(ctx, circuit, "window", offsets)))


@pytest.mark.parametrize(
    ("config", "capabilities"), [(NARROW, 0x17_F3FF), (LOGIC, 0x00_00FF)], ids=["all", "logic"]
)
def test_registers_say_what_was_built(config: StreamConfiguration, capabilities: int) -> None:
    async def bench(host: Host) -> None:
        assert await host.read("IDENTITY") == STREAM_IDENTITY
        assert await host.read("CAPABILITIES") == capabilities
        assert await host.read("CONTROL") == 0
        assert await host.read(0x14) == await host.read(0x1008) == 0
        await host.write("IDENTITY", 5)
        assert await host.read("IDENTITY") == STREAM_IDENTITY

    check(config, bench)


@pytest.mark.parametrize(
    ("config", "built"),
    [(NARROW, 8), (LOGIC, 1)],
    ids=["all", "logic"],
)
def test_control_goes_to_the_inputs_that_were_built(
    config: StreamConfiguration, built: int
) -> None:
    fields = {"op": 13, "lane": 1, "out_lane": 2, "saturate": 1, "arithmetic": 0}
    fields |= {"test": 1, "negate": 0, "reduction": 2}
    word = 13 | 1 << 4 | 2 << 6 | 1 << 8 | 1 << 10 | 2 << 12
    here = dict([*fields.items()][:built])

    async def bench(host: Host) -> None:
        await host.write("CONTROL", word | 1 << 14)
        assert {name: host.get(f"control.{name}") for name in here} == here
        assert await host.read("CONTROL") == (word if built > 1 else 13)

    check(config, bench)


def test_the_operation_after_reset_is_one_that_was_built() -> None:
    config = StreamConfiguration(ops=frozenset({Op.COUNT}), lanes=frozenset({Lane.BITS_32}))
    (entry,) = (x for x in stream_registers(config) if x.name == "CONTROL")
    assert entry.reset == Op.COUNT | Lane.BITS_32 << 4 | Lane.BITS_32 << 6

    async def bench(host: Host) -> None:
        assert host.get("control.lane") == host.get("control.out_lane") == Lane.BITS_32
        assert await host.read("CONTROL") == entry.reset

    check(config, bench)


def test_flags_stay_until_they_are_cleared() -> None:
    async def bench(host: Host) -> None:
        flags = host.dut.flags.as_value()
        host.ctx.set(flags, 0xF)
        await host.tick()
        assert await host.read("FLAGS") == 0
        for each in (0b0010, 0, 0b1001):
            host.ctx.set(flags, each)
            await host.pulse("ended")
        assert await host.read("FLAGS") == 0b1011
        assert await host.read("PACKETS") == 3
        # A flag that is raised as it is cleared stays.
        host.ctx.set(flags, 0b1000)
        host.set(ended=1)
        await host.write("FLAGS", 0b1010)
        host.set(ended=0)
        assert await host.read("FLAGS") == 0b1001
        assert await host.read("PACKETS") == 4

    check(LOGIC, bench)


def test_a_register_has_the_flags_in_their_order() -> None:
    flags = [(name, field.offset, field.width) for name, field in Layout.cast(PacketFlags)]
    assert [(each.name.lower(), each.low, each.width) for each in FLAG_FIELDS] == flags
