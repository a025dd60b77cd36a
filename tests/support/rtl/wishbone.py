"""A memory on a pipelined Wishbone bus, which fails a test whose manager breaks the bus rules."""

from collections import deque
from typing import Any

from support.rtl.memory import Memory
from support.rtl.streams import NO_STALLS, Driven, Stalls

_RUBBISH = 0xDEADBEEF
"""Data in cycles without an answer, and of an answer with an error."""


class WishboneMemory:
    """Answers each request ``latency`` cycles after it, 1 or more, in order; stalls at random.

    ``requests`` are cycle, direction, address and strobe of each request; ``most`` is the highest
    number of requests in flight.
    """

    def __init__(
        self, bus: Any, memory: Memory, latency: int = 1, stalls: Stalls = NO_STALLS
    ) -> None:
        self._bus = bus
        self._memory = memory
        self._latency = latency
        self._stalls = stalls
        self.requests: list[tuple[int, bool, int, int]] = []
        self.most = 0

    async def run(self, ctx: Any) -> None:
        bus = self._bus
        drive = Driven(ctx, bus.stall, bus.ack, bus.err, bus.dat_r)
        drive(False, False, False, _RUBBISH)
        request = bus.we, bus.adr, bus.sel, bus.dat_w
        tick = ctx.tick().sample(bus.cyc, bus.stb, *request)
        stalled, answered = self._stalls.lengths("stall"), self._stalls.lengths("answer")
        stall, pause = next(stalled), next(answered)
        due: deque[tuple[int, bool, int]] = deque()
        held: tuple[int, ...] | None = None
        cycle = 0
        while True:
            cyc, stb, *offer = (await tick)[-6:]
            assert cyc or not stb, f"cycle {cycle}: STB without CYC"
            assert cyc or not due, f"cycle {cycle}: CYC fell with {len(due)} answers due"
            assert held is None or (stb and held == tuple(offer)), f"cycle {cycle}: STALL ignored"
            held = tuple(offer) if stb and stall else None
            if stb and not stall:
                due.append(self._access(cycle, bool(due), *offer))
            self.most = max(self.most, len(due))
            if stall:
                stall -= 1
            elif stb:
                stall = next(stalled)
            answer = (False, False, _RUBBISH)
            if due and due[0][0] <= cycle and pause:
                pause -= 1
            elif due and due[0][0] <= cycle:
                _, bad, word = due.popleft()
                answer, pause = (not bad, bad, word), next(answered)
            drive(bool(stall), *answer)
            cycle += 1

    def _access(
        self, cycle: int, more: bool, we: int, address: int, strobe: int, word: int
    ) -> tuple[int, bool, int]:
        """Carry out a request; return its answer. ``more``: answers are due for earlier ones."""
        assert address % self._memory.beat_bytes == 0, f"cycle {cycle}: {address:#x}"
        assert not more or self.requests[-1][1] == bool(we), f"cycle {cycle}: WE changed too early"
        self.requests.append((cycle, bool(we), address, strobe))
        if we:
            bad, found = self._memory.write(address, word, strobe), _RUBBISH
        else:
            found, bad = self._memory.read(address)
        return cycle + self._latency - 1, bad, _RUBBISH if bad else found
