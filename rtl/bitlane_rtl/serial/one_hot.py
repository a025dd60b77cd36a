"""State machines written as a table, with a flip-flop for each state.

On iCE40 the answers' transmitter takes 74 LUT4 so, and 85 as an ``m.FSM``, which numbers states.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from amaranth.hdl import Const, Module, Value

__all__ = ["ALWAYS", "follow"]

ALWAYS = Const(1)

Transitions = Mapping[str, Sequence[tuple[Value, str]]]


def follow(m: Module, state: Any, transitions: Transitions) -> None:
    """Let ``state`` go on, a `data.Struct` of single bits of which one is 1.

    ``transitions`` has for every state conditions, and which state follows; the first condition
    that holds counts. While none does, the state stays.
    """
    entered: dict[str, Value] = dict.fromkeys(transitions, Const(0))
    for name, ways in transitions.items():
        stays = state[name]
        for condition, following in ways:
            entered[following] |= stays & condition
            stays &= ~condition
        entered[name] |= stays
    m.d.sync += [state[name].eq(enters) for name, enters in entered.items()]
