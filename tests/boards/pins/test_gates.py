"""Netlists of gates and models of vendors' cells: as their makers describe them, in each cycle."""

import ctypes
import random
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from amaranth.hdl import ClockSignal, Const, Instance, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from bitlane_boards.pins import (
    BUILDER,
    HIGH,
    LOW,
    VENDOR_CELLS,
    GateModel,
    NetlistBuilder,
    PinSimulation,
)
from cppsim import Model
from cppsim.build import find_compiler
from cppsim.circuits import Circuit
from cppsim.errors import SimulationError
from support.seeds import seeds, slow
from support.sim.flip_copies import COPIES, FlippedCopies, FlippedRow

pytestmark = pytest.mark.any_face


class Plain:
    """The same netlist in plain Python: slow, and with nothing clever about it."""

    def __init__(self, builder: NetlistBuilder, contents: list[np.ndarray]) -> None:
        self.parts = builder
        self.memories = [list(map(int, memory)) for memory in contents]
        self.level = {LOW: 0, HIGH: 1}
        for _, _, _, q, _, first in builder._flip_flops:
            self.level[q] = first

    def value(self, signal: int) -> int:
        return self.level.get(signal, 0)

    def settle(self, inputs: dict[int, int]) -> None:
        self.level |= inputs
        changed = True
        while changed:
            changed = False
            for signals, table, output in self.parts._luts:
                row = sum(self.value(signal) << bit for bit, signal in enumerate(signals))
                if self.value(output) != table >> row & 1:
                    self.level[output] = table >> row & 1
                    changed = True

    def edge(self) -> None:
        new: dict[int, int] = {}
        stores: list[tuple[int, int, int]] = []
        for d, enable, clear, q, value, _ in self.parts._flip_flops:
            if self.value(clear):
                new[q] = value
            elif self.value(enable):
                new[q] = self.value(d)
        rows: list[tuple[int, int, int]] = []
        for memory, kind, enable, address, bits, data, count in self.parts._ports:
            if not self.value(enable):
                continue
            wires = self.parts._wires
            at = sum(
                place for signal, place, _ in wires[address : address + bits] if self.value(signal)
            )
            for signal, place, mask in wires[data : data + count]:
                if kind == 0:
                    new[signal] = self.memories[memory][at + place]
                elif kind == 2:
                    rows.append((memory, at, self.value(signal)))
                elif self.value(mask):
                    stores.append((memory, at + place, self.value(signal)))
        for memory, place, value in stores:
            self.memories[memory][place] = value
        for lut, row, value in rows:
            inputs, table, output = self.parts._luts[lut]
            self.parts._luts[lut] = inputs, table & ~(1 << row) | value << row, output
        self.level |= new


def at_random(seed: int) -> tuple[NetlistBuilder, list[np.ndarray]]:
    """Return a random netlist whose signals end in flip-flops and memories, or are unused."""
    choose = random.Random(seed)
    builder = NetlistBuilder()
    inputs = [builder.signal() for _ in range(3)]
    builder.inputs = {f"i{number}": (signal,) for number, signal in enumerate(inputs)}
    states = [builder.signal() for _ in range(12)]
    out = [builder.signal() for _ in range(4)]
    signals = [LOW, HIGH, *inputs, *states, *out]
    watched = list(signals)
    made = [builder.signal() for _ in range(30)]
    order = list(range(30))
    # Parts may come in any order.
    choose.shuffle(order)
    for number in order:
        picked = [choose.choice(signals + made[:number]) for _ in range(choose.randint(0, 4))]
        builder.lut(choose.getrandbits(1 << len(picked)), picked, made[number])
    signals += made
    for q in states:
        d, enable, clear = (choose.choice(signals) for _ in range(3))
        builder.flip_flop(
            d,
            q,
            enable=choose.choice([HIGH, enable]),
            clear=choose.choice([LOW, LOW, clear]),
            value=choose.getrandbits(1),
            first=choose.getrandbits(1),
        )
    contents = np.array([choose.getrandbits(1) for _ in range(64)], np.uint8)
    memory = builder.memory(contents)
    address = [(choose.choice(signals), 4 << bit) for bit in range(4)]
    read = choose.choice([HIGH, choose.choice(signals)])
    builder.read_port(memory, read, address, [(signal, bit) for bit, signal in enumerate(out)])
    # The other port sees the same bits as 32 words of 2.
    address = [(choose.choice(signals), 2 << bit) for bit in range(5)]
    data = [
        (choose.choice(signals), bit, choose.choice([HIGH, choose.choice(signals)]))
        for bit in range(2)
    ]
    builder.write_port(memory, choose.choice(signals), address, data)
    address = [(choose.choice(signals), 1 << bit) for bit in range(4)]
    picked = [choose.choice(signals) for _ in range(4)]
    rewritten = builder.lut_ram(
        choose.getrandbits(16), picked, choose.choice(signals), address, choose.choice(signals)
    )
    watched.append(rewritten)
    watched = [signal for signal in watched if signal > HIGH and signal not in inputs]
    builder.outputs = {f"o{number}": (signal,) for number, signal in enumerate(watched)}
    return builder, [contents]


