"""Clock any component a million times: COMPONENT [PARAMETER=NUMBER ...].

For example ``amaranth.lib.fifo.SyncFIFO width=8 depth=4``.
"""

import sys
from pydoc import locate
from typing import Any

import cppsim


async def testbench(ctx: Any) -> None:
    """Whatever a testbench of Amaranth's does; this one lets time pass."""
    await ctx.tick().repeat(1_000_000)


if __name__ == "__main__":
    arguments = {name: int(value) for name, _, value in (x.partition("=") for x in sys.argv[2:])}
    name = "".join(sys.argv[1:2])
    component: Any = locate(name)
    if not name or component is None:
        sys.exit(f"{name!r} is not a component\n{__doc__}")
    simulator = cppsim.Simulator(component(**arguments))
    simulator.add_clock(1e-6)
    simulator.add_testbench(testbench)
    simulator.run()
