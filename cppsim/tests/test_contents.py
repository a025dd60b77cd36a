"""Contents of memories are data: other contents compile nothing, and act as in Amaranth."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from amaranth.hdl import Cat, Module, Shape, Value, signed
from amaranth.lib.data import StructLayout
from amaranth.lib.memory import Memory, MemoryData
from amaranth.lib.wiring import Component, In, Out

import cppsim
from cppsim import Batch, BatchError, Model, Program, ReferenceModel
from cppsim.batch import read_folder
from cppsim.batch.__main__ import main
from cppsim.compiling import CACHE
from cppsim.errors import SimulationError
from cppsim.netlist import from_words, row_bytes
from cppsim.testing import EXECUTORS, Bench
from support.carriers import Part

DEPTH = 4
FIELDS = StructLayout({"low": 5, "high": signed(7)})
SHAPES: dict[str, tuple[Any, int, list[list[Any]]]] = {
    "8 bits": (8, DEPTH, [[1, 2, 3, 255], [255, 0, 0, 7]]),
    "1 bit": (1, DEPTH, [[1, 0, 1, 1], [0, 1, 0, 0]]),
    "9 bits": (9, DEPTH, [[511, 256, 1, 0], [0, 1, 257, 511]]),
    "32 bits": (32, DEPTH, [[1 << 31, 3], [0xFFFF_FFFF] * DEPTH]),
    "64 bits": (64, DEPTH, [[1 << 63, 1], [(1 << 64) - 1] * DEPTH]),
    "65 bits": (65, DEPTH, [[1 << 64, 1], [(1 << 65) - 1, 1 << 64]]),
    "200 bits": (200, DEPTH, [[1 << 199 | 1 << 100 | 5], [0, 0, 0, (1 << 200) - 1]]),
    "signed": (signed(8), DEPTH, [[-1, 127, -128, 0], [5, -5]]),
    "signed 70 bits": (signed(70), DEPTH, [[-1, 1 << 68], [-(1 << 69), -2]]),
    "fields": (FIELDS, DEPTH, [[{"low": 3, "high": -2}], [{"low": 31, "high": 63}] * DEPTH]),
    "sparse": (16, 100, [[7], [0, 0, 9]]),
    "none": (8, DEPTH, [[], [0, 0, 0, 1]]),
    "no bits": (0, DEPTH, [[], [0, 0]]),
    "one row": (8, 1, [[200], [3]]),
    "no rows": (8, 0, [[], []]),
}
"""Shape and depth of memories, and two contents of each."""


class Stored(Component):
    """Memories of each shape, with one of two contents.

    Each memory is read in three ways, and a write at ``at`` takes the row of a memory that nothing
    writes, plus 1.
    """

    def __init__(self, content: int) -> None:
        made = {
            name: [Memory(shape=shape, depth=depth, init=contents[content]) for _ in range(2)]
            for name, (shape, depth, contents) in SHAPES.items()
        }
        self.memories = {name: memory for name, (memory, _) in made.items()}
        self.constants = {name: memory for name, (_, memory) in made.items()}
        outputs = {
            f"{output}_{number}": Out(Shape.cast(memory.shape).width)
            for number, memory in enumerate(self.memories.values())
            for output in ("now", "late", "through", "constant")
        }
        super().__init__({"at": In(7), "write": In(1), **outputs})
        self.outputs = [name for name, member in outputs.items() if member.shape]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        pairs = zip(self.memories.values(), self.constants.values(), strict=True)
        for number, (memory, constant) in enumerate(pairs):
            m.submodules[f"memory_{number}"], m.submodules[f"constant_{number}"] = memory, constant
            write = memory.write_port()
            ports = {
                "now": memory.read_port(domain="comb"),
                "late": memory.read_port(),
                "through": memory.read_port(transparent_for=(write,)),
                "constant": constant.read_port(domain="comb"),
            }
            for name, port in ports.items():
                output = getattr(self, f"{name}_{number}")
                m.d.comb += [port.addr.eq(self.at), output.eq(Value.cast(port.data))]
            m.d.comb += [write.addr.eq(self.at), write.en.eq(self.write)]
            m.d.comb += Value.cast(write.data).eq(Value.cast(ports["constant"].data) + 1)
        return m

    def rows(self) -> list[Any]:
        """Return the rows of all memories."""
        memories = [*self.memories.values(), *self.constants.values()]
        return [Value.cast(x.data[row]) for x in memories for row in range(x.depth)]


ADDRESSES = (0, 1, 2, 3, 99, 1, 0)


def trace(content: int, executor: str) -> list[Any]:
    """Return outputs and rows in each cycle of two runs, and the waveforms of the first."""
    design, sim = Stored(content), Bench(EXECUTORS[executor])
    outputs = [getattr(design, name) for name in design.outputs]

    async def testbench(ctx: Any) -> None:
        for cycle, address in enumerate(ADDRESSES):
            ctx.set(design.at, address)
            ctx.set(design.write, cycle & 1)
            sim.seen.append([ctx.get(value) for value in (*outputs, *design.rows())])
            await ctx.tick()

    made = sim.run(design, testbench, traces=[design.memories["200 bits"].data])
    made.reset()
    made.run()
    return sim.seen


def test_another_content_compiles_nothing_and_acts_as_in_amaranth(fresh_cache: Path) -> None:
    entries = list[int]()
    for content in range(2):
        expected = trace(content, "pysim")
        for executor in ("always", "check")[: 1 + content]:
            assert trace(content, executor) == expected
        assert expected[0] == expected[len(ADDRESSES) + 1]
        entries.append(len(CACHE.entries()))
    assert entries[0] == entries[1] > 0


def program_of(design: Stored) -> Program:
    """Return a program that reads all outputs at each address, and writes every other one."""
    program = Program()
    for cycle, address in enumerate(ADDRESSES):
        program.set("at", address).set("write", cycle & 1)
        for output in design.outputs:
            program.get(output, f"{output} {cycle}")
        program.step()
    return program


def test_models_have_the_rows_of_their_design(fresh_cache: Path) -> None:
    fresh = []
    for content in range(2):
        design = Stored(content)
        program, model = program_of(design), Model(design)
        expected = ReferenceModel(Stored(content)).run(program)
        fresh.append(model.library.fresh)
        for _ in range(2):
            assert model.run(program) == expected
            model.reset()
    assert fresh == [True, False]


def instances(results: dict[str, Any]) -> list[dict[str, int]]:
    """Return the results of a batch of 3 instances as a model returns them."""
    return [
        {name: from_words(np.atleast_1d(values[k]).tolist()) for name, values in results.items()}
        for k in range(3)
    ]


@pytest.mark.slow
def test_batches_and_their_folders_have_the_rows_of_their_design(
    fresh_cache: Path, tmp_path: Path
) -> None:
    entries = list[int]()
    for content in range(2):
        design, folder = Stored(content), tmp_path / str(content)
        program, batch = program_of(design), Batch(design, 3, "threads")
        batch.export(folder, program)
        expected = ReferenceModel(Stored(content)).run(program)
        for _ in range(2):
            assert instances(batch.run(program)) == [expected] * 3
            batch.reset()
        main([str(folder), "--backend", "threads"])
        with np.load(folder / "results.npz") as results:
            assert instances({name: results[name] for name in expected}) == [expected] * 3
        entries.append(len(CACHE.entries()))
    # The export's source, for both backends, is compiled once.
    assert entries[0] == entries[1]


def slices(rows: Sequence[int]) -> Part:
    """Return an output of some bits of a memory's rows, so that a model trims the others."""

    def build(m: Module, x: Any) -> None:
        # Removed whole: the second memory is number 1 of the netlist, and 0 of the library.
        m.submodules.unread = unread = Memory(shape=8, depth=4, init=[9, 9, 9, 9])
        m.submodules.memory = memory = Memory(shape=signed(100), depth=4, init=rows)
        port = memory.read_port(domain="comb")
        m.d.comb += [unread.read_port().addr.eq(x.at), port.addr.eq(x.at)]
        m.d.comb += x.some.eq(Cat(port.data[1:3], port.data[62:66]))

    return Part({"at": In(2), "some": Out(6)}, build=build)


