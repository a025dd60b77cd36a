"""Random statements in Amaranth: assignments to parts, conditions, machines of states, prints."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from amaranth.hdl import Array, Cat, Cover, Format, Module, Print, Signal, Value

from .values import few, random_expression

_FORMATS = ("{}", "{:d}", "{:+d}", "{:#x}", "{:08b}", "{:>12}", "{{{:_d}}}")


@dataclass
class RandomStatements:
    """Statements in a domain of ``m`` that assign expressions of ``leaves`` to ``targets``."""

    chance: random.Random
    m: Module
    domain: str
    targets: Sequence[Signal]
    leaves: Sequence[Value]

    def assign(self) -> None:
        """Give each target a value, then other values to some or to parts of them."""
        for target in self.targets:
            self.m.d[self.domain] += target.eq(self._value(2))
        self._block(self.chance.randint(1, 3))

    def states(self) -> Value:
        """Add a state machine that assigns to the targets; return a test for one of its states."""
        states = [f"state{k}" for k in range(self.chance.randint(2, 4))]
        with self.m.FSM(domain=self.domain) as machine:
            for state in states:
                with self.m.State(state):
                    with self.m.If(self._value(1).bool()):
                        self.m.next = self.chance.choice(states)
                    with self.m.Elif(self._value(1).bool()):
                        self.m.next = self.chance.choice(states)
                    self._block(1)
        return machine.ongoing(self.chance.choice(states))

    def say(self) -> None:
        """Print some values at some edges."""
        values = [self._value(1) for _ in range(self.chance.randint(1, 3))]
        text = Format(" ".join(self.chance.choice(_FORMATS) for _ in values), *values)
        condition = self._value(1).bool()
        if self.chance.random() < 0.5:
            self.m.d[self.domain] += Cover(condition, text)
        else:
            with self.m.If(condition):
                self.m.d[self.domain] += Print(text)

    def _value(self, depth: int) -> Value:
        return Value.cast(random_expression(self.chance, self.leaves, depth))

    def _block(self, depth: int) -> None:
        for _ in range(self.chance.randint(1, 2)):
            kind = self.chance.randrange(3) if depth else 0
            if kind == 0:
                self.m.d[self.domain] += self._part().eq(self._value(2))
            elif kind == 1:
                self._if(depth - 1)
            else:
                self._switch(depth - 1)

    def _if(self, depth: int) -> None:
        with self.m.If(self._value(2).bool()):
            self._block(depth)
        if self.chance.random() < 0.5:
            with self.m.Elif(self._value(1).bool()):
                self._block(depth)
        with self.m.Else():
            self._block(depth)

    def _switch(self, depth: int) -> None:
        test = few(self.chance, self._value(1), 5)
        with self.m.Switch(test):
            for _ in range(self.chance.randint(1, 4)):
                patterns = ["".join(self.chance.choice("01-") for _ in test) for _ in range(2)]
                with self.m.Case(*patterns[: self.chance.randint(1, 2)]):
                    self._block(depth)
            if self.chance.random() < 0.5:
                with self.m.Default():
                    self._block(depth)

    def _part(self) -> Value:
        """Something of the targets that can be assigned to."""
        target, other = self.chance.choice(self.targets), self.chance.choice(self.targets)
        low = self.chance.randint(0, len(target))
        width = self.chance.randint(0, len(target))
        index = few(self.chance, self._value(1), 4)
        parts = [
            lambda: target,
            lambda: target[low:],
            lambda: target[:low],
            lambda: target.bit_select(index, width),
            lambda: target.word_select(index, max(1, width // 3)),
            lambda: Array([target, other, target[low:]])[index],
            lambda: target.as_unsigned(),
        ]
        if other is not target:
            parts.append(lambda: Cat(target[low:], other))
        return self.chance.choice(parts)()