def random_model(seed: int) -> tuple[NetlistBuilder, Plain, GateModel]:
    builder, contents = at_random(seed)
    model = GateModel(builder.build(), f"random netlist {seed}")
    return builder, Plain(builder, contents), model


def run_beside(plain: Plain, model: GateModel, seed: int, cycles: int) -> Iterator[int]:
    """Drive both with the same random inputs; yield each cycle after they have settled."""
    choose, step = random.Random(seed), stepper(model)
    for cycle in range(cycles):
        driven = {}
        for name, (signal,) in plain.parts.inputs.items():
            driven[signal] = choose.getrandbits(1)
            model.set(name, driven[signal])
        plain.settle(driven)
        yield cycle
        step()
        plain.edge()


@pytest.mark.parametrize("seed", seeds(10, 40))
def test_random_netlists_do_what_their_parts_say(seed: int) -> None:
    builder, plain, model = random_model(seed)
    for cycle in run_beside(plain, model, seed, 200):
        shown = {name: model.get(name) for name in builder.outputs}
        expected = {name: plain.value(signal) for name, (signal,) in builder.outputs.items()}
        assert shown == expected, f"seed {seed}, cycle {cycle}"
    assert model.entry().numbers.keys() == model.ports.keys()
    model.close()
    model.close()


def random_flips(choose: random.Random, builder: NetlistBuilder) -> list[FlippedRow]:
    """Rows of LUTs, some of which have inputs that make no difference but for a flip."""
    wholes = []
    for inputs, table, output in builder._luts[:30]:
        for _ in range(choose.randint(0, 4 - len(inputs))):
            table |= table << (1 << len(inputs))
            inputs = (*inputs, choose.choice(builder._flip_flops)[3])
        wholes.append((inputs, output, table))
    picked = [choose.choice(wholes) for _ in range(COPIES)]
    return [FlippedRow(*whole, choose.randrange(1 << len(whole[0]))) for whole in picked]


@pytest.mark.parametrize("seed", seeds(5, 20))
def test_the_rows_that_luts_look_up_are_those_of_levels_at_rest(seed: int) -> None:
    builder, plain, sound = random_model(seed)
    model = FlippedCopies(sound.netlist, f"random netlist {seed}", [])
    places = {int(output): number for number, output in enumerate(model.netlist.luts["output"])}
    for part in (0, 1):
        model.watch_rows()
        rows = dict.fromkeys(places.values(), 0)
        for cycle in run_beside(plain, model, seed + 1000 * part, 30):
            chosen = dict(enumerate(model.chosen.tolist()))
            assert chosen == rows, f"seed {seed}, part {part}, cycle {cycle}"
            for signals, _, output in builder._luts:
                row = sum(plain.value(signal) << bit for bit, signal in enumerate(signals))
                rows[places[output]] |= 1 << row
        chosen = dict(enumerate(model.chosen.tolist()))
        assert chosen == rows, f"seed {seed}, part {part}, last cycle"