@pytest.mark.parametrize("seed", [0, 1])
def test_a_model_takes_the_bits_that_are_read(seed: int) -> None:
    choose = np.random.default_rng(seed)
    rows = [int.from_bytes(choose.bytes(12), "little", signed=True) for _ in range(4)]
    model = Model(slices(rows))
    for row, value in enumerate(rows):
        model.set("at", row)
        assert model.get("some") == (value >> 1 & 3) | (value >> 62 & 15) << 2


def small(rows: Sequence[int]) -> Part:
    """Return two memories that are read; the rows of the first end within a word."""

    def build(m: Module, x: Any) -> None:
        for name, depth in (("odd", 3), ("memory", 4)):
            m.submodules[name] = memory = Memory(shape=8, depth=depth, init=rows[:depth])
            port = memory.read_port(domain="comb")
            m.d.comb += [port.addr.eq(x.at), getattr(x, f"{name}_row").eq(port.data)]

    return Part({"at": In(2), "odd_row": Out(8), "memory_row": Out(8)}, build=build)


def test_another_content_of_a_batch_compiles_nothing(fresh_cache: Path, tmp_path: Path) -> None:
    entries = list[int]()
    program = Program().set("at", [0, 2]).step().get("odd_row").get("memory_row")
    for rows in ([1, 2, 3, 4], [255, 0, 7, 0]):
        batch = Batch(small(rows), 2, "threads")
        batch.export(tmp_path / "folder", program)
        stored = read_folder(tmp_path / "folder").rows.view(np.uint32).tolist()
        assert stored == [[*rows[:3], 0, *rows]]
        for _ in range(2):
            for name, values in batch.run(program).items():
                assert values.tolist() == [rows[0], rows[2]], name
            batch.set_memory("memory", [9, 8, 7, 6])
            batch.reset()
        entries.append(len(CACHE.entries()))
    assert entries[0] == entries[1] > 0


