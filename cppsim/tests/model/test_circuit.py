"""A model drives one clock, of the component or of its circuit, and accesses storage outside."""

import random
from collections.abc import Callable
from contextlib import closing
from functools import partial
from typing import Any

import numpy as np
import pytest
from amaranth.hdl import (
    Cat,
    ClockDomain,
    ClockSignal,
    Elaboratable,
    Instance,
    Module,
    Mux,
    ResetSignal,
    Signal,
)
from amaranth.lib.fifo import AsyncFIFO, SyncFIFO, SyncFIFOBuffered
from amaranth.lib.wiring import In, Out

from cppsim import Batch, Model, Program, ReferenceModel, StorageAccess, StoragePort
from cppsim.circuits import AnyModel, Circuit
from cppsim.errors import SimulationError
from support.carriers import Part
from support.seeds import slow
from support.small import refused

Maker = Callable[..., AnyModel]


class Counter(Part):
    """Counts in the domain ``sync`` that ``define`` adds to its module, or to a submodule's."""

    def __init__(self, define: Callable[[Module, Any], None], *, below: int = 0) -> None:
        def build(m: Module, x: Any) -> None:
            m.submodules.next = inner = Module()
            inner.d.sync += x.count.eq(next_count := Signal(8))
            m.d.comb += next_count.eq(x.count + x.data)
            for _ in range(below):
                m.submodules.inner = inner = Module()
                m = inner
            define(m, x)

        super().__init__({"data": In(8), "count": Out(8)}, build=build)


def by_itself(m: Module, _: Any, **options: bool) -> None:
    m.domains.sync = ClockDomain(**options)


without_a_reset = partial(by_itself, reset_less=True)
with_an_asynchronous_reset = partial(by_itself, async_reset=True)
that_is_local = partial(by_itself, local=True)


def with_a_reset_of_its_own(m: Module, counter: Any) -> None:
    by_itself(m, counter)
    m.d.comb += ResetSignal().eq(counter.count >= 12)


def that_makes_its_clock(m: Module, counter: Any) -> None:
    by_itself(m, counter)
    m.d.comb += ClockSignal().eq(counter.data[0])


DEPRECATED = pytest.mark.filterwarnings("ignore:Domain 'sync' is used in:DeprecationWarning")

OWN = [
    (by_itself, 0),
    (without_a_reset, 0),
    (with_an_asynchronous_reset, 0),
    (with_a_reset_of_its_own, 0),
    pytest.param(by_itself, 2, marks=DEPRECATED),
    pytest.param(without_a_reset, 1, marks=DEPRECATED),
]


@pytest.mark.parametrize(("define", "below"), OWN)
def test_a_component_keeps_the_domain_that_it_defines(define: Any, below: int) -> None:
    dut = Counter(define, below=below)
    program = Program().set("data", 5)
    with program.repeat(6):
        program.step().get("count")
    has_reset = define not in (without_a_reset, with_a_reset_of_its_own)
    with closing(Model(dut)) as model, closing(ReferenceModel(dut)) as reference:
        found, wanted = (each.run(program)["count"].tolist() for each in (model, reference))
        assert found == wanted != [0] * 6
        assert ("rst" in model.widths, "rst" in reference.widths) == (has_reset, has_reset)
        for value in (1, 0) if has_reset else ():
            for each in (model, reference):
                each.set("rst", value)
            assert model.get("count") == reference.get("count")
            for each in (model, reference):
                each.step()
            assert model.get("count") == reference.get("count") == (0 if value else 5)


def chain() -> Part:
    """Return two Instances behind each other, the second within a submodule."""

    def build(m: Module, x: Any) -> None:
        m.submodules.inner = inner = Module()
        m.submodules.first = Instance("INVERT", i_CK=ClockSignal(), i_i=x.value, o_o=x.once)
        inner.submodules.second = Instance("INVERT", i_i=x.once, o_o=x.twice)

    return Part({"value": In(4), "once": Out(4), "twice": Out(4)}, build=build)


