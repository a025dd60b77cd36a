"""A compiled model, and its signals and memories with the interface of Amaranth's simulator."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any

from amaranth.hdl import MemoryData, Signal

from ..amaranth_internals import (
    BaseSignalState,
    PyEngineState,
    PyMemoryState,
    PySignalState,
)
from ..cpp.simulation import SimulationSource
from ..native.compiled import DesignInstance
from ..netlist.lowered import Lowered
from ..probe import Probes
from ..tuning import Tuning
from .clocks import Condition
from .deltas import Deltas


class SettledState(PyEngineState, ABC):
    """A compiled model whose combinational logic is evaluated when a value of it is read.

    Attributes
    ----------
    tuning : Tuning
        The thresholds of speed, for all states of a class.
    stale : int
        0 while the combinational logic is settled. Otherwise it is 1 plus a number of reads. That
        many programs for single values take less time than settling all logic.
    patience : int
        ``stale`` just after a change.
    due : bool
        The model has changes that its next step will see.
    fresh : bool
        Nothing has happened since power-on.
    deltas : Deltas
        The delta cycles. While their ``count`` is not 0, combinational signals show earlier ones.
    watched : dict
        The slots whose wakers are called after a step of the model.
    constants : dict
        Those of them whose constant bits were others at power-on, with the value then.
    """

    tuning = Tuning()

    def __init__(self, lowered: Lowered, source: SimulationSource) -> None:
        super().__init__()
        self._lowered = lowered
        self.model = DesignInstance(lowered, source)
        self.probes = Probes(lowered, self.model, self.tuning)
        self.patience = 1 + self.probes.patience
        self.watched: dict[Any, None] = {}
        self.constants: dict[Any, int] = {}
        self.deltas = Deltas(self.model)
        self._power_on()

    def _power_on(self) -> None:
        self.stale = 1
        self.fresh = self.due = True
        self._at_edge = False

    def reset(self) -> None:
        super().reset()
        self.model.reset()
        self.deltas.reset()
        self._power_on()

    def settle(self) -> None:
        """Evaluate the combinational logic; within a delta cycle, keep its values from before."""
        if not self.due or self.fresh or self._at_edge:
            self.model.settle()
            self.stale = 0

    @abstractmethod
    def depth_of(self, signal: Signal) -> int:
        """Return after how many delta cycles a signal of combinational logic shows a change."""

    def bits_of(self, signal: Signal) -> tuple[int, ...]:
        """Return the nets of a signal of the design."""
        return self._lowered.signals[signal]

    def rows_of(self, memory: MemoryData, *, signed: bool) -> Any:
        """Return the rows of a memory of the design."""
        return self.model.rows(self._lowered.rows[memory], signed=signed)


class SignalSlot(BaseSignalState):
    """A signal whose value is in the model.

    ``curr`` is its value; the value after this delta cycle waits in the state's ``pending``.
    A waker has the bits that it needs to rise, and those to fall, in ``bits``; else it needs all.

    Attributes
    ----------
    combinational_only : bool
        A change affects combinational logic only, so that no step of the model is needed.
    clock : int or None
        Its number among the clocks of the simulation; None if it is not a clock.
    edges : dict
        The `Edge` for each level, if it is a clock.
    """

    is_comb = False

    def __init__(self, state: SettledState, signal: Signal) -> None:
        self.signal = signal
        self.wakers: list[Any] = []
        self._state = state
        self._words = state.model.words
        fields, self._constant, self.settled = state.model.locate(state.bits_of(signal))
        self._fields = [(x.word, x.shift, (1 << x.width) - 1, x.low) for x in fields]
        self._all = (1 << len(signal)) - 1
        self._sign = 1 << len(signal) >> 1 if signal.shape().signed else 0
        only = self._fields[0] if len(self._fields) == 1 else None
        self._only = (
            only[0]
            if only and only[1] == only[3] == 0 and not self._sign and not self._constant
            else -1
        )
        self._mask = only[2] if only else 0
        source, words = state.model.source, {field[0] for field in self._fields}
        self._is_input = words <= source.inputs
        self.combinational_only = words <= source.comb_inputs
        self.clock: int | None = None
        self.edges: dict[int, Any] = {}
        found: tuple[int | None, int] = source.quiet.get(self._only, (None, -1))
        self._quiet_level, self._previous = found
        self._queued: int | None = None
        self.shown: int | None = None
        self._first_watch = -1
        self.reset()

    def reset(self) -> None:
        self._queued = None
        if self._first_watch >= 0:
            self._note(self.signal.init)

    @cached_property
    def token(self) -> Any:
        """The key of the signal in a set of changes."""
        return PySignalState(self.signal, set())

    @property
    def curr(self) -> int:
        if self.settled and self._state.stale:
            self._state.settle()
        if self._only >= 0:
            return self._words[self._only] & self._mask
        return self._gathered(self._words)

    def _gathered(self, words: memoryview) -> int:
        value = self._constant
        for word, shift, mask, low in self._fields:
            value |= (words[word] >> shift & mask) << low
        return value - 2 * self._sign if value & self._sign else value

    @property
    def next(self) -> int:
        return self.curr if self._queued is None else self._queued

    def update(self, value: int, mask: int = ~0) -> None:
        before = self.next
        value = (before & ~mask) | (value & mask)
        if before != value:
            self._queued = value
            self._state.pending.add(self)

    @cached_property
    def depth(self) -> int:
        """The number of delta cycles after which it shows a change of registers and inputs."""
        return 0

    def wrapped(self, value: int) -> int:
        """Return ``value`` cut to the width of the signal."""
        value &= self._all
        return value - 2 * self._sign if value & self._sign else value

    def add_waker(self, waker: Callable[..., bool]) -> None:
        assert waker not in self.wakers
        if self.is_comb or not self._is_input or self.clock is not None:
            if not self.wakers:
                self._watch()
            self.wakers.append(waker)
            self._arm()
        else:
            self.wakers.append(waker)

    def drop_waker(self, waker: Callable[..., bool]) -> None:
        """Remove a waker, if it is still one."""
        if waker in self.wakers:
            self.wakers.remove(waker)
            self._arm()

    def _watch(self) -> None:
        """Let compiled code look at the signal from now on."""
        state = self._state
        if self._first_watch < 0:
            depth = self.depth if state.deltas.prepared else int(self.is_comb)
            settled = self.settled
            self._first_watch = state.deltas.add(self._fields, depth=depth, settled=settled)
        value = self.signal.init if state.fresh else self.curr
        self._note(value)
        state.watched[self] = None
        if (state.fresh or state.deltas.control.origin) and not self._has_constants_of(value):
            state.constants[self] = value

    def _has_constants_of(self, value: int) -> bool:
        mask = self._all
        for *_, part, low in self._fields:
            mask ^= part << low
        return value & mask == self._constant

    def _note(self, value: int) -> None:
        self._state.deltas.note(self._first_watch, self._fields, value)

    def deepen(self) -> None:
        """Set the depth in compiled code, which needs it for delta cycles only."""
        if self._first_watch >= 0:
            self._state.deltas.deepen(self._first_watch, len(self._fields), self.depth)

    def _arm(self) -> None:
        """Let compiled code stop at the changes that wakers need."""
        if self._first_watch < 0:
            return
        wakers = self.wakers
        if len(wakers) == 1:
            rising, falling = _bits_of(wakers[0])
        else:
            rising = falling = 0
            for waker in wakers:
                up, down = _bits_of(waker)
                rising, falling = rising | up, falling | down
        self._state.deltas.arm(self._first_watch, self._fields, rising, falling)
        if not wakers:
            self._state.watched.pop(self, None)

    def _call_wakers(self, before: int, after: int) -> None:
        wakers = self.wakers
        kept = [waker for waker in wakers if waker(before, after)]
        if len(kept) < len(wakers):
            wakers[:] = kept  # in place: `writer` has the list
            self._arm()

    def wake(self) -> bool:
        """Call the wakers if the last two looks differ; return whether there were any."""
        before, after = self._state.deltas.values(self._first_watch, self._fields)
        if before == after:
            return False
        self._call_wakers(before, after)
        return True

    def wake_from(self, before: int) -> bool:
        """Call the wakers if the value is not ``before``; return whether it is."""
        after = self.curr
        if before == after:
            return False
        self._state.deltas.settle(self._first_watch, self._fields)
        self._call_wakers(before, after)
        return True

    def take(self) -> int | None:
        """Return the value to write, None without a change. Calls the wakers."""
        value, self._queued = self._queued, None
        curr = self.curr
        if value is None or value == curr:
            return None
        if value in self.edges:
            self.edges[value].happen()
        if self.wakers:
            if self._first_watch >= 0:
                self._note(value)
            self._call_wakers(curr, value)
        return value

    def write(self, value: int) -> bool:
        """Write ``value``; return whether the model needs a step."""
        if value == self._quiet_level:
            self._words[self._only] = self._words[self._previous] = value
            return False
        for word, shift, mask, low in self._fields:
            others = self._words[word] & ~(mask << shift)
            self._words[word] = others | (value >> low & mask) << shift
        return True

    def as_clock(self) -> tuple[int, int, int] | None:
        """Return its word, its quiet level (or 2), and the word of its previous level.

        None if it shares its word with another signal, or if logic drives it.
        """
        if self.is_comb or not self._is_input or self._only < 0:
            return None
        return (
            self._only,
            2 if self._quiet_level is None else self._quiet_level,
            max(self._previous, 0),
        )

    def conditions(self) -> list[Condition]:
        """Return conditions of which one is true if the value is not 0; none if it is constant."""
        if self._constant:
            return []
        settles = self.settled
        fields = self._fields
        return [Condition(word, mask << shift, None, settles) for word, shift, mask, _ in fields]

    def writer(self) -> Callable[[int], bool]:
        """Return a function that writes a `combinational_only` signal, unless it has wakers."""
        words, word, mask, state = self._words, self._only, self._mask, self._state
        wakers, write_parts = self.wakers, self.write

        def write(value: int) -> bool:
            if wakers:
                return False
            if word < 0:
                write_parts(value)
            else:
                words[word] = value & mask
            state.stale = state.patience
            return True

        return write


def _bits_of(waker: Any) -> tuple[int, int]:
    """Return the bits whose changes a waker needs: those that rise, and those that fall."""
    bits: tuple[int, int] = getattr(waker, "bits", (-1, -1))
    return bits


class LogicSlot(SignalSlot):
    """A signal that combinational logic drives.

    It changes one or more delta cycles after registers and inputs, and has its initial value at
    power-on. Its words may be those of a register, which change with it.
    """

    is_comb = True

    @cached_property
    def depth(self) -> int:
        return self._state.depth_of(self.signal)

    @property
    def curr(self) -> int:
        deltas = self._state.deltas
        if deltas.control.count:
            words = deltas.row(self.depth)
            return self.signal.init if words is None else self._gathered(words)
        return self.signal.init if self._state.fresh else super().curr


class MemorySlot(PyMemoryState):
    """A memory whose rows are in the model."""

    def __init__(self, state: SettledState, memory: MemoryData) -> None:
        self._state = state
        self.shown: bytes | None = None
        super().__init__(memory, state.pending)

    def reset(self) -> None:
        self.data = self._state.rows_of(self.memory, signed=self.shape.signed)
        self.write_queue: dict[int, int] = {}