def test_a_memory_with_two_instances_is_left_to_amaranth() -> None:
    """Two instances of one memory share its rows in Amaranth's simulator."""

    def build(m: Module, x: Any) -> None:
        data = MemoryData(shape=8, depth=2, init=[1])
        m.submodules.one, m.submodules.other = one, _ = Memory(data), Memory(data)
        m.d.comb += x.out.eq(one.read_port(domain="comb").data)

    twice = Part({"out": Out(8)}, build=build)
    with pytest.warns(cppsim.FallbackWarning, match="memory 'data' at .* has two instances"):
        cppsim.Simulator(twice)
    with pytest.raises(BatchError, match="two instances"):
        Batch(twice, 1, "threads")
    with pytest.raises(SimulationError, match="two instances; expected one"):
        Model(twice)


@pytest.mark.parametrize("element", [8, 16, 32, 64])
def test_bytes_of_rows_have_the_chosen_bits(element: int) -> None:
    choose = np.random.default_rng(element)
    for width in (0, 1, 5, element):
        rows = [int(x) for x in choose.integers(-(1 << 40), 1 << 40, 5)]
        columns = sorted(choose.choice(70, width, replace=False).tolist())
        expected = [sum((row >> index & 1) << k for k, index in enumerate(columns)) for row in rows]
        size = element // 8
        assert row_bytes(rows, columns, element) == b"".join(
            x.to_bytes(size, "little") for x in expected
        )
    wide = list(range(130))
    assert row_bytes([-1, 5], wide, 64) == b"".join(
        x.to_bytes(24, "little") for x in ((1 << 130) - 1, 5)
    )