def inverter() -> Part:
    """Return a component that outputs the opposite of its input, a cycle later."""
    return Part({"i": In(4), "o": Out(4)}, sync=lambda x: x.o.eq(~x.i))


def test_components_stand_for_instances_at_any_depth() -> None:
    with closing(Model(Circuit(chain(), {"INVERT": inverter, "OTHER": chain}))) as model:
        model.set("value", 5)
        for expected in ((10, 15), (10, 5)):
            model.step()
            assert (model.get("once"), model.get("twice")) == expected
    with pytest.raises(SimulationError, match="INVERT"):
        Model(Circuit(chain(), {"OTHER": inverter}))


def two() -> Part:
    """Return a component of two clocks."""

    def build(m: Module, x: Any) -> None:
        m.domains.other = ClockDomain()
        m.d.other += x.count.eq(x.count + 1)

    return Part({"count": Out(8)}, build=build)


@pytest.mark.parametrize(
    ("component", "answer"),
    [
        (lambda: Counter(that_makes_its_clock), "Counter: domain 'sync': .* makes the clock its"),
        (lambda: Counter(that_is_local), "domain 'sync': the component has a local one; expected"),
        (lambda: Counter(that_is_local, below=1), "domain 'sync': .* has a local one; expected o"),
        (two, "take cppsim.Simulator or cppsim.Batch"),
        (lambda: AsyncFIFO(width=8, depth=4), "take cppsim.Simulator or cppsim.Batch"),
    ],
)
def test_other_clocks_are_refused_in_one_line(make: Maker, component: Any, answer: str) -> None:
    refused(SimulationError, answer, lambda: make(component()))


class Older(Elaboratable):
    """A design without a signature, with a submodule."""

    def __init__(self) -> None:
        self.data = Signal(8)
        self.total = Signal(8, init=3)
        self.unused = Signal(4)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        inner = Signal(8)
        m.submodules.inner = below = Module()
        below.d.sync += inner.eq(self.data + 1)
        m.d.sync += self.total.eq(self.total + inner + self.unused[0])
        return m


@pytest.mark.parametrize(
    "design",
    [lambda: SyncFIFO(width=8, depth=4), slow(lambda: SyncFIFOBuffered(width=3, depth=5)), Older],
)
def test_a_design_without_a_signature_has_the_ports_of_a_batch(make: Maker, design: Any) -> None:
    rng, dut = random.Random(3), design()
    model, batch = make(dut), Batch(dut, 1, "threads")
    known = {name: x for name, x in batch.description.ports.items() if not name.startswith("$")}
    inputs = {name for name, x in known.items() if x.input}
    assert model.widths == {name: x.width for name, x in known.items()}
    assert {x.name for x in model.ports.values() if x.input} == inputs
    for _ in range(40):
        for name in sorted(inputs):
            value = rng.getrandbits(known[name].width) * (name != "rst" or rng.random() < 0.1)
            for each in (model, batch):
                each.set(name, value)
        for each in (model, batch):
            each.step()
        assert {x: model.get(x) for x in known} == {x: int(batch.get(x)[0]) for x in known}


def test_representations_say_what_it_is() -> None:
    counter = Counter(by_itself)
    assert repr(Model(counter)) == "<Model of Counter: 3 ports>"
    assert repr(ReferenceModel(counter)) == "<ReferenceModel of Counter: 3 ports>"
    assert repr(Batch(counter, 5, "threads")) == "<Batch of Counter: 5 instances on threads>"
    program = Program().set(counter.data, 1)
    with program.repeat(3):
        program.set("data", [[1, 2, 3]]).step(2).get("count")
    program.until("count", 9)
    text = "set data, repeat 3 (set data, step 2, get count), until count 9"
    assert repr(program) == f"Program({text})"
    for _ in range(20):
        program.step()
    assert repr(program) == f"Program({text}{', step 1' * 9}, 11 more)"


# --- storage --------------------------------------------------------------------------------------


