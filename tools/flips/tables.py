"""Truth tables of up to four inputs as expressions of few operators on single bits."""

from collections.abc import Sequence
from functools import lru_cache
from typing import TypeAlias

from amaranth.hdl import Const, Mux, Value

__all__ = ["gates"]

_Plan: TypeAlias = tuple[int, "_Plan | bool", "_Plan | bool"]
"""An input's number, the plan while it is low, and the plan while it is high."""


def gates(table: int, inputs: Sequence[Value]) -> Value:
    """Return the bit of ``table`` at index ``inputs``, whose first input is least significant."""
    return _made(_plan(table, tuple(range(len(inputs)))), inputs)


@lru_cache(maxsize=1 << 16)
def _plan(table: int, numbers: tuple[int, ...]) -> _Plan | bool:
    """Return the cheapest decision tree of the inputs ``numbers``."""
    if table in (0, (1 << (1 << len(numbers))) - 1):
        return bool(table)
    plans: list[_Plan | bool] = []
    for at, number in enumerate(numbers):
        low, high = _halves(table, at, len(numbers))
        rest = numbers[:at] + numbers[at + 1 :]
        if low == high:
            return _plan(low, rest)
        plans.append((number, _plan(low, rest), _plan(high, rest)))
    return min(plans, key=_cost)


def _halves(table: int, at: int, count: int) -> tuple[int, int]:
    """Return the halves of ``table`` with input ``at`` of ``count`` low, and high."""
    halves = [0, 0]
    sizes = [0, 0]
    for row in range(1 << count):
        half = row >> at & 1
        halves[half] |= (table >> row & 1) << sizes[half]
        sizes[half] += 1
    return halves[0], halves[1]


@lru_cache(maxsize=1 << 16)
def _cost(plan: _Plan | bool) -> int:
    """Return the number of operators of two inputs; a multiplexer counts as three."""
    if isinstance(plan, bool):
        return 0
    _, low, high = plan
    if isinstance(low, bool) and isinstance(high, bool):
        return int(low)
    if _opposite(low, high):
        return 1 + _cost(low)
    if isinstance(low, bool) or isinstance(high, bool):
        return 1 + int(low is True or high is False) + _cost(low) + _cost(high)
    return 3 + _cost(low) + _cost(high)


def _opposite(low: _Plan | bool, high: _Plan | bool) -> bool:
    """Return whether one plan is always the inverse of the other."""
    if isinstance(low, bool) or isinstance(high, bool):
        return isinstance(low, bool) and isinstance(high, bool) and low != high
    same = low[0] == high[0]
    return same and _opposite(low[1], high[1]) and _opposite(low[2], high[2])


def _made(plan: _Plan | bool, inputs: Sequence[Value]) -> Value:
    if isinstance(plan, bool):
        return Const(plan, 1)
    number, low, high = plan
    chosen = inputs[number]
    if isinstance(low, bool) and isinstance(high, bool):
        return ~chosen if low else chosen
    if _opposite(low, high):
        return chosen ^ _made(low, inputs)
    if low is False:
        return chosen & _made(high, inputs)
    if low is True:
        return ~chosen | _made(high, inputs)
    if high is False:
        return ~chosen & _made(low, inputs)
    if high is True:
        return chosen | _made(low, inputs)
    return Mux(chosen, _made(high, inputs), _made(low, inputs))
