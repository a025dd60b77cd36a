"""The registers of a stream core hold the control inputs, and collect flags and packets."""

from typing import Any

import pytest

from bitlane_rtl.abi import LOGIC_OPS, Lane, Op
from bitlane_rtl.stream_unit.configuration import StreamConfiguration
from bitlane_rtl.stream_unit.registers import (
    STREAM_IDENTITY,
    StreamRegisters,
    stream_registers,
)
from support.rtl.streams import elaborated, simulate

ALL = StreamConfiguration(data_width=32)
LOGIC = StreamConfiguration(ops=LOGIC_OPS)


class Window:
    """The control window of ``circuit``, by names of registers."""

    def __init__(self, ctx: Any, config: StreamConfiguration, circuit: StreamRegisters) -> None:
        self._ctx = ctx
        self._window = circuit.window
        self._known = {entry.name: entry.offset for entry in stream_registers(config)}

    async def read(self, name: str | int) -> int:
        await self._access("read", name)
        return int(self._ctx.get(self._window.read_data))

    async def write(self, name: str | int, word: int) -> None:
        self._ctx.set(self._window.write_data, word)
        await self._access("write", name)

    async def _access(self, kind: str, name: str | int) -> None:
        self._ctx.set(self._window.address, self._known[name] if isinstance(name, str) else name)
        self._ctx.set(getattr(self._window, kind), 1)
        await self._ctx.tick()
        self._ctx.set(getattr(self._window, kind), 0)


@pytest.mark.parametrize(
    ("config", "capabilities"), [(ALL, 0x17_F3FF), (LOGIC, 0x00_00FF)], ids=["all", "logic"]
)
def test_registers_say_what_was_built(config: StreamConfiguration, capabilities: int) -> None:
    circuit = elaborated(StreamRegisters, config)

    async def check(ctx: Any) -> None:
        window = Window(ctx, config, circuit)
        assert await window.read("IDENTITY") == STREAM_IDENTITY
        assert await window.read("CAPABILITIES") == capabilities
        assert await window.read("CONTROL") == 0
        assert await window.read(0x14) == await window.read(0x1008) == 0
        await window.write("IDENTITY", 5)
        assert await window.read("IDENTITY") == STREAM_IDENTITY

    simulate(circuit, check)


def test_control_goes_to_the_inputs_that_were_built() -> None:
    circuit, logic = elaborated(StreamRegisters, ALL), elaborated(StreamRegisters, LOGIC)
    fields = {"op": 13, "lane": 1, "out_lane": 2, "saturate": 1, "arithmetic": 0}
    fields |= {"test": 1, "negate": 0, "reduction": 2}
    word = 13 | 1 << 4 | 2 << 6 | 1 << 8 | 1 << 10 | 2 << 12

    async def check(ctx: Any) -> None:
        window = Window(ctx, ALL, circuit)
        await window.write("CONTROL", word | 1 << 14)
        assert {name: ctx.get(getattr(circuit.control, name)) for name in fields} == fields
        assert await window.read("CONTROL") == word

    async def check_logic(ctx: Any) -> None:
        window = Window(ctx, LOGIC, logic)
        await window.write("CONTROL", word)
        assert ctx.get(logic.control.op) == 13
        assert await window.read("CONTROL") == 13

    simulate(circuit, check)
    simulate(logic, check_logic)


def test_the_operation_after_reset_is_one_that_was_built() -> None:
    config = StreamConfiguration(ops=frozenset({Op.COUNT}), lanes=frozenset({Lane.BITS_32}))
    (entry,) = (x for x in stream_registers(config) if x.name == "CONTROL")
    assert entry.reset == Op.COUNT | Lane.BITS_32 << 4 | Lane.BITS_32 << 6
    circuit = elaborated(StreamRegisters, config)

    async def check(ctx: Any) -> None:
        assert ctx.get(circuit.control.lane) == ctx.get(circuit.control.out_lane) == Lane.BITS_32
        assert await Window(ctx, config, circuit).read("CONTROL") == entry.reset

    simulate(circuit, check)


def test_flags_stay_until_they_are_cleared() -> None:
    circuit = elaborated(StreamRegisters, LOGIC)

    async def check(ctx: Any) -> None:
        window = Window(ctx, LOGIC, circuit)

        async def end(flags: int) -> None:
            ctx.set(circuit.flags.as_value(), flags)
            ctx.set(circuit.ended, 1)
            await ctx.tick()
            ctx.set(circuit.ended, 0)

        ctx.set(circuit.flags.as_value(), 0xF)
        await ctx.tick()
        assert await window.read("FLAGS") == 0
        for flags in (0b0010, 0, 0b1001):
            await end(flags)
        assert await window.read("FLAGS") == 0b1011
        assert await window.read("PACKETS") == 3
        # A flag that is raised as it is cleared stays.
        ctx.set(circuit.flags.as_value(), 0b1000)
        ctx.set(circuit.ended, 1)
        await window.write("FLAGS", 0b1010)
        ctx.set(circuit.ended, 0)
        assert await window.read("FLAGS") == 0b1001
        assert await window.read("PACKETS") == 4

    simulate(circuit, check)
