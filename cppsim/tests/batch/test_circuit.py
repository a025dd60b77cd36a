"""The ports of a batch, their names and fields, and its clocks and resets."""

from typing import Any

import numpy as np
import pytest
from amaranth.hdl import ClockDomain, Module, Mux, Signal, signed
from amaranth.lib import data, stream
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

import cppsim
from cppsim import Batch, BatchError, Model, Program, ReferenceModel
from support.carriers import Part


def streamed() -> Any:
    """Return a register of the sum of the fields of a stream's payload, which is a structure."""
    layout = data.StructLayout({"low": 3, "pair": data.ArrayLayout(signed(4), 2)})
    return Part(
        {"i": In(stream.Signature(layout)), "total": Out(signed(8))},
        sync=lambda x: x.total.eq(x.i.payload.low + x.i.payload.pair[0] + x.i.payload.pair[1]),
    )


def test_fields_of_structures_are_ports(backend: str) -> None:
    batch = Batch(streamed(), 2, backend)
    batch.set("i__payload.low", np.array([1, 7]))
    batch.set("i__payload.pair.1", np.array([-8, 3]))
    assert batch.get("i__payload").tolist() == [0b1000_0000_001, 0b0011_0000_111]
    assert batch.get("i__payload.pair.1").tolist() == [-8, 3]
    batch.set("i__payload", 0b0000_1111_000)
    assert batch.get("i__payload.pair.0").tolist() == [-1, -1]
    batch.step()
    assert batch.get("total").tolist() == [-1, -1]
    with pytest.raises(BatchError, match=r"port 'i__payload\.low': 8 does not fit 3 bits"):
        batch.set("i__payload.low", 8)
    with pytest.raises(BatchError, match=r"no port 'i\.payload'; did you mean 'i__payload'"):
        batch.get("i.payload")


def test_signals_are_names_of_their_ports(backend: str) -> None:
    dut = streamed()
    batch = Batch(dut, 2, backend)
    batch.set(dut.i.payload, np.array([1, 2]))
    program = Program()
    with program.repeat(2):
        program.set(dut.i.payload, np.array([[1, 2], [3, 4]])).step().get(dut.total)
    assert batch.run(program)["total"].tolist() == [[1, 2], [3, 4]]
    assert batch.run(program.replaced(dut.i.payload, 5))["total"].tolist() == [[5, 5], [5, 5]]
    assert batch.get(dut.total).tolist() == [5, 5]
    assert batch.until(dut.total, 3).all()
    for model in (Model(dut), ReferenceModel(dut)):
        one = Program().set(dut.i.payload, [6]).step().get(dut.total)
        assert model.run(one) == {"total": 6}
        model.close()
    with pytest.raises(BatchError, match=r"is not a port; there are: .*i__payload"):
        batch.get(streamed().total)


def test_expressions_for_fields_are_names_of_their_ports(backend: str) -> None:
    dut = streamed()
    batch, payload = Batch(dut, 2, backend), dut.i.payload
    batch.set(payload.low, [1, 7])
    batch.set(payload.pair[1], [-8, 3])
    batch.set(payload.pair, batch.get(payload.pair))
    assert batch.get("i__payload").tolist() == [0b1000_0000_001, 0b0011_0000_111]
    program = Program().get(payload.pair[1]).set(payload.low, 2).step().get("total")
    results = batch.run(program.replaced("i__payload.low", 3))
    assert results["i__payload.pair.1"].tolist() == [-8, 3]
    assert results["total"].tolist() == [-5, 6]
    fields = "i__payload.low, i__payload.pair, i__payload.pair.0, i__payload.pair.1"
    for key, answer in (
        (payload.low[0], rf"is not a field of 'i__payload'; there are: {fields}$"),
        (payload.as_value()[4:], rf"is not a field of 'i__payload'; there are: {fields}$"),
        (streamed().i.payload.low, rf"is not a port; .* i__payload, {fields}, i__ready, "),
        ("i__payload.high", rf"no port 'i__payload.high'; .* i__payload, {fields}, i__ready, "),
        (dut.i, "port: an interface; expected a port of it: payload, valid, ready"),
    ):
        with pytest.raises(BatchError, match=answer) as error:
            batch.set(key, 1)
        assert "clk" not in str(error.value)


def test_values_are_replaced_however_a_port_is_called(backend: str) -> None:
    dut = streamed()
    batch = Batch(dut, 2, backend)
    program = Program().set("i__payload", 1).step().get("total", "first")
    program.set(dut.i.payload, 2).step().get("total", "second")
    for port in ("i__payload", dut.i.payload):
        other = program.replaced(port, [[3, 4], [5, 6]]).set("i__payload", 7).step().get("total")
        for again, second in ((other, 4), (other.replaced(dut.i.payload, 1), 1)):
            results = batch.run(again)
            assert results["second"].tolist() == [second, second + 2 * (second == 4)]
            assert results["total"].tolist() == [7 if again is other else 1] * 2
    first = Program().set(dut.i.valid, 0).set(dut.i.payload, 1).get("i__valid").step().get("total")
    results = batch.run(first.replaced(dut.i.valid, 1).replaced(dut.i.payload, 3))
    assert [x.tolist() for x in results.values()] == [[1, 1], [3, 3]], "both are replaced"
    with pytest.raises(BatchError, match=r"'i__payload' is set 2 times: .*, 2\), not \(2,\)"):
        batch.run(program.replaced(dut.i.payload, [1, 2]))
    with pytest.raises(BatchError, match="no port 'total' is set; set are: i__payload"):
        batch.run(program.replaced(dut.total, 1))

    async def testbench(ctx: Any) -> None:
        ctx.set(dut.i.payload.low, 5)
        await ctx.tick()
        ctx.get(dut.total)

    recorded = batch.record(testbench).program
    for port in ("i__payload", dut.i.payload):
        assert batch.run(recorded.replaced(port, [1, 2]))["total"].tolist() == [1, 2]


