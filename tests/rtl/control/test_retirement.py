"""Commands are counted in and out; the first fault stops all until CLEAR."""

from typing import Any

import pytest

from bitlane_rtl.abi import Port, Status
from bitlane_rtl.configurations import small
from bitlane_rtl.control.retirement import Retirement
from support.rtl.streams import compiled, simulate

LEVELS = ("clear", "drained", "failure")
"""Inputs that stay until they are set again; the others are 1 for one cycle."""

OUTPUTS = ("idle", "stop", "flush", "fault", "retired", "completion")
REPORT = {"code": Status.READ_ERROR, "port": Port.READ_B, "address": 0x1230}


def trace(*cycles: dict[str, Any], names: tuple[str, ...] = OUTPUTS) -> dict[str, list[Any]]:
    """Return the outputs ``names`` in each cycle, while the inputs are those of ``cycles``."""
    dut = compiled(Retirement, small())
    found: dict[str, list[Any]] = {name: [] for name in names}

    async def drive(ctx: Any) -> None:
        ctx.set(dut.drained, 1)
        ctx.set(dut.failure, REPORT)
        ctx.set(dut.refusal, Status.BAD_CONTROL)
        for inputs in cycles:
            for name, value in inputs.items():
                ctx.set(getattr(dut, name), value)
            for name in names:
                found[name].append(ctx.get(getattr(dut, name)))
            await ctx.tick()
            for name in inputs:
                if name not in LEVELS:
                    ctx.set(getattr(dut, name), 0)

    simulate(dut, drive)
    return found


def test_a_command_retires_with_one_completion() -> None:
    seen = trace({"start": 1}, {}, {"retire": 1}, {}, {}, {})
    assert seen["idle"] == [1, 0, 0, 0, 1, 1]
    assert seen["retired"] == [0, 0, 0, 1, 1, 1]
    assert seen["completion"] == [0, 0, 0, 1, 0, 0]
    assert not any(seen["stop"] + seen["fault"])


def test_a_command_may_end_in_the_cycle_after_its_start() -> None:
    names = ("idle", "retired", "completion_interrupt")
    seen = trace({"start": 1, "interrupt": 1}, {"retire": 1}, {}, {}, names=names)
    assert seen["idle"] == [1, 0, 0, 1]
    assert seen["retired"] == [0, 0, 1, 1]
    assert seen["completion_interrupt"] == [0, 0, 1, 0]


def test_idle_waits_for_every_command() -> None:
    start, end = {"start": 1}, {"retire": 1}
    seen = trace(start, start, {}, end, {}, {}, {"start": 1, "retire": 1}, {}, end, {}, {}, {})
    assert seen["idle"] == [1] + [0] * 9 + [1, 1]


@pytest.mark.parametrize("interrupt", [0, 1])
def test_a_completion_raises_the_interrupt_of_its_command(interrupt: int) -> None:
    names = ("completion_index", "completion_status", "completion_interrupt")
    first = {"start": 1, "interrupt": interrupt}
    second = {"start": 1, "interrupt": 1 - interrupt}
    seen = trace(first, second, {}, {"retire": 1}, {"retire": 1}, {}, {}, names=names)
    assert seen["completion_interrupt"] == [0, 0, 0, 0, interrupt, 1 - interrupt, 0]
    assert seen["completion_index"][4:6] == [0, 1]
    assert set(seen["completion_status"]) == {Status.OK}


def test_a_failure_stops_in_one_cycle_and_is_latched_in_two() -> None:
    seen = trace({"start": 1}, {}, {"failed": 1}, {}, {"retire": 1}, {}, {})
    assert seen["stop"] == [0, 0, 0, 1, 1, 1, 1]
    assert seen["fault"] == [0, 0, 0, 0, 1, 1, 1]
    assert seen["completion"] == [0, 0, 0, 0, 1, 0, 0]
    assert seen["retired"] == [0] * 7, "nothing retires after a fault"


def test_a_refusal_waits_for_its_doorbell_and_is_latched_in_one_cycle() -> None:
    seen = trace({"rung": 1, "refused": 1}, {"refused": 1}, {}, {})
    assert seen["fault"] == seen["stop"] == [0, 0, 1, 1]


@pytest.mark.parametrize(
    ("cause", "code", "port"),
    [
        ({"failed": 1}, Status.READ_ERROR, Port.READ_B),
        ({"refused": 1}, Status.BAD_CONTROL, Port.NONE),
        ({"rung": 1, "bad_doorbell": 1}, Status.BAD_DOORBELL, Port.NONE),
    ],
)
def test_the_report_names_the_first_cause(cause: dict[str, Any], code: int, port: int) -> None:
    later = {"failed": 1, "failure": {"code": Status.TIMEOUT, "port": Port.WRITE, "address": 0}}
    seen = trace({"start": 1}, {}, cause, {}, later, {}, {}, names=("report", "fault"))
    assert seen["fault"][-1] == 1
    report = seen["report"][-1]
    assert (report["code"], report["port"]) == (code, port)


def test_clear_waits_until_the_bus_is_drained() -> None:
    late = [{"start": 1}, {"clear": 1, "drained": 0}, {}, {}, {"drained": 1}, {}, {"clear": 0}, {}]
    seen = trace(*late)
    assert seen["stop"] == [0, 0, 1, 1, 1, 1, 1, 0]
    assert seen["flush"] == [0, 0, 0, 0, 0, 1, 0, 0]
    assert seen["idle"][-2:] == [1, 1]
