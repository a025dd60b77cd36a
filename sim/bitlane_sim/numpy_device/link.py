"""The link to the device of this package: ``numpy``, ``numpy?width=128&memory=64MiB``."""

from time import sleep

import numpy as np
from numpy.typing import NDArray

from bitlane.errors import LinkError
from bitlane.links.link import BytesLike, Link
from bitlane.links.url import DeviceUrl, Options
from bitlane_rtl.abi import CONTROL_BASE, CONTROL_SIZE, WORD_BYTES
from bitlane_rtl.configuration import Configuration

from ..circuit_options import CIRCUIT, as_option_error, configuration, whole
from .control import ControlWindow
from .counters import PredictedCounters
from .cycles import Memory
from .interpreter import Interpreter
from .walk import LARGEST_MEMORY

_LEAST_FORGOTTEN = 1 << 26
"""Bytes that are worth giving back: pages that come anew cost more than NumPy needs for theirs."""


_MEMORY: Options = {
    "latency": (whole, "cycles that the memory takes more than the least possible (default 0)"),
}


class NumpyLink(Link):
    """A link to a model of the contract in this process. No circuit is simulated.

    Commands run when the doorbell is written, so that no call but that one takes long. The counters
    are predicted for a circuit of ``configuration`` at a ``memory``, by default an ideal one.
    """

    predicted = True

    def __init__(self, configuration: Configuration, memory: Memory | None = None) -> None:
        self._interpreter = Interpreter(configuration)
        counters = PredictedCounters(configuration, memory or Memory())
        self._control = ControlWindow(self._interpreter, counters)
        self.description = f"numpy model, {configuration.data_width} bits, no circuit"

    @property
    def host_memory(self) -> NDArray[np.uint8]:
        """The memory itself. ``Link`` says more."""
        return self._interpreter.memory

    def read(self, address: int, size: int) -> NDArray[np.uint8]:
        self._expect_open()
        if address < CONTROL_BASE:
            return self._memory(address, size).copy()
        offsets = self._offsets(address, size)
        words = [self._control.read(offset) for offset in offsets]
        return np.array(words, "<u4").view(np.uint8)

    def write(self, address: int, data: BytesLike) -> None:
        self._expect_open()
        content = np.frombuffer(data, np.uint8)
        if address < CONTROL_BASE:
            self._memory(address, content.size)[:] = content
            return
        self._control.write(self._offsets(address, content.size).start, content.tobytes())

    def forget(self, address: int, size: int) -> None:
        if size >= _LEAST_FORGOTTEN and not self.closed:
            self._interpreter.forget(address - self._interpreter.configuration.memory_base, size)

    def wait(self, timeout: float) -> bool:
        self._expect_open()
        if not self._control.interrupt:
            sleep(timeout)  # nothing changes the line meanwhile
        return self._control.interrupt

    def close(self) -> None:
        self.closed = True

    def _expect_open(self) -> None:
        if self.closed:
            raise LinkError(f"{self.description}: the link is closed")

    def _offsets(self, address: int, size: int) -> range:
        offset = address - CONTROL_BASE
        if offset % WORD_BYTES or size % WORD_BYTES or offset + size > CONTROL_SIZE:
            raise LinkError(
                f"{self.description}: {size} bytes at {address:#x} are not whole words of the"
                " control window"
            )
        return range(offset, offset + size, WORD_BYTES)

    def _memory(self, address: int, size: int) -> NDArray[np.uint8]:
        circuit = self._interpreter.configuration
        start = address - circuit.memory_base
        if start < 0 or start + size > circuit.memory_bytes:
            raise LinkError(
                f"{self.description}: {size} bytes at {address:#x} are outside the memory,"
                f" {circuit.memory_base:#x} to {circuit.memory_last:#x}"
            )
        return self._interpreter.memory[start : start + size]


def open_link(url: str) -> NumpyLink:
    """Open ``numpy[?OPTION=VALUE[&OPTION=VALUE...]]``.

    The options are those of a circuit: ``width``, ``ports``, ``memory``, ``loops``, ``slots``,
    ``ops``, ``modes``, ``lanes`` and ``search``; ``latency`` is that of the memory whose cycles are
    predicted.

    Raises ``LinkError`` for an unknown option or a bad value, and for more than 2 GiB of memory.
    """
    parsed = DeviceUrl.parse(url)
    if parsed.target:
        raise LinkError(
            f"device {url!r}: {parsed.target!r} after numpy; expected numpy?OPTION=VALUE"
        )
    values = parsed.options({**CIRCUIT, **_MEMORY})
    with as_option_error(url):
        memory = Memory(latency=values.get("latency", 0))
        circuit = configuration(values)
        if circuit.memory_last >= LARGEST_MEMORY:
            raise ValueError(f"memory_bytes: {circuit.memory_bytes}; expected up to 2GiB")
        return NumpyLink(circuit, memory)
