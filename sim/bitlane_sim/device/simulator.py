"""The simulated system as a Python object: memory, control, clock, settings, measurements."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bitlane.links import Recording
from bitlane.terminal import say
from bitlane_rtl.configuration import Configuration
from cppsim import Model, Program
from cppsim.circuits import AnyModel, Prepared
from cppsim.errors import SimulationError

from ..builds import build_circuit, find_compiler
from ..pages import Pages
from ..system import AXI_CHANNELS, EVENTS_BIT, RECORD, STORAGE_BUFFER, Hang, Response
from ..system.ports import (
    EVENTS,
    MEMORY_CHANNELS,
    RECORD_BUFFER,
    RECORD_BYTES,
    broken_rule,
    measured_channels,
    record_port,
    storage_ports,
)
from .elaboration import elaborated_system

if TYPE_CHECKING:
    from cppsim.circuits import Elaborated

    from ..system.system import System

EVALUATORS = ("compiled", "pysim")

_ACCESS_LIMIT = 1000
"""Cycles in which the control window answers; it needs a handful."""

_MOST_PREPARED = 64
"""Numbers of accesses that are prepared at once."""

_SLICE_SECONDS = 0.02
"""Approximate time between two checks of the deadline."""


def choose_evaluator() -> str:
    """Return ``compiled`` if there is a C++ compiler, else ``pysim``.

    Standard error says why it is ``pysim``, once for each reason.
    """
    try:
        find_compiler()
    except SimulationError as error:
        _warn_of_pysim(str(error))
        return "pysim"
    return "compiled"


@cache
def _warn_of_pysim(reason: str) -> None:
    what = "bitlane: Amaranth's simulator runs the circuit, hundreds of times slower than compiled"
    say(f"{what}: {reason}")


def load_evaluator(name: str) -> Callable[..., AnyModel]:
    """Return the class of the evaluator that is called ``name`` in ``EVALUATORS``."""
    if name == "compiled":
        return partial(Model, build_with=build_circuit)
    # All of Amaranth, which nobody else needs here.
    from cppsim import ReferenceModel

    return ReferenceModel


@dataclass(frozen=True, slots=True)
class Report:
    """The monitor's counters of one channel since ``clear_monitor``; see ``ChannelReport``."""

    count: int
    stalls: int
    first: int
    last: int


def _circuit(configuration: Configuration, *, known: bool, recorded: bool) -> "Elaborated | System":
    if known:
        return elaborated_system(configuration, recorded=recorded)
    from ..system.system import System

    return System(configuration, recorded=recorded)


