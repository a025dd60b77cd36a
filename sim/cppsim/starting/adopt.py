"""Let a compiled design continue a simulation that Amaranth's simulator has begun.

At rest, between two moments: nothing is to be written, and no part of the design is to be run. All
that others hold stays as it is: processes, waits, the time, signals that are not the design's.
"""

from collections.abc import Sequence
from typing import Any

from ..amaranth_internals import ClockProcess, PyMemoryState, PyRTLProcess, PySignalState
from ..cpp.simulation import SimulationSource
from ..netlist.lowering import Lowered
from ..running.slots import SignalSlot
from ..running.state import CompiledState
from ..running.waits import Edge

__all__ = ["adopt_clocks", "adopted", "is_at_rest"]


def is_at_rest(state: Any, processes: "set[Any]") -> bool:
    """Whether a simulation may change over now."""
    return not state.pending and not any(
        type(process) is PyRTLProcess and process.runnable for process in processes
    )


def adopted(
    before: Any,
    own: Sequence[int],
    written: tuple[Lowered, SimulationSource],
    triggers: "set[Any]",
) -> CompiledState:
    """What continues ``before``, in whose slots the design itself has as many wakers as in ``own``.

    Slots keep their numbers, and all wakers but those of edges, which attach themselves. Time is
    `adopt_clocks`' to give. Raises ``SimulationError`` if the design cannot be compiled.
    """
    lowered, source = written
    state = CompiledState(lowered, triggers, source)
    state.pending = before.pending
    state.resume(_levels(before, lowered))
    for number, slot in enumerate(before.slots):
        of_signal = type(slot) is PySignalState
        thing = slot.signal if of_signal else slot.memory
        kept = slot.wakers[own[number] if number < len(own) else 0 :]
        kept = [x for x in kept if not isinstance(getattr(x, "__self__", None), Edge)]
        if not state.holds(thing):
            state.slots.append(slot)
            (state.signals if of_signal else state.memories)[thing] = number
            slot.wakers = kept
        elif of_signal:
            state.get_signal(thing)
            for waker in kept:
                state.slots[number].add_waker(waker)
        else:
            state.get_memory(thing)
            _copy_rows(slot, state.slots[number])
    return state


def adopt_clocks(state: CompiledState, timeline: Any, processes: "set[Any]") -> "set[Any]":
    """Let ``state`` go on in time; the processes that are left to whoever holds ``processes``."""
    left: set[Any] = {state.clocks}
    wakers, edges, begun = dict(timeline.wakers), [], True
    for process in processes:
        if type(process) is not ClockProcess:
            if type(process) is not PyRTLProcess:
                left.add(process)
            continue
        slot = state.slots[process.slot]
        add, phase, period = state.clocks.add, process.phase, process.period
        if type(slot) is SignalSlot and add(slot, phase=phase, period=period):
            edges.append(process.next_edge(timeline.now, wakers))
            begun = not process.initial
        else:
            process.state = state
            left.add(process)
    state.clocks.resume(timeline.now, edges, wakers, begun=begun)
    return left


def _levels(state: Any, lowered: Lowered) -> dict[int, int]:
    """What the design's bits are."""
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
