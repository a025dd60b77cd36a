"""The state of a compiled simulation, with the interface of Amaranth's simulator."""

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

from amaranth.hdl import MemoryData, Signal, Value

from ..amaranth_internals import (
    PyMemoryChange,
    PyMemoryState,
    PySignalState,
    SignalDict,
    clocks_and_resets_of,
)
from ..cpp.simulation import SimulationSource
from ..netlist.lowered import DesignMessage, Lowered, clock_plan, report
from .clocks import Clocks, Condition
from .deltas import Attention, Deltas
from .depths import depths
from .readers import Readers
from .slots import LogicSlot, MemorySlot, SettledState, SignalSlot


class CompiledState(SettledState):
    """Signals and memories of the design in a model, others as in Amaranth's simulator.

    Attributes
    ----------
    readers : Readers
        Readers of expressions.
    design : Amaranth's design, or None
        Where the number of assignments before a signal is found; None: one before each.
    reported : set
        Combinational messages of the last step, which are reported again only after a pause.
    runs_deltas : bool
        Delta cycles may follow each other within one `commit`.
    """

    runs_deltas = True

    def __init__(
        self,
        lowered: Lowered,
        triggers: Iterable[Any],
        source: SimulationSource,
    ) -> None:
        super().__init__(lowered, source)
        self.design: Any = None
        self._triggers = triggers
        self._numbers: dict[int, int] = {}
        self.reported: set[Any] = set()
        self._attention = Attention.TICKS
        self._triggered: dict[Any, None] = {}
        """The slots with a wait for changes other than a tick."""
        self._comb_messages = {id(x) for x in lowered.comb_messages}
        self.readers = Readers(self)
        self.clocks = self.timeline = Clocks(self.model.native, self.deltas)

    def reset(self) -> None:
        super().reset()
        self.reported.clear()
        self.constants.clear()

    def get_signal(self, signal: Signal) -> int:
        number = self._numbers.get(id(signal))
        return self._new_number(signal) if number is None else number

    def _new_number(self, signal: Signal) -> int:
        if signal not in self.signals and signal in self._lowered.signals:
            self.signals[signal] = len(self.slots)
            kind = LogicSlot if signal in self._lowered.driven else SignalSlot
            self.slots.append(kind(self, signal))
        number = int(super().get_signal(signal))
        if self.slots[number].signal is signal:
            # The slot holds the signal, so that its ``id`` is not reused.
            self._numbers[id(signal)] = number
        return number

    def get_memory(self, memory: MemoryData) -> int:
        if memory not in self.memories and memory in self._lowered.rows:
            self.memories[memory] = len(self.slots)
            self.slots.append(MemorySlot(self, memory))
        return super().get_memory(memory)

    def holds(self, thing: Signal | MemoryData) -> bool:
        """Return whether the design has this signal or memory."""
        lowered = self._lowered
        return thing in (lowered.signals if isinstance(thing, Signal) else lowered.rows)

    def slot(self, signal: Signal) -> SignalSlot | None:
        """Return the slot of a signal of the design; None for other signals."""
        found = self.slots[self.get_signal(signal)]
        return found if isinstance(found, SignalSlot) else None

    def conditions(self, value: Value) -> list[Condition] | None:
        """Return conditions for ``value`` not being 0; None if compiled code cannot evaluate it.

        Their programs are the caller's, which may set the constants that the structure leaves open.
        """
        slot = self.slot(value) if isinstance(value, Signal) else None
        if slot is None or slot.settled:
            program = self.probes.of_expression(value)
            if program is not None:
                return [Condition(program=program)]
            program = self.probes.of_settled(value)
            if program is not None:
                return [Condition(program=program, settles=True)]
        return (slot.conditions() or None) if slot is not None else None

    def reach(self) -> list[Any]:
        """Note that clocks have changed in a model that has not stepped.

        Returns the edges at which compiled code has stopped.
        """
        clocks = self.clocks
        self.stale = 0 if clocks.control.settled else self.patience
        return clocks.edges.get(clocks.control.reached) or clocks.reached()

    def step(self, *, alone: bool) -> bool:
        """Step the model if clocks are all that changed; return whether nothing is left to do.

        Otherwise `commit` steps it.
        """
        self.clocks.control.reached = 0
        if not alone:
            self.due = self._at_edge = True
            return False
        return not self._step() and not self.due

    def attend(self) -> None:
        """Set what compiled code stops for besides ticks."""
        if not self.watched and self._attention == Attention.TICKS:
            return  # nearly always
        attention = Attention.TICKS
        if self.watched:
            attention = Attention.WATCHES
            if self.is_triggered():
                attention = Attention.DELTAS
                self._prepared_deltas()
        self._attention = self.deltas.control.attention = attention

    def report_messages(self) -> None:
        """Report the messages of the last step of a fast-forward."""
        self.due = self._at_edge = bool(self.clocks.control.answer & 1)
        self.stale = 1
        self._report_messages()

    def sampled(self, value: Value) -> int:
        """Return a value as triggers other than ticks sample it: also within a delta cycle."""
        if not self.deltas.control.count and not self.fresh:
            return self.readers.read(value)
        return self.readers.evaluated(value)

    def add_signal_waker(self, signal: Signal, waker: Any) -> Any:
        """Call ``waker`` at changes of ``signal``, delta cycle by delta cycle; return its slot."""
        slot = self.slots[self.get_signal(signal)]
        slot.add_waker(waker)
        self._triggered[slot] = None
        return slot

    def is_triggered(self) -> bool:
        """Return whether anybody waits for changes, other than by a tick."""
        for slot in [slot for slot in self._triggered if not slot.wakers]:
            del self._triggered[slot]
        return bool(self._triggered)

    def commit(self, changed: set[Any] | None = None) -> bool:
        """End a delta cycle: step the model, and write the pending values.

        Returns whether nothing is left to do. Adds the changed slots to ``changed``.
        """
        if changed is not None:
            self._note_others(changed)
        if self.deltas.control.count or (self._triggered and self.is_triggered()):
            active = self._commit_in_order(alone=changed is None and self.runs_deltas)
        elif self.due and self.pending and not self.fresh:
            active = self._step_and_write()
        else:
            active = self.due and self._step()
            if self.pending:
                active |= self._write()
        if changed is not None:
            self._note(changed)
        return not active and not self.due

    def _step(self) -> bool:
        """Step the model; return whether a waker was called."""
        self.due = self._at_edge = self.fresh = False
        self.stale = self.patience
        answer = self.model.step()
        if answer & 1:
            # Now the values are those before the edges of clocks that the design makes.
            self.due = self._at_edge = True
        if answer & 2 or self.reported:
            self._report_messages()
        return self._wake() if self.watched else False

    def _wake(self) -> bool:
        """Look at the watched signals; return whether a waker was called."""
        deltas = self.deltas
        if deltas.control.settles and self.stale:
            self.settle()
        deltas.look()
        return bool(deltas.control.fired or self.constants) and self._call_wakers()

    def _call_wakers(self) -> bool:
        """Call the wakers of signals that have changed; return whether there were any."""
        self.deltas.control.fired = 0
        woken = False
        for slot, value in list(self.constants.items()):
            if slot.wake_from(value):
                del self.constants[slot]
                woken = True
        for slot in list(self.watched):
            woken |= slot.wake()
        return woken

    def resume(self) -> Sequence[Any]:
        """Continue the delta cycle in which compiled code has stopped: call the wakers.

        Returns the edges at which it has stopped.
        """
        deltas, clocks = self.deltas.control, self.clocks
        deltas.stopped = 0
        edges: Sequence[Any] = ()
        if deltas.attention == Attention.DELTAS:
            answer = deltas.answer
            self.due, self._at_edge, self.stale = True, False, 1
            reached = clocks.control.reached
            if reached:
                edges = clocks.edges.get(reached) or clocks.reached()
                clocks.control.reached = 0
        else:
            answer = clocks.control.answer
            self.due = self._at_edge = bool(answer & 1)
            self.stale = 0 if deltas.settles else self.patience
        if deltas.fired:
            self._call_wakers()
        if answer & 2:
            self._report_messages()
        return edges

    def _report_messages(self) -> None:
        reported = set()
        for message, values in self.model.messages():
            if id(message) in self._comb_messages:
                key = (id(message), values)
                reported.add(key)
                if key in self.reported:
                    continue
            self._report(message, values)
        self.reported = reported

    def _report(self, message: DesignMessage, values: Sequence[int]) -> None:
        """Report a message of the design."""
        report(message.statement, values)

    def _write(self) -> bool:
        """Write pending values; return whether anything changed, or a waker was called."""
        values, rows, others = self._taken()
        if values or rows:
            self._settle_for(others)
        active = self._put(values, rows)
        if active:
            self.due, self._at_edge, self.stale = True, False, 1
        for slot in others:
            active |= slot.commit()
        return active or bool(self._triggers)

    def _taken(self) -> "tuple[list[tuple[SignalSlot, int]], list[Any], list[Any]]":
        """Return values to write, memories with rows to write, and slots outside the model."""
        values: list[tuple[SignalSlot, int]] = []
        rows: list[Any] = []
        others: list[Any] = []
        for slot in self.pending:
            if type(slot) is SignalSlot:
                value = slot.take()
                if value is not None:
                    values.append((slot, value))
            else:
                (rows if type(slot) is MemorySlot else others).append(slot)
        self.pending.clear()
        return values, rows, others

    def _settle_for(self, others: Sequence[Any]) -> None:
        """Settle the model if processes that wake up sample the values before these changes."""
        if self.stale and (self._triggers or others):
            self.model.settle()
            self.stale = 0

    def _put(self, values: "Sequence[tuple[SignalSlot, int]]", rows: Sequence[Any]) -> bool:
        """Write values and rows; return whether the model needs a step."""
        active = False
        for slot, value in values:
            active |= slot.write(value)
        for memory in rows:
            active |= memory.commit()
        return active

    def _step_and_write(self) -> bool:
        """Step the model, and write pending values between the two halves of the step.

        So a process that stands for registers changes its signals with those of the design.
        """
        values, rows, others = self._taken()
        self._settle_for(others)
        self.model.edge()
        active = self._put(values, rows)
        self.stale = 1 if active else self.patience
        answer = self.model.levels()
        self._at_edge = bool(answer & 1) and not active
        self.due = active or bool(answer & 1)
        if answer & 2 or self.reported:
            self._report_messages()
        if self.watched:
            active |= self._wake()
        for slot in others:
            active |= slot.commit()
        return active or bool(self._triggers)

    def _commit_in_order(self, *, alone: bool) -> bool:
        """End a delta cycle at whose end any signal may be sampled; return whether one must follow.

        Combinational logic changes some delta cycles after the registers and inputs that it reads,
        and the edge of a clock that logic makes happens in the next one. If no process runs between
        delta cycles (``alone``), those that call no waker follow at once.
        """
        deltas = self._prepared_deltas()
        control = deltas.control
        values, rows, others = self._taken()
        control.settled = 0
        active = bool(deltas.begin(self.fresh))
        active |= self._put(values, rows)
        more = bool(deltas.end(active))
        self.fresh = False
        for slot in others:
            active |= slot.commit()
        # Edges of clocks that were written have activated triggers before.
        alone = alone and not (others or self._triggers or self.constants or self.reported)
        if alone and more and not (control.fired or control.answer & 2):
            more, active = bool(deltas.run()), False
        if control.fired or self.constants:
            active |= self._call_wakers()
        self.due = more or active or bool(self.constants)
        self.stale, self._at_edge = int(self.due), False
        if not self.due:
            control.count = 0
        if control.answer & 2 or self.reported:
            self._report_messages()
        return active or bool(self._triggers)

    def _prepared_deltas(self) -> Deltas:
        deltas = self.deltas
        if not deltas.prepared:
            deltas.prepare(max(self._depths.values(), default=1), self._depth_of_clock)
            for slot in self.slots:
                if isinstance(slot, SignalSlot):
                    slot.deepen()
        return deltas

    def depth_of(self, signal: Signal) -> int:
        return int(self._depths.get(signal, 1))

    @cached_property
    def _depths(self) -> Any:
        return SignalDict() if self.design is None else depths(self.design.fragment)

    @cached_property
    def _depth_of_clock(self) -> dict[int, int]:
        """The depth of each clock that the design makes, by its word of `SimulationSource.due`."""
        lowered, found = self._lowered, dict[int, int]()
        for signal in () if self.design is None else clocks_and_resets_of(self.design):
            if signal in lowered.signals:
                (net,) = lowered.signals[signal]
                depth = int(self._depths.get(signal, 0))
                found[net] = min(depth, found.get(net, depth))
        derived = sorted(clock_plan(lowered).derived)
        nets = (lowered.edges[number].net for number in derived)
        return {
            word: found.get(net, 1) for word, net in zip(self.model.source.due, nets, strict=True)
        }

    # --- waveforms ----------------------------------------------------------------------------

    def _note_others(self, changed: set[Any]) -> None:
        """Add pending slots that are not in the model to ``changed``."""
        for slot in self.pending:
            if type(slot) is PyMemoryState:
                changed.update(PyMemoryChange(slot, address) for address in slot.write_queue)
            elif type(slot) is PySignalState:
                changed.add(slot)

    def _note(self, changed: set[Any]) -> None:
        """Add slots of the model that changed since the last call to ``changed``."""
        for slot in self.slots:
            if isinstance(slot, SignalSlot):
                value = slot.curr
                if slot.shown != value:
                    slot.shown = value
                    changed.add(slot.token)
            elif isinstance(slot, MemorySlot):
                content = bytes(slot.data)
                if slot.shown != content:
                    changed.update(PyMemoryChange(slot, row) for row in range(len(slot.data)))
                    slot.shown = content