@pytest.mark.parametrize("seed", seeds(2, 10))
def test_with_all_pins_watched_any_of_them_makes_a_copy_part(seed: int) -> None:
    builder, _ = at_random(seed)
    expect_parting(builder, random.Random(seed), 30, list(builder.outputs), f"seed {seed}")


def expect_parting(
    builder: NetlistBuilder, choose: random.Random, cycles: int, names: list[str], replay: str
) -> None:
    """Expect copies to part in the cycles in which outputs ``names`` of flipped netlists differ."""
    netlist, watched = builder.build(), LOW
    flips = random_flips(choose, builder)
    copies = FlippedCopies(netlist, f"copies, {replay}", flips)
    alone = [GateModel(flip.put_into(netlist), str(flip)) for flip in flips]
    if len(names) == 1:
        ((watched,),) = (builder.outputs[name] for name in names)
    else:
        copies.watch_pins()
    steps = [stepper(model, watched) for model in (copies, *alone)]
    apart: set[int] = set()
    for cycle in range(cycles):
        for port in builder.inputs:
            level = choose.getrandbits(1)
            for model in (copies, *alone):
                model.set(port, level)
        for name in names:
            shown = copies.get(name)
            apart |= {n for n, model in enumerate(alone) if model.get(name) != shown}
        for step in steps:
            step()
        assert copies.diverged == apart, f"{replay}, cycle {cycle}, {names}"


@pytest.mark.parametrize("seed", seeds(10, 40))
def test_copies_part_in_the_cycle_in_which_a_flipped_netlist_differs(seed: int) -> None:
    builder, _ = at_random(seed)
    choose = random.Random(seed)
    name = choose.choice(list(builder.outputs))
    expect_parting(builder, choose, 100, [name], f"seed {seed}")


def test_a_flip_that_makes_an_oscillator_is_told() -> None:
    builder = NetlistBuilder()
    constant = builder.signal()
    builder.lut(0b0101, [LOW, constant], constant)
    builder.outputs["tx"] = (constant,)
    flip = FlippedRow((LOW, constant), constant, 0b0101, 2)
    copies = FlippedCopies(builder.build(), "beside", [flip])
    stepper(copies)()
    assert copies.diverged == {0}
    copies.close()
    assert copies.diverged == {0}
    with pytest.raises(AssertionError):
        stepper(GateModel(flip.put_into(builder.build()), "alone"))()


def test_more_copies_than_there_are_bits_are_refused() -> None:
    builder = NetlistBuilder()
    output = builder.lut(0b10, [builder.signal()])
    flips = [FlippedRow((LOW,), output, 0b10, 0)] * (COPIES + 1)
    with pytest.raises(ValueError, match="64; expected up to 63"):
        FlippedCopies(builder.build(), "too many", flips)


def stepper(model: GateModel, watched: int = LOW) -> Callable[[], None]:
    """Clocks a model without pins of a UART once."""
    entry = model.entry()
    kind = ctypes.CFUNCTYPE(
        ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint64, ctypes.c_void_p
    )
    run_until = kind(entry.run_until)
    came = ctypes.c_int()

    def step() -> None:
        assert run_until(entry.model, watched, 1, ctypes.addressof(came)) == 1

    return step


def test_a_written_row_of_a_lut_shows_while_its_inputs_stand_still() -> None:
    builder = NetlistBuilder()
    data = builder.signal()
    builder.inputs["data"] = (data,)
    read = builder.lut_ram(0, [HIGH, LOW], HIGH, [(HIGH, 1), (LOW, 2)], data)
    other = builder.lut_ram(0, [LOW, HIGH], HIGH, [(HIGH, 1), (LOW, 2)], data)
    builder.outputs |= {"read": (read,), "other": (other,)}
    model = GateModel(builder.build(), "LUT RAM")
    step = stepper(model)
    for value in (1, 0, 1):
        model.set("data", value)
        step()
        assert model.get("read") == value
        assert model.get("other") == 0


