"""A modelled device at the end of a modelled line, for tests of the time of transfers."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bitlane import Device
from bitlane.driver import Driver
from bitlane.links import BytesLike
from bitlane_rtl.abi import CONTROL_BASE, Mode, Op
from support.host.model_link import Bytes, ModelLink
from support.record import Record


@dataclass(kw_only=True)
class LineLink(ModelLink):
    """A full-duplex line: an exchange takes the longer of its times up and down.

    Every call also takes ``turnaround`` seconds. With ``seed``, the parts of an exchange take
    effect in a random order, as far as the contract of links allows.
    """

    rate: float = 300_000.0
    """Bytes a second in each direction."""
    turnaround: float = 0.0
    seed: int | None = None
    remote: bool = True
    seconds: float = 0.0
    up: int = 0
    down: int = 0
    exchanges: int = 0
    calls: int = 0
    """All of the link's calls, exchanges included."""
    keeps: bool = False
    """Whether to record the arrays of all transfers."""
    arrays: list[Bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._random = np.random.default_rng(self.seed)

    def reset_meter(self) -> None:
        self.seconds = 0.0
        self.up = self.down = self.exchanges = self.calls = 0

    def read(self, address: int, size: int) -> Bytes:
        self._pass(0, size)
        return self._kept(super().read(address, size))

    def write(self, address: int, data: BytesLike) -> None:
        self._pass(np.frombuffer(data, np.uint8).size, 0)
        super().write(address, data)
        self._kept(np.frombuffer(data, np.uint8))

    def wait(self, timeout: float) -> bool:
        self._pass(0, 0)
        return super().wait(timeout)

    def exchange(
        self, writes: Sequence[tuple[int, BytesLike]], reads: Sequence[tuple[int, int]]
    ) -> list[Bytes]:
        up = sum(np.frombuffer(data, np.uint8).size for _, data in writes)
        self._pass(up, sum(size for _, size in reads))
        self.exchanges += 1
        results: list[Any] = [None] * len(reads)
        parts = [(True, number) for number in range(len(writes))]
        parts += [(False, number) for number in range(len(reads))]
        if self.seed is not None:
            # Writes keep their order, and reads follow the last one to the control window.
            first = max((k + 1 for k, x in enumerate(writes) if x[0] >= CONTROL_BASE), default=0)
            late = parts[first:]
            self._random.shuffle(late)
            in_order = iter(sorted(x for x in late if x[0]))
            parts[first:] = [next(in_order) if x[0] else x for x in late]
        for is_write, number in parts:
            if is_write:
                super().write(*writes[number])
                self._kept(np.frombuffer(writes[number][1], np.uint8))
            else:
                results[number] = self._kept(super().read(*reads[number]))
        return results

    def _kept(self, data: Bytes) -> Bytes:
        if self.keeps:
            self.arrays.append(data)
        return data

    def _pass(self, up: int, down: int) -> None:
        self.calls += 1
        self.up += up
        self.down += down
        self.seconds += max(up, down) / self.rate + self.turnaround


class LeanLink(LineLink):
    """A link that records nothing and allocates no memory, to measure the driver alone."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.traffic = deque(maxlen=0)  # type: ignore[assignment]
        self.log = deque(maxlen=0)  # type: ignore[assignment]
        self.doorbells = deque(maxlen=0)  # type: ignore[assignment]

    def execute(self, record: Record) -> None:
        assert record.loops == 1, "expected one run"
        a, b, y = (self._run(record, name) for name in "ABY")
        if record.op == Op.NOT:
            np.invert(a, out=y)
        else:
            np.bitwise_xor(a, b, out=y)

    def _run(self, record: Record, name: str) -> Bytes:
        base = record.word(f"{name}_BASE")
        strided = record.control[f"{name}_MODE"] == Mode.STRIDED
        step = record.signed(f"{name}_STRIDE") if strided else 1
        return self.memory[base : base + record.run * step : step]


def line(**changes: Any) -> tuple[Device, LineLink]:
    link = LineLink(**{"memory_bytes": 8 << 10} | changes)
    device = Device(Driver(link))
    link.reset_meter()
    return device, link