def test_a_reset_of_nothing_but_a_read_port_is_a_port(backend: str) -> None:
    m = Module()
    m.domains.sync = domain = ClockDomain()
    m.submodules.memory = memory = Memory(shape=8, depth=4, init=[9])
    port = memory.read_port()
    shown, read = Signal(8, name="shown"), Signal(init=1)
    m.d.comb += [shown.eq(port.data), port.en.eq(read)]
    batch = Batch(m, 2, backend)
    batch.step()
    batch.set(domain.rst, [0, 1])
    batch.set("read", 0)
    batch.step()
    assert batch.get("shown").tolist() == [9, 0]


def own_reset() -> Any:
    """Return a design whose ports have the names of its domain's clock and reset."""
    return Part(
        {"rst": In(1), "clk": In(8), "taken": Out(8)},
        sync=lambda x: x.taken.eq(Mux(x.rst, x.clk, x.taken)),
    )


def test_a_port_keeps_its_name_beside_the_clock_and_the_reset_of_a_domain() -> None:
    dut = own_reset()
    batch = Batch(dut, 3, "threads")
    for values in ({"clk": [5, 6, 7], "rst": [0, 1, 1]}, {"rst2": [1, 1, 0]}):
        for name, value in values.items():
            batch.set(name, value)
        batch.step()
        assert batch.get("taken").tolist() == [0, 6 * ("clk" in values), 7]

    async def testbench(ctx: Any) -> None:
        ctx.set(dut.clk, 9)
        ctx.set(dut.rst, 1)
        await ctx.tick()
        ctx.get(dut.taken)

    again = Batch(dut, 2, "threads")
    assert again.run(again.record(testbench).program)["taken"].tolist() == [9, 9]


def two_resets() -> Any:
    """Return a design with a port called ``rst`` and a reset of the same name."""

    def build(m: Module, x: Any) -> None:
        m.domains.sync = x.domain = ClockDomain("sync")

    return Part(
        {"rst": In(1), "count": Out(4)}, build=build, sync=lambda x: x.count.eq(x.count + 1 + x.rst)
    )


def test_a_reset_that_a_port_shares_its_name_with_is_recorded_under_its_number() -> None:
    dut = two_resets()

    async def testbench(ctx: Any) -> None:
        ctx.set(dut.rst, 1)
        await ctx.tick().repeat(3)
        ctx.get(dut.count)
        ctx.set(dut.domain.rst, 1)
        await ctx.tick()
        ctx.get(dut.count)

    batch = Batch(dut, 2, "threads")
    recording = batch.record(testbench)
    results = batch.run(recording.program.replaced("rst2", [1, 0]))
    assert recording.results["count"] == 6
    assert recording.results["count 2"] == 0
    assert results["count 2"].tolist() == [0, 8]
    exposed = Batch(two_resets(), 1, "threads", expose=["count", "rst"])
    assert set(exposed.ports) >= {"rst", "rst2", "count"}


def test_a_domain_without_logic_has_neither_clock_nor_reset() -> None:
    idle = Part(
        {"count": Out(4)},
        build=lambda m, x: m.domains.__iadd__(ClockDomain("idle")),
        sync=lambda x: x.count.eq(x.count + 1),
    )
    batch = Batch(idle, 2, "threads")
    assert {name for name in batch.ports if "$" not in name} == {"rst", "count"}
    batch.step(5)
    assert batch.get("count").tolist() == [5, 5]


@pytest.mark.parametrize("ratio", [1, 3])
def test_clocks_of_unequal_rates_have_the_values_of_the_simulator(ratio: int) -> None:
    """The slow clock has its edges between those of the fast one, in both."""
    m = Module()
    m.domains.slow = ClockDomain()
    count, back = Signal(8, name="count"), Signal(8, name="back")
    m.d.sync += count.eq(count + back + 1)
    m.d.slow += back.eq(count ^ back)
    expected = list[int]()

    async def testbench(ctx: Any) -> None:
        for _ in range(9):
            await ctx.tick("slow")
            expected.append(ctx.get(back))

    simulator = cppsim.Simulator(m, mode="off")
    simulator.add_clock(1e-6)
    simulator.add_clock(ratio * 1e-6, phase=(ratio - 0.25) * 1e-6, domain="slow")
    simulator.add_testbench(testbench)
    simulator.run()
    program = Program()
    with program.repeat(9):
        program.step(ratio).set("slow_clk", 1).set("slow_clk", 0).get("back")
    batch = Batch(m, 2, "threads", clocks=["sync"])
    assert batch.run(program)["back"].tolist() == [expected] * 2
    assert len(set(expected)) > 5
