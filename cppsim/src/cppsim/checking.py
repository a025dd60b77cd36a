"""The same design in compiled code and in Amaranth's simulator, compared at every point in time.

Testbenches and processes run once, on compiled code. The signals that they set are also set in a
`Shadow`, in the same delta cycle. Signals, rows of memories and printed lines must be equal.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from amaranth.hdl import MemoryData, Signal
from amaranth.sim import Simulator

from .amaranth_internals import (
    FragmentCompiler,
    PyEngineState,
    PySimEngine,
    SignalDict,
    SignalSet,
    engine_of,
)
from .engine import Engine
from .errors import SimulationError
from .mode import Mode
from .netlist.lowered import DesignMessage, message_text
from .running.depths import assignments
from .running.state import CompiledState
from .wake_ups import WakeUps
from .workarounds import WAKE_UP, workaround_of_message, workaround_of_row, workaround_of_signal

_Found = tuple[str, str]
"""A difference, and its workaround, empty if there is none."""

Row = tuple[MemoryData, int]
"""A memory, and the number of one of its rows."""


class Shadow:
    """The processes that Amaranth makes of ``design``, with a separate state.

    Attributes
    ----------
    signals
        All signals of the design's statements, and of its ports to memories.
    memories
        All memories that have ports.
    written : set of MemoryData
        The memories written since the set was cleared.
    messages : list of str
        Prints and failed checks of clocked logic since the list was cleared.
    sample : callable
        Called at the beginning of each delta cycle.
    """

    def __init__(self, design: Any) -> None:
        self._state = PyEngineState()
        self._processes = FragmentCompiler(self._state)(design.fragment)
        self.signals: list[Any] = list(self._state.signals)
        self.memories: list[Any] = list(self._state.memories)
        self.written: set[MemoryData] = set()
        self.messages: list[str] = []
        self.sample: Callable[[], None] = _ignore
        for process in self._processes:
            names = process.run.__globals__
            # Combinational logic repeats a message at each evaluation; these are not compared.
            names["print"] = _ignore if process.is_comb else self._note_print
            names["pin_blame"] = _ignore if process.is_comb else self._note_failure

    def reset(self) -> None:
        """Return to power-on."""
        self._state.reset()
        for process in self._processes:
            process.reset()
        self.written.clear()
        self.messages.clear()

    @property
    def state(self) -> Any:
        """The state, Amaranth's."""
        return self._state

    def value(self, signal: Signal) -> int:
        return int(self._state.slots[self._state.get_signal(signal)].curr)

    def rows(self, memory: MemoryData) -> list[int]:
        rows: list[int] = self._state.slots[self._state.get_memory(memory)].data
        return rows

    def step(self, values: Iterable[tuple[Signal, int]], rows: Iterable[tuple[Row, int]]) -> bool:
        """Run one delta cycle, and set ``values`` and ``rows`` at its end.

        Returns whether it has converged. Signals and memories outside the design are ignored.
        """
        self.sample()
        for process in self._processes:
            if process.runnable:
                process.runnable = False
                process.run()
        for signal, value in values:
            if signal in self._state.signals:
                self._state.slots[self._state.get_signal(signal)].update(value)
        for (memory, number), value in rows:
            if memory in self._state.memories:
                self._state.slots[self._state.get_memory(memory)].write(number, value)
        self.written.update(x.memory for x in self._state.pending if hasattr(x, "memory"))
        return bool(self._state.commit())

    def settle(self) -> None:
        """Run delta cycles until nothing changes."""
        while not self.step((), ()):
            pass

    def _note_print(self, *values: Any, end: str = "\n") -> None:
        self.messages.append(" ".join(map(str, values)) + end)

    def _note_failure(self, _src_loc: Any, failure: AssertionError) -> None:
        self.messages.append(str(failure))


def _ignore(*_values: Any, **_options: Any) -> None:
    pass


_HEXADECIMAL_FROM = 1 << 16