class Simulator:
    """A simulated system, clocked only while a method of it runs.

    Parameters
    ----------
    configuration : Configuration
    evaluator : str or callable
        A name in ``EVALUATORS``, or what is called like those, with a `System`. For compiled the
        circuit is that of the source files, whatever has been done to the modules.
    vcd : path or None
        Where waveforms go.
    records : int
        Capacity of a `Recording`, in entries; with 0 nothing is recorded.

    Attributes
    ----------
    memory : ndarray of uint8
        All bytes of the memory from ``configuration.memory_base`` on; untouched pages cost nothing.
    evaluator : AnyModel

    Every method that runs the clock raises ``SimulationError`` if a bus rule was broken.
    """

    def __init__(
        self,
        configuration: Configuration,
        evaluator: str | Callable[..., AnyModel] = "compiled",
        *,
        vcd: str | Path | None = None,
        records: int = 0,
    ) -> None:
        self.configuration = configuration
        self._waves = Path(vcd) if vcd is not None else None
        self._records = np.zeros(records * RECORD_BYTES, np.uint8)
        self._pages = Pages(configuration.memory_bytes)
        self.memory = self._pages.bytes
        two = configuration.two_ports
        self.channels = measured_channels(two=two)
        make = load_evaluator(evaluator) if isinstance(evaluator, str) else evaluator
        buffers, recorder = {STORAGE_BUFFER: self.memory}, []
        if records:
            buffers[RECORD_BUFFER] = self._records
            recorder = [record_port()]
        self.evaluator = make(
            _circuit(configuration, known=evaluator == "compiled", recorded=bool(records)),
            storage=[*storage_ports(two=two), *recorder],
            buffers=buffers,
            vcd=vcd,
        )
        self._let_record()
        # How many cycles fit in a slice; found while running.
        self._slice = 64
        # By numbers of writes and reads.
        self._prepared: dict[tuple[int, int], Prepared] = {}
        self._counts: Prepared | None = None

    @property
    def cycles(self) -> int:
        """Clock edges since power-on."""
        return self.evaluator.cycles

    def close(self) -> None:
        """Free the evaluator and finish the waveform file; a viewer's save file comes beside it."""
        self.evaluator.close()
        if self._waves and self._waves.is_file():
            # pyvcd, which nobody else needs here.
            from .gtkwave import write_save_file

            write_save_file(self._waves)
            self._waves = None

    def power_on(self) -> None:
        """Back to the state at power-on; the memory keeps its bytes, all settings become 0."""
        self.evaluator.reset()
        self._let_record()

    def _let_record(self) -> None:
        if self._records.size:
            self.evaluator.set("record_limit", self._records.size // RECORD_BYTES)

    @property
    def recording(self) -> Recording | None:
        """The trace of the buses since power-on, or None without ``records``."""
        if not self._records.size:
            return None
        count = self.evaluator.get("record_count")
        cut = self.evaluator.get("record_cut")
        kinds = [(name, f"<u{bits // 8}") for name, bits in RECORD.items()]
        return _recording(self._records.view(kinds)[:count], self.cycles, cut=bool(cut))

    def forget(self, offset: int, size: int) -> None:
        """Forget ``size`` bytes of the memory: they may be anything until they are written."""
        self._pages.forget(offset, size)

    def step(self, cycles: int = 1) -> None:
        """Let ``cycles`` pass."""
        self.evaluator.step(cycles)
        self._check()

    def access(self, writes: Sequence[tuple[int, int]], reads: Sequence[int]) -> list[int]:
        """Write words of the control window, then read some, one after another over AXI4-Lite.

        ``writes``: byte offsets and words; ``reads``: byte offsets. Returns the words read.
        """
        columns = [x for offset, word in writes for x in (word, offset)]
        results = self._accesses(len(writes), len(reads))([*columns, *reads])
        self._check()
        wrote, read = results[: 2 * len(writes)], results[2 * len(writes) :]
        if not all(wrote[::2]) or not all(read[::3]):
            raise SimulationError(f"control__done was not high within {_ACCESS_LIMIT} cycles")
        responses = wrote[1::2] + read[1::3]
        if any(responses):
            offsets = [*(offset for offset, _ in writes), *reads]
            number = next(k for k, response in enumerate(responses) if response)
            raise SimulationError(
                f"control window: offset {offsets[number]:#x} was answered"
                f" {Response(responses[number]).name}"
            )
        return read[2::3]

    def wait(self, timeout: float) -> bool:
        """Run the clock until the interrupt is high, or until nothing happens for ``timeout``.

        The timeout is in seconds of real time, and starts anew with every transfer on the memory's
        channels: a command may take as long as it needs on a slow evaluator.
        """
        if self.evaluator.get("irq"):
            return True
        deadline = monotonic() + timeout
        transfers: list[int] = []
        while True:
            started = monotonic()
            if started >= deadline:
                return False
            came = self.evaluator.until("irq", self._slice)
            self._check()
            if came:
                return True
            self._adapt(monotonic() - started)
            before, transfers = transfers, self._transfers()
            if transfers != before:
                deadline = monotonic() + timeout

    def _transfers(self) -> list[int]:
        """Transfers on each of the memory's channels so far."""
        if self._counts is None:
            program = Program()
            for channel in self.channels:
                program.get(f"{channel}__count")
            self._counts = self.evaluator.prepare(program)
        return self._counts(())

    def set_latency(self, cycles: int) -> None:
        """Let reads and write responses take ``cycles`` more, 0 to 255."""
        self.evaluator.set("memory__latency", cycles)

    def set_stalls(self, chance: float, *, seed: int = 0) -> None:
        """Stall every channel in a cycle with ``chance``, 0 to 255/256.

        The stalls repeat with the same ``seed``. Takes one cycle.
        """
        for channel in MEMORY_CHANNELS:
            self.evaluator.set(f"memory__stall_{channel}", min(round(chance * 256), 255))
        self.evaluator.set("memory__seed", seed & 0xFFFF_FFFF)
        self._pulse("memory__seed_load")

    def inject_error(
        self,
        first: int = 0,
        last: int | None = None,
        *,
        read: bool = False,
        write: bool = False,
        response: Response = Response.SLVERR,
    ) -> None:
        """Answer beats with a byte from address ``first`` to ``last`` with an error from now on.

        Without ``read`` and ``write`` no error is injected any more.
        """
        self.evaluator.set("memory__error_first", first)
        self.evaluator.set("memory__error_last", first if last is None else last)
        self.evaluator.set("memory__error_response", response)
        self.evaluator.set("memory__error_read", int(read))
        self.evaluator.set("memory__error_write", int(write))

    def inject_hang(self, *, read: Hang = Hang.NONE, write: Hang = Hang.NONE) -> None:
        """Let reads or writes go unanswered, or unaccepted, until set to ``NONE`` again."""
        self.evaluator.set("memory__hang_read", read)
        self.evaluator.set("memory__hang_write", write)

    def clear_monitor(self) -> None:
        """Forget what the monitor has measured. Takes one cycle."""
        self._pulse("clear")

    @property
    def monitor(self) -> dict[str, Report]:
        """The monitor's counters, by channel."""
        parts = ("count", "stalls", "first", "last")
        get = self.evaluator.get
        return {
            channel: Report(*(get(f"{channel}__{part}") for part in parts))
            for channel in self.channels
        }

    def _accesses(self, writes: int, reads: int) -> Prepared:
        """Prepare accesses to the control window, for ``access``; once, if few numbers differ.

        Columns are the word and the address of each write, then the address of each read. Results
        are the cycles and the response of each write, then those and the word of each read.
        """
        if (writes, reads) not in self._prepared:
            if len(self._prepared) == _MOST_PREPARED:
                self._prepared.clear()
            program = Program()
            if writes:
                program.set("control__write", 1)
                with program.repeat(writes):
                    program.set("control__data", np.zeros((1, writes), np.uint64))
                    _access(program, "write", writes)
            program.set("control__write", 0)
            if reads:
                with program.repeat(reads):
                    _access(program, "read", reads)
                    program.get("control__answer")
            self._prepared[writes, reads] = self.evaluator.prepare(program)
        return self._prepared[writes, reads]

    def _pulse(self, port: str) -> None:
        """Assert ``port`` for one cycle."""
        self.evaluator.set(port, 1)
        self.evaluator.step()
        self.evaluator.set(port, 0)

    def _adapt(self, seconds: float) -> None:
        if seconds < _SLICE_SECONDS / 2:
            self._slice *= 2
        elif seconds > 2 * _SLICE_SECONDS:
            self._slice = max(1, self._slice // 2)

    def _check(self) -> None:
        violation = self.evaluator.get("violation")
        if violation:
            where, cycle = map(self.evaluator.get, ("violation_where", "violation_cycle"))
            raise SimulationError(broken_rule(violation, where, cycle))


def _access(program: Program, kind: str, times: int) -> None:
    """Add one access to the control window, of several."""
    program.set("control__address", np.zeros((1, times), np.uint64))
    program.set("control__start", 1).step().set("control__start", 0)
    program.until("control__done", _ACCESS_LIMIT, f"{kind}_cycles")
    program.get("control__response", f"{kind}_response")


def _recording(records: NDArray[np.void], cycles: int, *, cut: bool) -> Recording:
    """Return the trace in ``records``; the last one holds until ``cycles`` unless ``cut``."""

    def flag(bit: int) -> NDArray[np.bool_]:
        return (records["flags"] >> bit & 1).astype(bool)

    def numbers(field: str) -> dict[str, NDArray[np.int64]]:
        asking = [name for name in AXI_CHANNELS if name.startswith("a")]
        return {name: records[f"{name}_{field}"].astype(np.int64) for name in asking}

    begins = records["cycle"].astype(np.int64)
    return Recording(
        cycles=begins,
        end=int(begins[-1]) + 1 if cut else cycles,
        cut=cut,
        valid={name: flag(2 * number) for number, name in enumerate(AXI_CHANNELS)},
        ready={name: flag(2 * number + 1) for number, name in enumerate(AXI_CHANNELS)},
        addresses=numbers("address"),
        beats=numbers("beats"),
        **{name: flag(EVENTS_BIT + number) for number, name in enumerate(EVENTS)},
    )
