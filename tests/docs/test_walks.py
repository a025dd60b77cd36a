"""The walks of the pages: a real call reaches the functions that the steps link, in their order."""

import re
import secrets
import sys
from collections.abc import Callable
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np
import pytest
from amaranth.hdl import Const, Module, Signal

import bitlane
import cppsim
from support.docs.pages import ROOT

Call = tuple[str, str]
"""A file relative to the top of the repository, and the qualified name of a function in it."""


def steps(page: str, heading: str) -> list[list[Call]]:
    """Return the functions that each numbered step below ``heading`` links."""
    text = (ROOT / page).read_text(encoding="utf-8")
    below = re.split(rf"^#+ {heading}\n", text, flags=re.M)[1]
    numbered = re.split(r"^\d+\. ", re.split(r"^##", below, flags=re.M)[0], flags=re.M)[1:]
    return [
        [
            ((ROOT / page).parent.joinpath(file).resolve().relative_to(ROOT).as_posix(), name)
            for name, file in re.findall(r"\[`([\w.]+)`\]\((\S+\.py)\)", step)
        ]
        for step in numbered
    ]


def calls(run: Callable[[], object]) -> list[Call]:
    """Return the project's functions that ``run`` calls, in the order of their first calls."""
    called: dict[int, CodeType] = {}

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            called[id(frame.f_code)] = frame.f_code

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    found: dict[Call, None] = {}
    for code in called.values():
        # The body of a class, which runs when its module is imported, is not optimized.
        if code.co_flags & CO_OPTIMIZED and code.co_filename.startswith(str(ROOT)):
            file = Path(code.co_filename).relative_to(ROOT).as_posix()
            found[file, re.sub(r"\.<locals>\..*|\.__init__$", "", code.co_qualname)] = None
    return list(found)


def test_a_call_of_the_host_takes_the_way_that_the_page_shows() -> None:
    # No other test has this shape, so that no plan of the call is cached.
    a = np.arange(2 * 7 * 3, dtype=np.uint8).reshape(2, 7, 3)
    with bitlane.open("sim:pysim?width=32&memory=4KiB&slots=2&ops=xor&lanes=8") as device:
        called = calls(lambda: device.bit_xor(a[::-1], a[:, :, ::-1]))
    compare(steps("docs/host.md", "The way of one call"), called)


def test_a_design_takes_the_way_through_cppsim_that_the_page_shows() -> None:
    m, count = Module(), Signal(8)
    # No cache has this design.
    step = secrets.randbits(60)
    m.d.sync += count.eq(count + Const(step, 60))

    async def testbench(ctx: Any) -> None:
        await ctx.tick().repeat(10)
        assert ctx.get(count) == 10 * step % 256

    def simulate() -> None:
        simulator = cppsim.Simulator(m, mode="always")
        simulator.add_clock(1e-6)
        simulator.add_testbench(testbench)
        simulator.run()

    compare(steps("cppsim/docs/how_it_works.md", "The way of a design"), calls(simulate))


def compare(walk: list[list[Call]], called: list[Call]) -> None:
    """Each step of ``walk`` begins no earlier in ``called`` than the step before it."""
    assert len(walk) > 5
    assert all(walk)
    assert {call for step in walk for call in step} - set(called) == set()
    begun = [min(called.index(call) for call in step) for step in walk]
    assert begun == sorted(begun), [walk[n][0] for n in range(len(walk))]


def test_a_walk_in_another_order_is_found() -> None:
    walk = [[("a.py", f"f{number}")] for number in range(6)]
    called = [step[0] for step in walk]
    compare(walk, called)
    with pytest.raises(AssertionError):
        compare(walk[::-1], called)
    with pytest.raises(AssertionError):
        compare(walk, called[1:])