class Difference(AssertionError):
    """Compiled code and Amaranth's simulator differ in a signal, a row or a message."""


@dataclass(frozen=True)
class Clock:
    """A clock of the simulation: its first rising edge and its period, in femtoseconds."""

    name: str
    phase: int
    period: int

    def cycle(self, now: int) -> int:
        """Return the number of rising edges until ``now``."""
        return max(0, (now - self.phase) // self.period + 1)


class Comparison:
    """The comparison of the ``state`` of a compiled ``design`` with its ``shadow``.

    Attributes
    ----------
    clocks : list of Clock
        The clocks whose cycles date a difference.
    """

    def __init__(self, design: Any, state: Any, shadow: Shadow, wake_ups: WakeUps) -> None:
        self.clocks: list[Clock] = []
        self._design, self._state, self._shadow = design, state, shadow
        self._wake_ups = wake_ups
        self._signals = [
            (signal, state.slots[state.get_signal(signal)])
            for signal in shadow.signals
            if state.holds(signal)
        ]
        self._contents: dict[Any, bytes] = {}

    def reset(self) -> None:
        """Return to power-on, with the shadow."""
        self._shadow.reset()
        self._wake_ups.reset()
        self._state.messages.clear()
        self._contents.clear()

    def expect_same(self, now: int) -> None:
        """Raise `Difference`, dated ``now`` femtoseconds, if anything differs."""
        woken = self._wake_ups.difference()
        found = self._rows() or self._values() or self._messages() or (woken and (woken, WAKE_UP))
        if found:
            text, workaround = found
            cycles = "".join(f", cycle {x.cycle(now)} of {x.name}" for x in self.clocks[:1])
            raise Difference(f"{text}, at {now / 1e15:.9g} s{cycles}{workaround}")

    def _values(self) -> _Found | None:
        value = self._shadow.value
        differing = SignalDict((x, slot) for x, slot in self._signals if slot.curr != value(x))
        if not differing:
            return None
        causes = self._causes(differing) or list(differing)
        cause = min(causes, key=lambda signal: (signal.src_loc, signal.name))
        others = len(differing) - 1
        also = f" and {others} more" if others else ""
        text = _text(f"{cause.name}{also}", differing[cause].curr, value(cause), cause.src_loc)
        return text, workaround_of_signal(self._design, cause)

    def _causes(self, differing: Any) -> list[Any]:
        """Return the signals that do not depend on other differing signals."""
        follows = SignalSet()
        for signals, sources in assignments(self._design.fragment):
            wrong = SignalSet(source for source in sources if source in differing)
            for signal in signals:
                if len(wrong) > (signal in wrong):
                    follows.add(signal)
        return [signal for signal in differing if signal not in follows]

    def _rows(self) -> _Found | None:
        written = self._shadow.written
        for memory in self._shadow.memories:
            found = self._state.slots[self._state.get_memory(memory)].data
            content = bytes(found)
            if self._contents.get(memory) == content and memory not in written:
                continue
            self._contents[memory] = content
            for row, value in enumerate(self._shadow.rows(memory)):
                if found[row] != value:
                    name = f"row {row} of {memory.name}"
                    text = _text(name, found[row], value, memory.src_loc)
                    return text, workaround_of_row(self._design.fragment, memory)
        written.clear()
        return None

    def _messages(self) -> _Found | None:
        # The messages of one point in time have no order.
        found, expected = sorted(self._state.messages), sorted(self._shadow.messages)
        self._state.messages.clear()
        self._shadow.messages.clear()
        if found == expected:
            return None
        text = f"compiled code says {found}, Amaranth's simulator {expected}"
        return text, workaround_of_message(self._design)


def _text(name: str, found: int, expected: int, src_loc: tuple[str, int] | None) -> str:
    form = "#x" if max(abs(found), abs(expected)) >= _HEXADECIMAL_FROM else "d"
    line = f" ({src_loc[0]}:{src_loc[1]})" if src_loc else ""
    return f"{name}{line} is {found:{form}}, and {expected:{form}} in Amaranth's simulator"


def check(
    design: Any,
    *testbenches: Callable[[Any], Any],
    clocks: Mapping[str, float] | float | None = None,
    processes: Iterable[Callable[[Any], Any]] = (),
) -> None:
    """Simulate ``design`` in compiled code and in Amaranth's simulator, and compare the two.

    ``clocks`` has the period in seconds of each clock, by the name of its domain; a number alone is
    that of ``"sync"``. Raises `Difference` at the first difference, ``SimulationError`` for a
    design that cannot be compiled, and what Amaranth's simulator and the testbenches raise.
    """
    simulator: Any = Simulator(design, engine=CheckedEngine)
    reason = engine_of(simulator).reason
    if reason:
        raise SimulationError(f"nothing to compare: {reason}")
    periods = clocks if isinstance(clocks, Mapping) else {} if clocks is None else {"sync": clocks}
    for domain, period in periods.items():
        simulator.add_clock(period, domain=domain)
    for process in processes:
        simulator.add_process(process)
    for testbench in testbenches:
        simulator.add_testbench(testbench)
    simulator.run()


class CheckedState(CompiledState):
    """Passes writes on to ``shadow``, and records the messages of clocked logic."""

    shadow: Shadow
    runs_deltas = False

    def __init__(self, lowered: Any, triggers: Iterable[Any], source: Any) -> None:
        super().__init__(lowered, triggers, source)
        self.messages: list[str] = []

    def commit(self, changed: set[Any] | None = None) -> bool:
        values, rows = [], []
        for slot in self.pending:
            if hasattr(slot, "memory"):
                rows += [((slot.memory, row), value) for row, value in slot.write_queue.items()]
            else:
                values.append((slot.signal, slot.next))
        converged = super().commit(changed)
        self.shadow.step(values, rows)
        return converged

    def _report(self, message: DesignMessage, values: Any) -> None:
        if id(message) not in self._comb_messages:
            self.messages.append(message_text(message.statement, values))
        super()._report(message, values)


class CheckedEngine(Engine):
    """``Simulator(design, engine=cppsim.CheckedEngine)``: compiled, and compared as it runs.

    ``run`` and ``advance`` raise `Difference` where the two simulators differ, also for the
    differences that `Engine` lists.
    """

    mode = Mode.ALWAYS
    state_type = CheckedState

    def __init__(self, design: Any) -> None:
        super().__init__(design)
        self._comparison: Comparison | None = None
        if not self.reason:
            self._state.shadow = shadow = Shadow(design)
            self._wake_ups = WakeUps(shadow.state, self.get_value)
            shadow.sample = self._wake_ups.sample
            self._comparison = Comparison(design, self._state, shadow, self._wake_ups)

    def reset(self) -> None:
        super().reset()
        if self._comparison:
            self._comparison.reset()

    def add_trigger_combination(self, combination: Any, *, oneshot: bool) -> Any:
        trigger = PySimEngine.add_trigger_combination(self, combination, oneshot=oneshot)
        if self._comparison:
            self._wake_ups.add(trigger, combination)
        return trigger

    # Amaranth's own clocks and contexts write by `CheckedState.commit` only.
    add_async_process = PySimEngine.add_async_process
    add_async_testbench = PySimEngine.add_async_testbench

    def _may_fast_forward(self) -> bool:
        return False

    def add_clock_process(self, clock: Signal, *, phase: int, period: int) -> None:
        PySimEngine.add_clock_process(self, clock, phase=phase, period=period)
        self._clocks.append((phase, period))
        if self._comparison:
            self._comparison.clocks.append(Clock(clock.name, phase, period))

    def step_design(self) -> None:
        super().step_design()
        if self._comparison:
            self._state.shadow.settle()

    def _advance(self) -> bool:
        now = self.now
        more = super()._advance()
        if self._comparison:
            self._comparison.expect_same(now)
        return more
