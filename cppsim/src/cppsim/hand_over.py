"""Hand a running simulation over from Amaranth's simulator to compiled code.

This happens at rest, between two time steps: no write is pending, and no process of the design is
runnable. Testbenches, waits, the time and signals outside the design are left as they are.
"""

from collections.abc import Sequence
from typing import Any

from .amaranth_internals import ClockProcess, PyMemoryState, PyRTLProcess, PySignalState
from .designs import Written
from .netlist.lowered import Lowered
from .running.slots import SignalSlot
from .running.state import CompiledState
from .running.waits import Edge


def is_at_rest(state: Any, processes: "set[Any]") -> bool:
    """Return whether no write is pending and no process of the design is runnable."""
    return not state.pending and not any(
        type(process) is PyRTLProcess and process.runnable for process in processes
    )


def hand_over_state(
    before: Any,
    own: Sequence[int],
    ready: Written,
    triggers: "set[Any]",
) -> CompiledState:
    """Return a compiled state with the values, slots and wakers of ``before``.

    ``own`` has the number of wakers that the design itself has in each slot; they are dropped.
    Slots have the same numbers. Edges attach themselves again, and `hand_over_clocks` sets the
    time. Raises ``SimulationError`` if the design cannot be compiled.
    """
    lowered, source = ready
    state = CompiledState(lowered, triggers, source)
    state.pending = before.pending
    state.resume(_levels(before, lowered))
    for number, slot in enumerate(before.slots):
        of_signal = type(slot) is PySignalState
        thing = slot.signal if of_signal else slot.memory
        wakers = slot.wakers[own[number] if number < len(own) else 0 :]
        wakers = [x for x in wakers if not isinstance(getattr(x, "__self__", None), Edge)]
        if not state.holds(thing):
            state.slots.append(slot)
            (state.signals if of_signal else state.memories)[thing] = number
            slot.wakers = wakers
        elif of_signal:
            state.get_signal(thing)
            for waker in wakers:
                state.add_signal_waker(thing, waker)
        else:
            state.get_memory(thing)
            _copy_rows(slot, state.slots[number])
    return state


def hand_over_clocks(state: CompiledState, timeline: Any, processes: "set[Any]") -> "set[Any]":
    """Set the time and the clocks of ``state``; return the processes that Python still runs."""
    left: set[Any] = {state.clocks}
    wakers, edges, begun = dict(timeline.wakers), [], True
    for process in processes:
        if type(process) is not ClockProcess:
            if type(process) is not PyRTLProcess:
                left.add(process)
            continue
        slot = state.slots[process.slot]
        add, phase, period = state.clocks.add, process.phase, process.period
        # Testbenches may have waited for changes of a clock without logic since before.
        runs = type(slot) is SignalSlot and not slot.is_idle
        if runs and add(slot, phase=phase, period=period):
            edges.append(process.next_edge(timeline.now, wakers))
            begun = not process.initial
        else:
            process.state = state
            left.add(process)
    state.clocks.resume(timeline.now, edges, wakers, begun=begun)
    return left


def _levels(state: Any, lowered: Lowered) -> dict[int, int]:
    """Return the level of each bit of the design."""
    levels: dict[int, int] = {}
    for slot in state.slots:
        if type(slot) is PySignalState and slot.signal in lowered.signals:
            for place, bit in enumerate(lowered.signals[slot.signal]):
                levels[bit] = slot.curr >> place & 1
    return levels


def _copy_rows(before: PyMemoryState, after: PyMemoryState) -> None:
    for row, (value, initial) in enumerate(zip(before.data, after.data, strict=True)):
        if value != initial:
            after.data[row] = value
