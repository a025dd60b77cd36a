"""Models of the neighbours of the executor of requests, for tests: storage, and a slow sink."""

import random
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Memory:
    """Bytes behind a `ByteAccess`, ready in a cycle with probability ``haste``.

    The model fails if the circuit changes an access before it has completed.
    """

    port: Any
    content: dict[int, int]
    haste: float = 1.0
    seed: int = 0
    reads: list[int] = field(default_factory=list)
    writes: list[tuple[int, int]] = field(default_factory=list)
    """Addresses and data, in order."""

    async def run(self, ctx: Any) -> None:
        rng = random.Random(self.seed)
        port = self.port
        waiting: tuple[int, ...] | None = None
        while True:
            ready = rng.random() < self.haste
            ctx.set(port.ready, ready)
            _, _, enable, *access = await ctx.tick().sample(
                port.enable, port.write, port.address, port.write_data
            )
            assert waiting is None or enable, "an access was taken back"
            if enable:
                write, address, data = access
                now = (write, address, data if write else 0)
                assert waiting in (None, now), "an access changed that had not taken place"
                waiting = None if ready else now
            ctx.set(port.read_data, rng.randrange(256))
            if enable and ready and write:
                self.writes.append((address, data))
                self.content[address] = data
            elif enable and ready:
                self.reads.append(address)
                ctx.set(port.read_data, self.content[address])


@dataclass
class Window:
    """A window of words behind a `ControlPort`, by offset."""

    port: Any
    content: dict[int, int]
    reads: list[int] = field(default_factory=list)
    writes: list[tuple[int, int]] = field(default_factory=list)

    async def run(self, ctx: Any) -> None:
        rng = random.Random(0)
        port = self.port
        while True:
            _, _, read, write, offset, data = await ctx.tick().sample(
                port.read, port.write, port.address, port.write_data
            )
            assert not (read and write)
            assert not ((read or write) and offset % 4)
            ctx.set(port.read_data, rng.getrandbits(32))
            if write:
                self.writes.append((offset, data))
                self.content[offset] = data
            if read:
                self.reads.append(offset)
                ctx.set(port.read_data, self.content[offset])


@dataclass
class AnswerSink:
    """A sink of ``count`` answers. Once asserted, ready stays high until a byte arrives.

    The sink fails if an offered byte is withdrawn or changed.
    """

    port: Any
    count: int
    haste: float = 1.0
    idle: int = 40
    answers: list[bytes] = field(default_factory=list)
    cycles: list[int] = field(default_factory=list)
    """The cycle of each byte's transfer."""

    async def run(self, ctx: Any) -> None:
        rng = random.Random(7)
        port = self.port
        answer = bytearray()
        cycle = 0
        end: int | None = None if self.count else self.idle
        ready = False
        waiting: tuple[int, int] | None = None
        while end is None or cycle < end:
            ready |= rng.random() < self.haste
            ctx.set(port.ready, ready)
            _, _, valid, byte, last = await ctx.tick().sample(
                port.valid, port.payload.byte, port.payload.last
            )
            assert waiting is None or valid, f"a byte of {answer.hex()}... was withdrawn"
            assert waiting in (None, (byte, last)), f"a byte of {answer.hex()}... changed"
            waiting = (byte, last) if valid and not ready else None
            if valid and ready:
                ready = False
                answer.append(byte)
                self.cycles.append(cycle)
                if last:
                    assert len(self.answers) < self.count, f"too many answers: {answer.hex()}"
                    self.answers.append(bytes(answer))
                    answer.clear()
                    end = cycle + self.idle if len(self.answers) == self.count else None
            cycle += 1
        assert not answer, f"an answer without an end: {answer.hex()}"
