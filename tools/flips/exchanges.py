"""Random exchanges with a board: valid and invalid commands, accesses and damaged frames.

An exchange depends only on its seed, except for sequence numbers and ring slots, which count on
from one exchange to the next. The answers are ignored.
"""

import random
from collections.abc import Sequence

import numpy as np

from bitlane_rtl.abi import (
    COMPLETION_OFFSET,
    CONTROL_BASE,
    CONTROL_SIZE,
    FRAME_DATA_BYTES,
    RECORD,
    RECORD_BYTES,
    REPETITIONS,
    RING_OFFSET,
    Op,
    Request,
    register,
    seal,
)
from bitlane_rtl.configuration import Configuration
from support.commands import RandomCommands, logic
from support.rtl.records import Task, pack
from support.serial.frames import DELIMITER, frame, head, request, uart_levels

_KINDS = {"commands": 60, "refused": 15, "accesses": 15, "damage": 8, "broken": 2}
"""Kinds of exchanges, each with its share in percent."""

_FOLDED = 128
"""Bytes of the digest into which memory is folded."""

_AHEAD = REPETITIONS - 1, REPETITIONS, REPETITIONS + 1
"""Steps of the sequence number around the last one that makes a repetition."""

_SHORT = 12
"""Maximum of a tensor's elements in `ExchangeWriter.operators`."""


