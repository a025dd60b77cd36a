"""Clock any component a million times: COMPONENT [PARAMETER=NUMBER ...].

For example ``amaranth.lib.fifo.SyncFIFO width=8 depth=4``.
"""

import sys
from pydoc import locate
from time import perf_counter
from typing import Any

import cppsim

_CYCLES = 1_000_000


async def testbench(ctx: Any) -> None:
    """Whatever a testbench of Amaranth's does; this one lets time pass."""
    await ctx.tick().repeat(_CYCLES)


if __name__ == "__main__":
    name = "".join(sys.argv[1:2])
    component: Any = locate(name)
    if not name or component is None:
        sys.exit(f"{name!r} is not a component\n{__doc__}")
    try:
        words = (word.partition("=") for word in sys.argv[2:])
        simulator = cppsim.Simulator(component(**{x: int(value) for x, _, value in words}))
        simulator.add_clock(1e-6)
    except (NameError, TypeError, ValueError) as error:
        sys.exit(f"{name}: {error}; expected PARAMETER=NUMBER for each, and a domain 'sync'")
    simulator.add_testbench(testbench)
    started = perf_counter()
    simulator.run()
    rate = _CYCLES / (perf_counter() - started)
    print(f"{name}: {_CYCLES:,} cycles, {rate:,.0f} cycles/s")