READS = {"buffer": "ram", "enable": "read", "address": "read_word", "data": "read_data"}
WRITES = {"buffer": "ram", "enable": "write", "address": "write_word", "data": "write_data"}
STORAGE = (
    StoragePort(access=StorageAccess.READ, **READS),
    StoragePort(access=StorageAccess.WRITE, **WRITES, mask="write_mask"),
)
"""Storage of `mixer`: words of ``data_width`` bits."""


def mixer(data_width: int = 64, words: int = 16) -> Part:
    """Return a circuit that accesses storage at pseudo-random words through a FIFO.

    It has every kind of port that a model treats differently: one word wide and more, registered,
    combinational from registers, combinational from inputs, constant.
    """

    def build(m: Module, x: Any) -> None:
        state, came = Signal(32, init=0xACE1_1234), Signal()
        m.d.sync += state.eq(Cat(state[31] ^ state[21] ^ state[1] ^ state[0], state[:31]))
        fifo = m.submodules.fifo = SyncFIFOBuffered(width=data_width, depth=6)
        m.d.sync += [came.eq(x.read), x.count.eq(x.count + x.go)]
        m.d.comb += [
            *(x.read.eq(x.go & state[3]), x.read_word.eq(state[8:] % words)),
            *(fifo.w_data.eq(x.read_data ^ x.salt), fifo.w_en.eq(came), fifo.r_en.eq(state[7])),
            *(x.write.eq(fifo.r_rdy & fifo.r_en), x.write_word.eq(state[16:] % words)),
            # The output of a FIFO's memory after a reset is undefined.
            x.write_data.eq(Mux(fifo.r_rdy, fifo.r_data, 0)),
            x.write_mask.eq(Mux(state[5], ~0, state)),
            *(x.echo.eq(x.wide * 5 + x.count), x.sum.eq(x.count + x.read_data[:16])),
        ]

    word, data = Out(range(words)), Out(data_width)
    return Part(
        {"go": In(1), "salt": In(data_width), "wide": In(100), "read_data": In(data_width)}
        | {"read": Out(1), "read_word": word, "write": Out(1), "write_word": word}
        | {"write_data": data, "write_mask": Out(data_width // 8), "count": Out(16)}
        | {"echo": Out(100), "sum": Out(16), "constant": Out(40, init=0x12_3456_789A)},
        build=build,
    )


def ram(data_width: int = 64, words: int = 16) -> np.ndarray:
    return np.random.default_rng(data_width).integers(0, 256, words * data_width // 8, np.uint8)


@pytest.mark.parametrize(
    ("data_width", "words"), [(64, 16), slow(32, 11), (512, 4), slow(8, 16), slow(24, 5)]
)
def test_evaluators_agree_on_every_port_in_every_cycle(data_width: int, words: int) -> None:
    circuits = []
    for evaluator in (ReferenceModel, Model):
        buffer = ram(data_width, words)
        dut = mixer(data_width, words)
        circuits.append((evaluator(dut, storage=STORAGE, buffers={"ram": buffer}), buffer))
    (slow, slow_ram), (fast, fast_ram) = circuits
    assert slow.widths == fast.widths
    before = slow_ram.copy()
    choose = random.Random(data_width)
    for cycle in range(150):
        for port in ("go", "salt", "wide", "rst"):
            value = choose.getrandbits(slow.widths[port]) & -(port != "rst" or cycle % 50 == 49)
            slow.set(port, value)
            fast.set(port, value)
        for moment in ("before", "after"):
            shown = {port: slow.get(port) for port in slow.widths}
            assert {port: fast.get(port) for port in fast.widths} == shown, (cycle, moment)
            if moment == "before":
                slow.step()
                fast.step()
        assert (slow_ram == fast_ram).all(), cycle
    assert (slow_ram != before).any()
    assert slow.cycles == fast.cycles == 150


def test_reset_returns_to_power_on_and_keeps_the_storage(make: Maker) -> None:
    buffer = ram()
    evaluator = make(mixer(), storage=STORAGE, buffers={"ram": buffer})

    def history() -> list[int]:
        evaluator.set("go", 1)
        values = []
        for _ in range(40):
            evaluator.step()
            values += [evaluator.get(port) for port in ("count", "read_word", "write_word")]
        return values

    first = history()
    stored = buffer.copy()
    evaluator.reset()
    assert evaluator.cycles == 0
    assert [evaluator.get(port) for port in ("go", "count", "read_data")] == [0, 0, 0]
    assert (buffer == stored).all()
    assert history() == first


def test_access_past_the_buffer_raises(make: Maker) -> None:
    evaluator = make(mixer(), storage=STORAGE, buffers={"ram": ram()[:64]})
    evaluator.set("go", 1)
    with pytest.raises(SimulationError, match="read_data: an access is past its buffer"):
        evaluator.step(100)


def read_only() -> np.ndarray:
    buffer = ram()
    buffer.flags.writeable = False
    return buffer


@pytest.mark.parametrize(
    ("changes", "buffer", "message"),
    [
        ({"data": "nothing"}, ram, "no port 'nothing'"),
        ({"data": "wide"}, ram, "100 bits; expected whole bytes"),
        ({"buffer": "rom"}, ram, "no buffer 'rom'"),
        ({"data": "write_data"}, ram, "write_data: an output of the circuit; expected an input"),
        ({"access": "read"}, ram, "read_data: access 'read'; expected a StorageAccess"),
        ({}, read_only, "buffer 'ram': read-only"),
        ({}, lambda: bytes(64), "buffer 'ram': expected a contiguous uint8"),
    ],
)
def test_storage_that_does_not_fit_is_refused(
    make: Maker, changes: dict[str, Any], buffer: Callable[[], Any], message: str
) -> None:
    port = StoragePort(**({"access": StorageAccess.READ} | READS | changes))
    with pytest.raises(SimulationError, match=message):
        make(mixer(), storage=[port, *STORAGE[1:]], buffers={"ram": buffer()})


def swap() -> Part:
    """Return a circuit that reads and writes one word of its storage at each edge."""
    ports = {"value": In(8), "before": In(8), "enable": Out(1, init=1), "address": Out(2, init=3)}
    return Part(
        ports | {"written": Out(8), "mask": Out(1, init=1)},
        comb=lambda x: [*(x.enable.eq(1), x.address.eq(3), x.mask.eq(1)), x.written.eq(x.value)],
    )


def test_a_word_that_is_written_at_the_same_edge_reads_as_before(make: Maker) -> None:
    ports = {"buffer": "ram", "enable": "enable", "address": "address"}
    write = StoragePort(access=StorageAccess.WRITE, data="written", mask="mask", **ports)
    read = StoragePort(access=StorageAccess.READ, data="before", **ports)
    for storage in ((write, read), (read, write)):
        buffer = np.array([0, 0, 0, 7], np.uint8)
        model = make(swap(), storage=storage, buffers={"ram": buffer})
        shown = []
        for value in (8, 9):
            model.set("value", value)
            model.step()
            shown.append((model.get("before"), int(buffer[3])))
        assert shown == [(7, 8), (8, 9)]


def test_storage_serves_the_clock_of_the_component(make: Maker) -> None:
    """The component has its own domain; it adds the words that it reads."""
    reader = Part(
        {"read__enable": Out(1, init=1), "read__address": Out(2), "read__data": In(8)}
        | {"total": Out(16)},
        build=lambda m, x: setattr(m.domains, "sync", ClockDomain("sync", reset_less=True)),
        sync=lambda x: [
            x.read__address.eq(x.read__address + 1),
            x.total.eq(x.total + x.read__data),
        ],
    )
    ports = [StoragePort.of_member("read", "ram", StorageAccess.READ)]
    model = make(reader, storage=ports, buffers={"ram": np.array([3, 50, 7, 11], np.uint8)})
    totals = []
    for _ in range(8):
        model.step()
        totals.append(model.get("total"))
    assert totals == [0, 3, 53, 60, 71, 74, 124, 131]
