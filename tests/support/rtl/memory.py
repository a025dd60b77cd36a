"""Memories behind native ports and on Wishbone, for tests of readers, writer, data path and engine.

A memory answers as the contract of its ports requires, and asserts that accesses stay inside it.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from support.rtl.streams import NO_STALLS, Driven, Stalls


@dataclass
class Memory:
    """A memory of bytes, and its accesses in order: ``(port, address, strobe)``."""

    data: npt.NDArray[np.uint8]
    beat_bytes: int
    bad: Callable[[int], bool] = lambda address: False
    """Function of an address: whether its beat is answered with an error."""

    def read(self, address: int) -> tuple[int, bool]:
        assert 0 <= address <= len(self.data) - self.beat_bytes, f"read at {address:#x}"
        beat = self.data[address : address + self.beat_bytes].tobytes()
        return int.from_bytes(beat, "little"), self.bad(address)

    def write(self, address: int, value: int, strobe: int) -> bool:
        assert 0 <= address <= len(self.data) - self.beat_bytes, f"write at {address:#x}"
        bad = self.bad(address)
        for byte in range(self.beat_bytes):
            if strobe >> byte & 1 and not bad:
                self.data[address + byte] = value >> (8 * byte) & 0xFF
        return bad


class _Server:
    """A server of a port.

    ``idles``: wait for the next burst while there is nothing to do. Such a server counts no cycle
    and no stall while it waits, and must not `hang`.
    """

    def __init__(
        self, port: Any, memory: Any, latency: int, stalls: Stalls, *, idles: bool = False
    ) -> None:
        self._port = port
        self._memory = memory
        self.latency = latency
        self._stalls = stalls
        self._idles = idles
        self.beats: list[int] = []
        """Cycle of every transferred beat."""
        self.requests: list[tuple[int, int, int]] = []
        """Cycle, address and beats of every burst."""
        self.hang = False
        """While it is set, the port accepts no request and sends no answer."""

    def _stall(self, salt: str) -> Callable[[], bool]:
        lengths = self._stalls.lengths(salt)
        left = next(lengths)

        def stalled() -> bool:
            nonlocal left
            if left:
                left -= 1
                return True
            left = next(lengths)
            return False

        return stalled

    def _request(self, cycle: int, address: int, length: int) -> None:
        beat = self._memory.beat_bytes
        assert address % beat == 0, f"burst at {address:#x} is not aligned to the beat"
        first, last = address // beat, address // beat + length
        assert first // 16 == last // 16, f"burst at {address:#x} crosses a block of 16 beats"
        self.requests.append((cycle, address, length + 1))


_RUBBISH = (0xDEADBEEF, True, True)
"""Data, error and last of a read port while it is not valid."""


class ReadServer(_Server):
    """A server of a read port: a burst begins ``1 + latency`` cycles after its request."""

    def __init__(
        self,
        port: Any,
        memory: Any,
        latency: int = 0,
        stalls: Stalls = NO_STALLS,
        salt: str = "r",
        *,
        idles: bool = False,
    ) -> None:
        super().__init__(port, memory, latency, stalls, idles=idles)
        self._salt = salt
        self.cycle = 0

    async def run(self, ctx: Any) -> None:
        request, data = self._port.request, self._port.data
        stall_request, stall_data = self._stall(self._salt + "q"), self._stall(self._salt + "d")
        due: deque[tuple[int, int, bool]] = deque()
        drive = Driven(ctx, request.ready, data.valid, data.p.data, data.p.error, data.p.last)
        drive(True, False, *_RUBBISH)
        offer = _RUBBISH
        valid = False
        offered: tuple[int, int] | None = None
        burst = request.valid, request.ready, request.p.address, request.p.length
        tick = ctx.tick().sample(*burst, data.ready)
        while True:
            idle = self._idles and not (due or valid or offered)
            sampled = await (tick.until(request.valid) if idle else tick)
            asked, ready, address, length, took = sampled[-5:]
            assert offered is None or (asked and offered == (address, length)), (
                f"cycle {self.cycle}: the request was withdrawn or changed before it was accepted"
            )
            offered = (address, length) if asked and not ready else None
            if asked and ready:
                self._request(self.cycle, address, length)
                for beat in range(length + 1):
                    at = address + beat * self._memory.beat_bytes
                    due.append((self.cycle + self.latency, at, beat == length))
            if valid and took:
                self.beats.append(self.cycle)
                due.popleft()
                valid = False
            if not valid and due and due[0][0] <= self.cycle and not self.hang and not stall_data():
                offer = *self._memory.read(due[0][1]), due[0][2]
                valid = True
            drive(not stall_request() and not self.hang, valid, *(offer if valid else _RUBBISH))
            self.cycle += 1


class WriteServer(_Server):
    """A server of a write port: it responds ``1 + latency`` cycles after the last beat."""

    async def run(self, ctx: Any) -> None:
        request, data, response = self._port.request, self._port.data, self._port.response
        stall_request, stall_data = self._stall("wq"), self._stall("wd")
        stall_response = self._stall("wr")
        bursts: deque[tuple[int, int]] = deque()
        beats: deque[tuple[int, int, bool]] = deque()
        due: deque[tuple[int, bool]] = deque()
        position, bad = 0, False
        self.responses: list[int] = []
        cycle = 0
        valid = False
        drive = Driven(ctx, request.ready, data.ready, response.valid, response.payload)
        drive(True, True, False, False)
        burst = request.valid, request.ready, request.p.address, request.p.length
        beat = data.valid, data.ready, data.p.data, data.p.strobe, data.p.last
        tick = ctx.tick().sample(*burst, *beat, response.ready)
        begun = request.valid | data.valid
        answered = False
        while True:
            idle = self._idles and not (bursts or beats or due or valid)
            *sampled, took = (await (tick.until(begun) if idle else tick))[-10:]
            asked, ready, address, length, sent, taking, value, strobe, last = sampled
            if asked and ready:
                self._request(cycle, address, length)
                bursts.append((address, length))
            if sent and taking:
                self.beats.append(cycle)
                beats.append((value, strobe, bool(last)))
            while bursts and beats:
                address, length = bursts[0]
                value, strobe, final = beats.popleft()
                assert final == (position == length), f"last is wrong in cycle {cycle}"
                at = address + position * self._memory.beat_bytes
                bad |= self._memory.write(at, value, strobe)
                position += 1
                if final:
                    due.append((cycle + self.latency, bad))
                    bursts.popleft()
                    position, bad = 0, False
            if valid and took:
                self.responses.append(cycle)
                due.popleft()
                valid = False
            if not valid and due and due[0][0] <= cycle and not self.hang and not stall_response():
                answered = due[0][1]
                valid = True
            accepting = not stall_request() and not self.hang
            drive(accepting, not stall_data() and not self.hang, valid, answered)
            cycle += 1


_UNDEFINED = 0xDEADBEEF
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
        drive(False, False, False, _UNDEFINED)
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
            answer = (False, False, _UNDEFINED)
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
            bad, found = self._memory.write(address, word, strobe), _UNDEFINED
        else:
            found, bad = self._memory.read(address)
        return cycle + self._latency - 1, bad, _UNDEFINED if bad else found