def test_a_lut_may_hang_on_itself_only_where_that_makes_no_difference() -> None:
    builder = NetlistBuilder()
    harmless = builder.signal()
    builder.lut(0b0101, [LOW, harmless], harmless)
    builder.outputs["tx"] = (harmless,)
    assert GateModel(builder.build(), "constant").get("tx") == 1

    looped = builder.signal()
    builder.lut(0b01, [looped], looped)
    with pytest.raises(SimulationError, match="1 LUTs of the netlist depend on a loop"):
        builder.build()


def test_a_signal_with_two_drivers_is_refused() -> None:
    builder = NetlistBuilder()
    signal = builder.lut(0b10, [HIGH])
    builder.flip_flop(HIGH, signal)
    with pytest.raises(SimulationError, match="two drivers"):
        builder.build()


def test_gates_can_be_run_at_their_pins() -> None:
    builder = NetlistBuilder()
    rx, tx = builder.signal(), builder.signal()
    builder.inputs["rx"] = (rx,)
    builder.flip_flop(rx, tx)
    builder.outputs["tx"] = (tx,)
    simulation = PinSimulation(GateModel(builder.build(), "a flip-flop"), 4)
    simulation.run(4)
    # Low until the first edge.
    assert simulation.glitches == 1
    simulation.send(b"echo")
    assert simulation.wait(4, 1000)
    data, cycles = simulation.receive_timed()
    assert data.tobytes() == b"echo"
    # One cycle late, in the middle of the stop bit.
    assert cycles.tolist() == [4 + 39 + 40 * index for index in range(4)]
    assert simulation.framing_errors == 0


# --- models of vendors' cells ---------------------------------------------------------------------


class Ram(wiring.Component):
    """One ``SB_SPRAM256KA``."""

    address: In(14)
    data: In(16)
    mask: In(4)
    write: In(1)
    select: In(1)
    out: Out(16)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.ram = Instance(
            "SB_SPRAM256KA",
            i_CLOCK=ClockSignal(),
            i_ADDRESS=self.address,
            i_DATAIN=self.data,
            i_MASKWREN=self.mask,
            i_WREN=self.write,
            i_CHIPSELECT=self.select,
            i_STANDBY=Const(0),
            i_SLEEP=Const(0),
            i_POWEROFF=Const(1),
            o_DATAOUT=self.out,
        )
        return m


def test_large_ram_reads_holds_and_writes_groups_of_four_bits() -> None:
    ram = Model(Circuit(Ram(), VENDOR_CELLS))
    choose = random.Random(1)
    stored = dict.fromkeys((0, 1, 8192, 16383), 0)
    out = None
    for _ in range(3000):
        address = choose.choice(list(stored))
        data, mask = choose.getrandbits(16), choose.getrandbits(4)
        write, select = choose.getrandbits(1), choose.getrandbits(1)
        given = {"address": address, "data": data, "mask": mask, "write": write, "select": select}
        for port, value in given.items():
            ram.set(port, value)
        ram.step()
        if select and write:
            bits = sum(0xF << 4 * group for group in range(4) if mask >> group & 1)
            stored[address] = stored[address] & ~bits | data & bits
            # Undefined by Lattice; by this model the opposite of the data.
            out = data ^ 0xFFFF
        elif select:
            out = stored[address]
        assert out is None or ram.get("out") == out, given
    ram.close()


# --- compilers ------------------------------------------------------------------------------------


ZIGLANG = f"{sys.executable} -m ziglang c++"
CHOICES = [slow(ZIGLANG), *filter(shutil.which, ("g++", "clang++", "c++"))]
"""Compilers of this machine; the full tier always has ziglang."""


@pytest.mark.parametrize("command", CHOICES)
def test_every_compiler_takes_the_flags(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A flag that a compiler does not know or use causes a warning, which is an error here."""
    monkeypatch.setenv("CPPSIM_CXX", command)
    compiler = find_compiler()
    source, made = tmp_path / "source.cc", tmp_path / "source.o"
    source.write_text('extern "C" int f() { return 3; }\n', encoding="utf-8")
    words = [flag for flag in BUILDER.flags_for(compiler) if flag not in ("-w", "-shared")]
    compiler.run([*words, "-Werror", "-c", "-o", str(made), str(source)])
    assert made.stat().st_size
