"""Storage outside a circuit: both evaluators access it in the same cycles, and keep its bytes."""

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from amaranth.hdl import ClockDomain
from amaranth.lib.wiring import In, Out

from cppsim import Model, ReferenceModel, StorageAccess, StoragePort
from cppsim.errors import SimulationError
from support.carriers import Part
from support.evaluated import READS, STORAGE, Mixer
from support.seeds import slow

Maker = Callable[..., Any]


@pytest.fixture(params=[ReferenceModel, Model])
def make(request: pytest.FixtureRequest) -> Maker:
    made: Maker = request.param
    return made


def ram(data_width: int = 64, words: int = 16) -> np.ndarray:
    return np.random.default_rng(data_width).integers(0, 256, words * data_width // 8, np.uint8)


@pytest.mark.parametrize(
    ("data_width", "words"), [(64, 16), slow(32, 11), (512, 4), slow(8, 16), slow(24, 5)]
)
def test_evaluators_agree_on_every_port_in_every_cycle(data_width: int, words: int) -> None:
    circuits = []
    for evaluator in (ReferenceModel, Model):
        buffer = ram(data_width, words)
        mixer = Mixer(data_width, words)
        circuits.append((evaluator(mixer, storage=STORAGE, buffers={"ram": buffer}), buffer))
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
    evaluator = make(Mixer(), storage=STORAGE, buffers={"ram": buffer})

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
    evaluator = make(Mixer(), storage=STORAGE, buffers={"ram": ram()[:64]})
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
        make(Mixer(), storage=[port, *STORAGE[1:]], buffers={"ram": buffer()})


def swap() -> Part:
    """Return a circuit that reads and writes one word of its storage at each edge."""
    ports = {"value": In(8), "before": In(8), "enable": Out(1, init=1), "address": Out(2, init=3)}
    return Part(
        ports | {"written": Out(8), "mask": Out(1, init=1)},
        comb=lambda x: [
            *(x.enable.eq(1), x.address.eq(3), x.mask.eq(1)),
            x.written.eq(x.value),
        ],
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
    model.close()
