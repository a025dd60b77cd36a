"""The link to the device of this package: ``numpy``, ``numpy?width=128``, ``numpy?board=ulx3s``."""

from collections.abc import Sequence
from time import sleep

import numpy as np
from numpy.typing import NDArray

from bitlane.errors import LinkError
from bitlane.links import BytesLike, DeviceUrl, Link, Options, Predicted, Recording
from bitlane_rtl.abi import CONTROL_BASE, CONTROL_SIZE, WORD_BYTES
from bitlane_rtl.configuration import Configuration

from ..circuit_options import CIRCUIT, as_option_error, configuration, whole
from .board import PredictedBoard, board_named
from .control import ControlWindow
from .counters import PredictedCounters
from .interpreter import Interpreter
from .memories import Memory
from .recorder import PredictedCommands
from .walk import LARGEST_MEMORY

_WORD = np.dtype("<u4")

_LEAST_FORGOTTEN = 1 << 26
"""Bytes that are worth giving back: pages that come anew cost more than NumPy needs for theirs."""


_MANY = 1 << 20
"""Bytes of which each takes its share of the line alone."""


class NumpyLink(Link):
    """A link to a model of the contract in this process. No circuit is simulated.

    Commands run when the doorbell is written, so that no call but that one takes long. The counters
    are predicted for a circuit of ``configuration`` at a ``memory``, by default an ideal one, and
    seconds for a ``board``.
    """

    predicted = True

    def __init__(
        self,
        configuration: Configuration,
        memory: Memory | None = None,
        board: PredictedBoard | None = None,
        *,
        records: int = 0,
    ) -> None:
        self._board = board
        self._line_seconds = 0.0
        if board:
            self.byte_seconds = board.line.read(_MANY) / _MANY
        self._interpreter = Interpreter(configuration)
        self._recorder = PredictedCommands(records) if records else None
        self._counters = PredictedCounters(configuration, memory or Memory(), self._recorder)
        self._control = ControlWindow(self._interpreter, self._counters)
        model = f"numpy model of {board.name}" if board else "numpy model"
        self.description = f"{model}, {configuration.data_width} bits, no circuit"

    @property
    def memory_view(self) -> NDArray[np.uint8]:
        """The memory itself. ``Link`` says more."""
        return self._interpreter.memory

    @property
    def prediction(self) -> Predicted | None:
        if (board := self._board) is None:
            return None
        cycles = self._counters.busy_cycles
        return Predicted(board.name, board.clock_hz, board.line.name, cycles, self._line_seconds)

    def predict(self, records: Sequence[bytes]) -> list[int] | None:
        return self._counters.retirements(tuple(records))

    @property
    def recording(self) -> Recording | None:
        """When commands would start and retire, if option ``record`` enables it."""
        if (recorder := self._recorder) is None:
            return None
        self._counters.ended()
        return recorder.recording

    def read(self, address: int, size: int) -> NDArray[np.uint8]:
        self._expect_open()
        if self._board:
            self._line_seconds += self._board.line.read(size)
        if address < CONTROL_BASE:
            return self._memory(address, size).copy()
        words = self._control.words(self._offset(address, size), size // WORD_BYTES)
        return np.array(words, _WORD).view(np.uint8)

    def write(self, address: int, data: BytesLike) -> None:
        self._expect_open()
        if address < CONTROL_BASE:
            content = np.frombuffer(data, np.uint8)
            size = content.size
            self._memory(address, size)[:] = content
        else:
            words = bytes(data)
            size = len(words)
            self._control.write(self._offset(address, size), words)
        if self._board:
            self._line_seconds += self._board.line.write(size)

    def exchange(
        self, writes: Sequence[tuple[int, BytesLike]], reads: Sequence[tuple[int, int]]
    ) -> list[NDArray[np.uint8]]:
        before = self._line_seconds
        answers = super().exchange(writes, reads)
        if self._board:
            # Both directions at once.
            line = self._board.line
            down = sum(line.read(size) for _, size in reads)
            up = self._line_seconds - before - down
            self._line_seconds = before + max(up, down)
        return answers

    def forget(self, address: int, size: int) -> None:
        if size >= _LEAST_FORGOTTEN and not self.closed:
            self._interpreter.forget(address - self._interpreter.configuration.memory_base, size)

    def wait(self, timeout: float) -> bool:
        self._expect_open()
        if self._board:
            self._line_seconds += self._board.line.read(0)
        if not self._control.interrupt:
            sleep(timeout)  # nothing changes the line meanwhile
        return self._control.interrupt

    def close(self) -> None:
        self.closed = True

    def _expect_open(self) -> None:
        if self.closed:
            raise LinkError(f"{self.description}: the link is closed")

    def _offset(self, address: int, size: int) -> int:
        """Return the offset of whole words in the control window."""
        offset = address - CONTROL_BASE
        if offset % WORD_BYTES or size % WORD_BYTES or offset + size > CONTROL_SIZE:
            raise LinkError(
                f"{self.description}: {size} bytes at {address:#x} are not whole words of the"
                " control window"
            )
        return offset

    def _memory(self, address: int, size: int) -> NDArray[np.uint8]:
        circuit = self._interpreter.configuration
        start = address - circuit.memory_base
        if start < 0 or start + size > circuit.memory_bytes:
            raise LinkError(
                f"{self.description}: {size} bytes at {address:#x} are outside the memory,"
                f" {circuit.memory_base:#x} to {circuit.memory_last:#x}"
            )
        return self._interpreter.memory[start : start + size]


_OPTIONS: Options = {
    **CIRCUIT,
    "latency": (whole, "cycles that the memory takes more than the least possible (default 0)"),
    "record": (whole, "capacity of a recording of commands, in entries (default none)"),
    "board": (str, "a board: its circuit and memory, and times that are predicted for it"),
}


def open_link(url: str) -> NumpyLink:
    """Open ``numpy[?OPTION=VALUE[&OPTION=VALUE...]]``.

    The options are those of a circuit, ``width``, ``ports``, ``memory``, ``loops``, ``slots``,
    ``ops``, ``modes``, ``lanes`` and ``search``, and the ``latency`` of the memory whose cycles are
    predicted; or the name of a ``board`` alone. ``record`` goes with either.

    Raises ``LinkError`` for an unknown option or a bad value, and for more than 2 GiB of memory.
    """
    parsed = DeviceUrl.parse(url)
    if parsed.target:
        raise LinkError(
            f"device {url!r}: {parsed.target!r} after numpy; expected numpy?OPTION=VALUE"
        )
    values = parsed.options(_OPTIONS)
    name, records = values.pop("board", None), values.pop("record", 0)
    with as_option_error(url):
        if name and values:
            raise ValueError(
                f"option {next(iter(values))}: beside board={name}, which has a circuit; expected"
                " one of them"
            )
        board = board_named(name) if name is not None else None
        circuit = board.configuration if board else configuration(values)
        memory = board.memory if board else Memory(latency=values.get("latency", 0))
        if circuit.memory_last >= LARGEST_MEMORY:
            raise ValueError(f"memory_bytes: {circuit.memory_bytes}; expected up to 2GiB")
        if records < 0:
            raise ValueError(f"option record: {records}; expected 0 or more entries")
        return NumpyLink(circuit, memory, board, records=records)
