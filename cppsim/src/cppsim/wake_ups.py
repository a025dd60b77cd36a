"""Mode ``check``: the wake-ups of processes in compiled code and in Amaranth's simulator.

A process runs once, on compiled code. For each of its triggers there is a second one on the signals
of Amaranth's simulator, which samples the same expressions.
"""

from collections import deque
from collections.abc import Callable
from typing import Any

from .amaranth_internals import (
    ChangedTrigger,
    DelayTrigger,
    EdgeTrigger,
    SampleTrigger,
    TestbenchContext,
    eval_value,
    is_broken,
    process_of,
    read_signals,
    triggers_of,
)

_Samples = tuple[int, ...]


class WakeUps:
    """The wake-ups since the last comparison, by process.

    Parameters
    ----------
    shadow : PyEngineState
        The state of Amaranth's simulator.
    value : callable
        Returns the value of an expression in compiled code.
    """

    def __init__(self, shadow: Any, value: Callable[[Any], int]) -> None:
        self._shadow, self._value = shadow, value
        self._processes: dict[Any, _Process] = {}

    def reset(self) -> None:
        """Forget all triggers."""
        for process in self._processes.values():
            process.end()
        self._processes.clear()

    def add(self, trigger: Any, combination: Any) -> None:
        """Follow ``trigger``, Amaranth's of ``combination`` on compiled code."""
        owner, triggers = process_of(combination), triggers_of(combination)
        process = self._processes.setdefault(owner, _Process(owner, self._shadow))
        if any(isinstance(x, DelayTrigger) for x in triggers):
            process.begin(trigger, None)  # the shadow has no time
            return
        values = [x.value for x in triggers if isinstance(x, SampleTrigger | ChangedTrigger)]
        edges = [x.signal for x in triggers if isinstance(x, EdgeTrigger)]
        for signal in (*edges, *(x for value in values for x in read_signals(value))):
            self._hold(signal)
        process.begin(trigger, triggers)
        run = trigger.run

        def sampled() -> None:
            process.found.append(tuple(map(self._value, values)))
            run()

        trigger.run = sampled

    def _hold(self, signal: Any) -> None:
        """Let the shadow have a signal from outside of the design."""
        if signal not in self._shadow.signals:
            slot = self._shadow.slots[self._shadow.get_signal(signal)]
            slot.curr = slot.next = self._value(signal)

    def sample(self) -> None:
        """Sample for the triggers of the shadow that were activated in the last delta cycle."""
        for process in self._processes.values():
            if process.active:
                process.sample()

    def difference(self) -> str:
        """Return a text for a process whose wake-ups differ, empty without one; begin anew."""
        texts = [process.difference() for process in self._processes.values()]
        return next(filter(None, texts), "")


class _Process:
    """One process: its current trigger, and its samples on both sides.

    A testbench runs at the end of a time step. If its trigger is activated again before, that is
    broken.
    """

    def __init__(self, owner: Any, shadow: Any) -> None:
        self.found: list[_Samples] = []
        self.active = False
        self._owner, self._shadow = owner, shadow
        self._is_testbench = isinstance(owner.context, TestbenchContext)
        self._expected: list[_Samples] = []
        self._waiting: deque[_Begun] = deque()
        """Triggers that compiled code began, and the shadow did not yet."""
        self._begun: _Begun | None = None
        self._twin: _Twin | None = None
        self._broken = [False, False]
        """Whether a trigger was broken, in compiled code and in the shadow."""

    def begin(self, trigger: Any, triggers: Any) -> None:
        """Let the shadow wait for ``triggers``, too, as soon as it has woken up as often.

        None: for nothing.
        """
        self._note_broken()
        self._begun = trigger, triggers
        if len(self._expected) >= len(self.found):
            self._wait(triggers)
        else:
            self._waiting.append(self._begun)

    def end(self) -> None:
        """Drop the trigger of the shadow."""
        if self._twin is not None:
            self._twin.ended = True
        self._twin = None

    def _wait(self, triggers: Any) -> None:
        self.end()
        self.active = False
        if triggers is not None:
            self._twin = _Twin(self, triggers, self._shadow)

    def _note_broken(self) -> None:
        if self._begun is not None and self._is_testbench and is_broken(self._begun[0]):
            self._broken[0] = True
            self._begun = None

    def sample(self) -> None:
        self.active = False
        if self._twin is None:
            return
        late = len(self._expected) < len(self.found)
        if self._is_testbench and not late and self._owner.waits_on is None:
            self._broken[1] = True
            return
        self._expected.append(self._twin.samples())
        if self._waiting:
            self._wait(self._waiting.popleft()[1])

    def difference(self) -> str:
        """Return a text if the last wake-ups of a time step differ; forget them."""
        if self._owner.coroutine is None:
            self._begun = None  # it has ended
        self._note_broken()
        found, expected, broken = self.found[-1:], self._expected[-1:], self._broken
        self.found, self._expected, self._broken = [], [], [False, False]
        self._waiting.clear()
        self.active = False
        if self._begun is None or self._owner.waits_on is None:
            self.end()
        elif self._twin is None or self._twin.triggers is not self._begun[1]:
            self._wait(self._begun[1])
        if found == expected and broken[0] >= broken[1]:
            return ""
        return (
            f"process {self._owner.constructor.__qualname__} {_text(found, broken[0])}, and"
            f" {_text(expected, broken[1])} in Amaranth's simulator"
        )


_Begun = tuple[Any, Any]
"""A trigger, and the list of which it consists."""


def _text(samples: list[_Samples], broken: bool) -> str:
    woken = f"wakes up with {samples[0]}" if samples else "does not wake up"
    return f"{woken}, and its trigger is broken" if broken else woken


class _Twin:
    """A trigger on the signals of the shadow."""

    def __init__(self, process: _Process, triggers: Any, shadow: Any) -> None:
        self.ended = False
        self.triggers = triggers
        self._process, self._shadow = process, shadow
        for trigger in triggers:
            if isinstance(trigger, ChangedTrigger):
                shadow.add_signal_waker(trigger.signal, self._waker(None))
            elif isinstance(trigger, EdgeTrigger):
                shadow.add_signal_waker(trigger.signal, self._waker(trigger))

    def _waker(self, edge: Any) -> Callable[[int, int], bool]:
        def wake(before: int, after: int) -> bool:
            if self.ended:
                return False
            if edge is None or _is_edge(edge, before, after):
                self._process.active = True
            return True

        return wake

    def samples(self) -> _Samples:
        return tuple(
            int(eval_value(self._shadow, x.value))
            for x in self.triggers
            if isinstance(x, SampleTrigger | ChangedTrigger)
        )


def _is_edge(trigger: Any, before: int, after: int) -> bool:
    level = after >> trigger.bit & 1
    return level != before >> trigger.bit & 1 and level == trigger.polarity
