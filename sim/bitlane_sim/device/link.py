"""The link to a simulated device: ``sim``, ``sim:compiled?width=128&latency=30``."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from mmap import PAGESIZE
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bitlane.errors import LinkError
from bitlane.links import WITHOUT_CIRCUIT, BytesLike, DeviceUrl, Link, Options, Recording, printable
from bitlane_rtl.abi import CONTROL_BASE, CONTROL_SIZE, WORD_BYTES
from cppsim.errors import NoCompilerError, SimulationError

from ..circuit_options import CIRCUIT, as_option_error, configuration, whole
from .simulator import EVALUATORS, Simulator, choose_evaluator


class SimulatorLink(Link):
    """A link to a ``Simulator``, which it owns.

    The memory is read and written directly, in no simulated time; the control window over
    AXI4-Lite, in simulated cycles. The clock does not run between the calls.

    Attributes
    ----------
    simulator : Simulator
        For settings, faults and measurements.
    """

    def __init__(self, simulator: Simulator) -> None:
        self.simulator = simulator
        width = simulator.configuration.data_width
        self.description = f"simulator {simulator.evaluator.name}, {width} bits"
        self._owned = True

    @property
    def cycles(self) -> int:
        """Simulated clock cycles since power-on."""
        return self.simulator.cycles

    @property
    def slow(self) -> bool:
        """Whether Python evaluates the circuit. ``Link`` says more."""
        return self.simulator.evaluator.slow

    @property
    def memory_view(self) -> NDArray[np.uint8]:
        """The memory that the compiled loop reads and writes. ``Link`` says more."""
        return self.simulator.memory

    @property
    def recording(self) -> Recording | None:
        """The trace of the simulated buses, if option ``record`` enables it."""
        return self.simulator.recording

    def read(self, address: int, size: int) -> NDArray[np.uint8]:
        return self.exchange((), ((address, size),))[0]

    def write(self, address: int, data: BytesLike) -> None:
        self.exchange(((address, data),), ())

    def exchange(
        self,
        writes: Sequence[tuple[int, BytesLike]],
        reads: Sequence[tuple[int, int]],
    ) -> list[NDArray[np.uint8]]:
        self._expect_open()
        words: list[tuple[int, int]] = []
        for address, data in writes:
            content = np.frombuffer(data, np.uint8)
            if address >= CONTROL_BASE:
                offsets = self._offsets(address, content.size)
                words += zip(offsets, content.view("<u4").tolist(), strict=True)
                continue
            if words:
                self._access(words, ())
                words = []
            self._memory(address, content.size)[:] = content
        asked = [self._offsets(*read) if read[0] >= CONTROL_BASE else range(0) for read in reads]
        answers = self._access(words, [x for offsets in asked for x in offsets])
        results = []
        for (address, size), offsets in zip(reads, asked, strict=True):
            if address < CONTROL_BASE:
                results.append(self._memory(address, size).copy())
                continue
            results.append(np.array(answers[: len(offsets)], "<u4").view(np.uint8))
            del answers[: len(offsets)]
        return results

    def _access(self, words: Sequence[tuple[int, int]], offsets: Sequence[int]) -> list[int]:
        if not words and not offsets:
            return []
        with _as_link_error():
            return self.simulator.access(words, offsets)

    def forget(self, address: int, size: int) -> None:
        # Less than a page gives nothing back.
        if size >= PAGESIZE and not self.closed:
            self.simulator.forget(address - self.simulator.configuration.memory_base, size)

    def wait(self, timeout: float) -> bool:
        self._expect_open()
        with _as_link_error():
            return self.simulator.wait(timeout)

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            if not self._owned:
                return
            with _as_link_error():
                self.simulator.close()

    def disown(self) -> None:
        super().disown()
        # Closing the simulator would write the rest of the parent's waveforms again.
        self._owned = False

    def _expect_open(self) -> None:
        if self.closed:
            raise LinkError(f"{self.description}: the link is closed")

    def _offsets(self, address: int, size: int) -> range:
        """Offsets of words in the control window."""
        offset = address - CONTROL_BASE
        if offset % WORD_BYTES or size % WORD_BYTES or offset + size > CONTROL_SIZE:
            raise LinkError(
                f"{self.description}: {size} bytes at {address:#x} are not whole words of the"
                " control window"
            )
        return range(offset, offset + size, WORD_BYTES)

    def _memory(self, address: int, size: int) -> NDArray[np.uint8]:
        configuration = self.simulator.configuration
        start = address - configuration.memory_base
        if start < 0 or start + size > configuration.memory_bytes:
            raise LinkError(
                f"{self.description}: {size} bytes at {address:#x} are outside the memory,"
                f" {configuration.memory_base:#x} to {configuration.memory_last:#x}"
            )
        return self.simulator.memory[start : start + size]


@contextmanager
def _as_link_error() -> Iterator[None]:
    try:
        yield
    except SimulationError as error:
        raise LinkError(str(error)) from error


@contextmanager
def _writable(file: str | None) -> Iterator[str | None]:
    """A file that can be written, before the long build; left behind only if that succeeds."""
    if file is None:
        yield None
        return
    path = Path(file)
    if not path.parent.is_dir():
        folder = printable(str(path.parent))
        raise ValueError(f"vcd: {folder} is not a folder; make it first")
    new = not path.exists()
    with path.open("ab"):
        pass
    try:
        yield file
    except BaseException:
        if new:
            path.unlink(missing_ok=True)
        raise


def _up_to(most: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        number = int(text)
        if not 0 <= number <= most:
            raise ValueError(f"expected 0 to {most}")
        return number

    return parse


def _chance(text: str) -> float:
    chance = float(text)
    if not 0 <= chance < 1:
        raise ValueError("expected 0 to less than 1")
    return chance


def _file(text: str) -> str:
    if not text:
        raise ValueError("expected a name")
    return text


_OPTIONS: Options = {
    **CIRCUIT,
    "latency": (_up_to(255), "more cycles of the memory's latency, 0 to 255 (default 0)"),
    "stall": (_chance, "chance that a channel stalls in a cycle, 0 to less than 1 (default 0)"),
    "seed": (whole, "seed of the stalls (default 0)"),
    "vcd": (_file, "file for waveforms (default none)"),
    "record": (
        _up_to((1 << 32) - 1),
        "capacity of a trace of the buses, in entries (default none)",
    ),
}


_FORMER = {"cxxrtl": "compiled"}
"""Evaluators by names that were theirs, good for this version."""


def open_link(url: str) -> SimulatorLink:
    """Open ``sim[:EVALUATOR][?OPTION=VALUE[&OPTION=VALUE...]]``.

    Evaluators are ``compiled``, which is the default where there is a C++ compiler, and ``pysim``.
    The options are ``width``, ``ports``, ``memory``, ``loops``, ``slots``, ``ops``, ``modes``,
    ``lanes``, ``search``, ``latency``, ``stall``, ``seed``, ``vcd`` and ``record``.

    Raises ``LinkError`` for an unknown evaluator or option, a bad value, or a missing tool.
    """
    parsed = DeviceUrl.parse(url)
    evaluator = parsed.target or choose_evaluator()
    if evaluator in _FORMER:
        message = f"device {url!r}: {evaluator} is called {_FORMER[evaluator]} now"
        warnings.warn(message, FutureWarning, stacklevel=3)
        evaluator = _FORMER[evaluator]
    if evaluator not in EVALUATORS:
        raise LinkError(
            f"device {url!r}: no evaluator {evaluator!r}; choose {' or '.join(EVALUATORS)}"
        )
    values = parsed.options(_OPTIONS)
    with as_option_error(url, SimulationError):
        circuit = configuration(values)
        with _writable(values.get("vcd")) as vcd:
            records = values.get("record", 0)
            try:
                simulator = Simulator(circuit, evaluator, vcd=vcd, records=records)
            except NoCompilerError as error:
                raise SimulationError(f"{error}; {WITHOUT_CIRCUIT}") from error
    simulator.set_latency(values.get("latency", 0))
    if "stall" in values:
        simulator.set_stalls(values["stall"], seed=values.get("seed", 0))
    return SimulatorLink(simulator)
