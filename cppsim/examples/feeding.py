"""Feed a batch in every cycle: the CRC-32 of a byte a cycle, other bytes for each instance.

It prints million instance-cycles a second, the best of three rounds, and compares each result with
``zlib.crc32``.
"""

import argparse
import time
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
from amaranth.hdl import Cat, Const, Module, Signal
from amaranth.lib.wiring import Component, In, Out

from cppsim import Batch, Program
from cppsim.errors import SimulationError
from cppsim.model import counted

ROUNDS = 3
"""Measurements of each figure; the best one counts."""


class Crc32(Component):
    """CRC-32 as in Ethernet, least significant bit first. Latency: 1 cycle a byte."""

    data: Any
    crc: Any

    def __init__(self) -> None:
        super().__init__({"data": In(8), "crc": Out(32)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        state = Signal(32, init=0xFFFF_FFFF)
        bits = list(state ^ self.data)[:32]
        for _ in range(8):
            low, *bits = [*bits, Const(0, 1)]
            bits = [bit ^ low if 0xEDB8_8320 >> k & 1 else bit for k, bit in enumerate(bits)]
        m.d.sync += state.eq(Cat(bits))
        m.d.comb += self.crc.eq(~state)
        return m


def fed(data: Any) -> Program:
    """Set the column of each cycle, of ``data`` as (instances, cycles); then read the CRC."""
    program = Program()
    with program.repeat(data.shape[1]):
        program.set("data", data).step()
    return program.get("crc")


def fed_rate(batch: Batch, cycles: int, run: Callable[[], dict[str, Any]], crcs: Any) -> float:
    """Return instance-cycles a second of ``run``, whose results are to be ``crcs``."""
    best = float("inf")
    for _ in range(ROUNDS):
        batch.reset()
        started = time.perf_counter()
        found = run()["crc"]
        best = min(best, time.perf_counter() - started)
        if not np.array_equal(found, crcs):
            raise SystemExit("a CRC differs from zlib.crc32")
    return batch.instances * cycles / best


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--backend", default="auto", help="threads, threads:N, cuda (default: auto)"
    )
    parser.add_argument("--instances", type=int, default=1 << 13, metavar="N")
    parser.add_argument("--cycles", type=int, default=1 << 8, metavar="N")
    options = parser.parse_args()
    try:
        cycles = counted(options.cycles, "cycles", 1)
        batch = Batch(Crc32(), options.instances, options.backend)
    except SimulationError as error:
        parser.exit(2, f"{parser.prog}: {error}\n")
    data = np.random.default_rng(1).integers(0, 256, (batch.instances, cycles), np.uint8)
    crcs = np.array([zlib.crc32(row) for row in data], np.uint64)
    program = fed(data)
    encoded = program.encoded(batch.description.ports, batch.instances)
    zeros = np.full(options.instances, zlib.crc32(bytes(cycles)), np.uint64)
    alone = Program().step(cycles).get("crc")
    print(f"{options.instances:,} instances, {cycles:,} cycles, {batch.backend}")
    for name, run, expected in (
        ("fed", lambda: batch.run(program), crcs),
        ("fed by an encoded program", lambda: batch.run_encoded(encoded), crcs),
        ("not fed", lambda: batch.run(alone), zeros),
    ):
        print(
            f"{name:28}{fed_rate(batch, cycles, run, expected) / 1e6:12,.0f} M/s",
            flush=True,
        )


if __name__ == "__main__":
    main()
