"""Run two firmwares on one processor: the second starts without compiling.

The program is the content of a memory, and contents are data: cppsim compiles the processor once.
"""

from collections.abc import Sequence
from enum import IntEnum
from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import Component, Out

import cppsim
from cppsim.compiling import CACHE


class Operation(IntEnum):
    """The upper four bits of an instruction; the lower twelve are its operand."""

    HALT = 0
    SET = 1
    LOAD = 2
    STORE = 3
    ADD = 4
    SUBTRACT = 5
    JUMP = 6
    JUMP_IF_NOT_ZERO = 7
    OUTPUT = 8


class Processor(Component):
    """An accumulator of 16 bits with 256 rows of program and of data. One instruction a cycle."""

    value: Any
    valid: Any
    halted: Any

    def __init__(self, program: Sequence[int]) -> None:
        self.program = program
        super().__init__({"value": Out(16), "valid": Out(1), "halted": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        program: Any = Memory(shape=16, depth=256, init=self.program)
        data: Any = Memory(shape=16, depth=256, init=[])
        m.submodules.program, m.submodules.data = program, data
        fetch, read = program.read_port(domain="comb"), data.read_port(domain="comb")
        write = data.write_port()
        counter, accumulator = Signal(8), Signal(16)
        operation, operand = fetch.data[12:], fetch.data[:12]
        m.d.comb += [
            fetch.addr.eq(counter),
            read.addr.eq(operand),
            write.addr.eq(operand),
            write.data.eq(accumulator),
            write.en.eq(operation == Operation.STORE),
            self.value.eq(accumulator),
            self.valid.eq(operation == Operation.OUTPUT),
            self.halted.eq(operation == Operation.HALT),
        ]
        m.d.sync += counter.eq(Mux(self.halted, counter, counter + 1))
        with m.Switch(operation):
            with m.Case(Operation.SET):
                m.d.sync += accumulator.eq(operand)
            with m.Case(Operation.LOAD):
                m.d.sync += accumulator.eq(read.data)
            with m.Case(Operation.ADD):
                m.d.sync += accumulator.eq(accumulator + read.data)
            with m.Case(Operation.SUBTRACT):
                m.d.sync += accumulator.eq(accumulator - read.data)
            with m.Case(Operation.JUMP):
                m.d.sync += counter.eq(operand)
            with m.Case(Operation.JUMP_IF_NOT_ZERO):
                with m.If(accumulator != 0):
                    m.d.sync += counter.eq(operand)
        return m


FIRMWARES = {
    "Fibonacci": "SET 1,STORE 1,STORE 3,SET 12,STORE 2,LOAD 1,OUTPUT,ADD 0,STORE 4,LOAD 1,STORE 0,"
    "LOAD 4,STORE 1,LOAD 2,SUBTRACT 3,STORE 2,JUMP_IF_NOT_ZERO 5,HALT",
    "squares": "SET 1,STORE 1,SET 2,STORE 2,SET 400,STORE 3,LOAD 0,ADD 1,STORE 0,OUTPUT,LOAD 1,"
    "ADD 2,STORE 1,LOAD 0,SUBTRACT 3,JUMP_IF_NOT_ZERO 6,HALT",
}
"""Programs by name."""


def assembled(text: str) -> list[int]:
    """Return the instructions of ``text``, which are separated by commas."""
    words = (f"{line} 0".split() for line in text.split(","))
    return [Operation[name] << 12 | int(operand) for name, operand, *_ in words]


def run(program: Sequence[int]) -> list[int]:
    """Return the values that ``program`` outputs before it halts."""
    processor, values = Processor(program), list[int]()

    async def testbench(ctx: Any) -> None:
        while not ctx.get(processor.halted):
            if ctx.get(processor.valid):
                values.append(ctx.get(processor.value))
            await ctx.tick()

    simulator = cppsim.Simulator(processor)
    simulator.add_clock(1e-6)
    simulator.add_testbench(testbench)
    simulator.run()
    return values


def main() -> None:
    """Print the outputs of each firmware, and the libraries that it adds to the cache."""
    for name, text in FIRMWARES.items():
        before = len(CACHE.entries())
        values = run(assembled(text))
        compiled = len(CACHE.entries()) - before
        print(f"{name}, {compiled} libraries compiled: {' '.join(map(str, values))}")


if __name__ == "__main__":
    main()