class RequestWriter:
    """Numbers requests by ``sequence``, and draws the sequence number of HELLO from ``chance``."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self.sequence = 0

    def hello(self) -> bytes:
        self.sequence = self._chance.randrange(256)
        return DELIMITER + self._request(Request.HELLO, self._chance.getrandbits(32), 0)

    def register(self, name: str, value: int) -> bytes:
        """Write a register of 32 bits."""
        return self.write(CONTROL_BASE + register(name).offset, value.to_bytes(4, "little"))

    def read(self, address: int, size: int) -> bytes:
        """Read ``size`` bytes."""
        return self._request(Request.READ, address, size)

    def write(self, address: int, data: bytes) -> bytes:
        return self._request(Request.WRITE, address, len(data), data)

    def _request(self, kind: Request, address: int, size: int, data: bytes = b"") -> bytes:
        self.sequence += 1
        return frame(request(self.sequence - 1, kind, address, size, data))


class ExchangeWriter:
    """Writes exchanges for a board of ``configuration``, as lists of bursts.

    A burst is a list of levels, one for each bit. The line is idle between two bursts until the
    board is quiet.
    """

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        self._random = random.Random(0)
        self._requests = RequestWriter(self._random)
        self._tasks = RandomCommands(
            configuration=configuration,
            size=configuration.memory_bytes,
            a=configuration.memory_base,
            b=configuration.memory_base,
            runs=(1, 2, 5, 9, 16, 33, 60),
            counts=(1, 2, 3, 7),
            long=0.1,
            sums=0.3,
            fences=0.2,
            interrupts=0.3,
            disjoint=False,
        )
        self._doorbell = 0

    def greeting(self) -> list[list[int]]:
        """Return HELLO and a read of every register, as a host begins."""
        self._random.seed("greeting")
        return [levels(self._requests.hello()), levels(self._requests.read(CONTROL_BASE, 0x5C))]

    def operators(self) -> list[list[int]]:
        """Return every operator of the circuit on short tensors, and a read of all results."""
        choose, configuration = self._random, self._configuration
        choose.seed("operators")
        ops = sorted(configuration.ops - {Op.SEARCH})
        room = 2 * _SHORT
        line = self._requests.write(self._base, choose.randbytes(room))
        for first in range(0, len(ops), configuration.slots // 2):
            records = []
            for number in range(first, min(first + configuration.slots // 2, len(ops))):
                op, run = ops[number], choose.randint(_SHORT // 2, _SHORT)
                y = self._base + room + number * _SHORT
                a, b = (self._base + choose.randrange(room - run) for _ in range(2))
                interrupt = choose.random() < 0.3
                second = b if op.reads_b else None
                records.append(pack(logic(op, a, second, y, run, interrupt=interrupt)))
            line += self._submit(records)
        return [levels(line + self._requests.read(self._base + room, len(ops) * _SHORT))]

    def folding(self) -> list[list[int]]:
        """Return commands that fold all of memory by XOR into a digest, and a read of it."""
        size = self._configuration.memory_bytes
        halves = []
        while size > _FOLDED:
            size //= 2
            low, high = self._base, self._base + size
            halves.append(pack(logic(Op.XOR, low, high, low, size, fence=True)))
        # The long ones are done before the short ones have come.
        bursts = [
            self._submit(halves[:2]),
            self._submit(halves[2:]),
            self._requests.read(self._base, size),
        ]
        return [levels(burst) for burst in bursts]

    def recovery(self) -> list[list[int]]:
        """Return accesses that restart a board after a fault."""
        return [levels(self._restore())]

    def exchange(self, seed: int) -> list[list[int]]:
        """Return the exchange of ``seed``."""
        self._random.seed(f"exchange {seed}")
        (kind,) = self._random.choices(list(_KINDS), list(_KINDS.values()))
        match kind:
            case "commands":
                return [levels(self._valid())]
            case "refused":
                return [levels(self._refused()), levels(self._clear())]
            case "accesses":
                count = self._random.randint(1, 4)
                line = b"".join(self._access() for _ in range(count))
                return [levels(line + self._restore())]
            case "damage":
                return [levels(self._damage()), levels(self._requests.hello() + self._restore())]
            case _:
                return [self._broken(), levels(self._requests.hello() + self._restore())]

    # --- kinds of exchanges -----------------------------------------------------------------------

    def _valid(self) -> bytes:
        """Return operands, one to three commands, and reads of their results."""
        choose = self._random
        tasks = [self._task() for _ in range(choose.choice([1, 1, 1, 2, 3]))]
        records = [pack(task) for task in tasks]
        line = b""
        for walk in [x for task in tasks for x in (task.a, task.b) if x]:
            if choose.random() < 0.4:
                size = choose.choice([4, 4, 8, 12, 20])
                line += self._requests.write(min(walk.base, self._end - size), self._content(size))
        impatient = choose.random() < 0.05
        if impatient:
            line += self._requests.register("TIMEOUT", choose.choice([1, 2, 3, 8]))
        if choose.random() < 0.1:
            line += self._requests.register("INTERRUPT", choose.randrange(4))
        line += self._submit(records)
        for words in records:
            size = choose.choice([4, 8, 8, 16])
            first, last = (words[RECORD[name].word] for name in ("Y_BASE", "Y_LAST"))
            span = max(1, min(last - first, 200))
            at = min(first + choose.randrange(span) // 4 * 4, self._end - size)
            line += self._requests.read(max(at, self._base), size)
        if impatient or choose.random() < 0.2:
            line += self._requests.read(CONTROL_BASE + register("STATUS").offset, 20)
        return line + (self._restore() if impatient or choose.random() < 0.1 else b"")

    def _refused(self) -> bytes:
        """Return a valid and an invalid command, and reads of their status and completions."""
        choose = self._random
        words = pack(self._task())
        if choose.random() < 0.9:
            word = choose.choice([0, 0, 0, 1, choose.randrange(len(words))])
            bits = choose.choice([1 << choose.randrange(24), choose.getrandbits(24), 1 << 23])
            words[word] ^= bits if word == 0 or choose.random() < 0.5 else bits << 8
            words[0] = seal(words)
        else:
            words[0] ^= 1 << choose.randrange(24, 32)
        good = [pack(self._task())] if choose.random() < 0.3 else []
        line = self._requests.register("INTERRUPT", 3) if choose.random() < 0.3 else b""
        line += self._submit([*good, words])
        line += self._requests.read(CONTROL_BASE + register("STATUS").offset, 20)
        return line + self._requests.read(
            CONTROL_BASE + COMPLETION_OFFSET, 4 * self._configuration.slots
        )

    def _damage(self) -> bytes:
        """Return a frame that is damaged, out of order or of an unknown kind, or noise."""
        choose = self._random
        line = bytearray(self._access())
        match choose.randrange(5):
            case 0:
                line[choose.randrange(len(line))] ^= 1 << choose.randrange(8)
            case 1:
                del line[choose.randrange(len(line))]
            case 2:
                self._requests.sequence += choose.choice([-1, -100, 1, 5, *_AHEAD])
                line += self._access()
            case 3:
                kind = choose.choice([3, choose.randrange(256)])
                body = choose.choice([b"", bytes(4), choose.randbytes(20)])
                line = bytearray(frame(head(self._requests.sequence, kind, 0) + body))
            case _:
                line = bytearray(choose.randbytes(choose.randint(1, 20)) + DELIMITER)
        return bytes(line) + self._access()

    def _broken(self) -> list[int]:
        """Return an access with a missing stop bit, or with a break of the line."""
        choose = self._random
        line = levels(self._access())
        at = choose.randrange(1, len(line))
        return line[:at] + [0] * choose.choice([1, 9, 10, 25]) + line[at:]

    # --- parts of exchanges -----------------------------------------------------------------------

    @property
    def _base(self) -> int:
        return self._configuration.memory_base

    @property
    def _end(self) -> int:
        return self._base + self._configuration.memory_bytes

    def _task(self) -> Task:
        return self._tasks.draw(self._random, self._base)

    def _access(self) -> bytes:
        """Return a read or a write, mostly of existing addresses."""
        choose = self._random
        if choose.random() < 0.5:
            size = choose.choice([4, 4, 8, 20, 0, 1, 6])
            offset = choose.choice([4 * choose.randrange(24), choose.randrange(CONTROL_SIZE), 4096])
            # Only `_submit` writes DOORBELL: a record that was never written could run for long.
            if choose.random() < 0.4 and not 0 <= register("DOORBELL").offset - offset < size:
                return self._requests.write(CONTROL_BASE + offset, self._content(size))
            return self._requests.read(CONTROL_BASE + offset, size)
        size = choose.choice([0, 1, 3, 4, 17, 40, choose.choice([4, FRAME_DATA_BYTES + 2])])
        inside = self._base + choose.randrange(self._configuration.memory_bytes - size)
        beside = self._end - size + choose.randrange(3)
        at = choose.choice([inside, inside, beside, choose.getrandbits(32)])
        if size > FRAME_DATA_BYTES or choose.random() < 0.5:
            return self._requests.read(at, size)
        return self._requests.write(at, self._content(size))

    def _submit(self, records: Sequence[Sequence[int]]) -> bytes:
        line = b""
        for words in records:
            slot = self._doorbell % self._configuration.slots
            data = np.array(words, "<u4").tobytes()
            line += self._requests.write(CONTROL_BASE + RING_OFFSET + slot * RECORD_BYTES, data)
            self._doorbell += 1
        return line + self._requests.register("DOORBELL", self._doorbell % (1 << 16))

    def _restore(self) -> bytes:
        """Return accesses that restore TIMEOUT and clear the engine."""
        return self._requests.register("TIMEOUT", 1 << 20) + self._clear()

    def _clear(self) -> bytes:
        self._doorbell = 0
        return self._requests.register("CLEAR", 1)

    def _content(self, size: int) -> bytes:
        ones = self._random.choice([0, 255])
        return self._random.choice([self._random.randbytes(size)] * 3 + [bytes([ones]) * size])


def levels(line: bytes) -> list[int]:
    """Return the levels of a UART that sends ``line``, one for each bit."""
    return [int(level) for level in uart_levels(line, 1)]
