"""Engines that switch to compiled code at an advance that the test names. No tests here."""

from collections.abc import Callable
from typing import Any

from cppsim.designs import Written, built
from cppsim.engine import Engine
from cppsim.mode import Mode
from support.seeds import seeds


class _Chosen:
    """A stand-in for ``Switch``, ready from the advance ``number`` on."""

    due, reason = 0.0, ""

    def __init__(self, ready: Written, number: int) -> None:
        self._ready, self._left = ready, number

    def look(self, now: float) -> Written | None:
        self._left -= 1
        return self._ready if self._left < 0 else None


class Switching:
    """Factory of engines that switch before advance ``number``; 0 is the first one.

    Parameters
    ----------
    ready : Written, optional
        The design, if it is the same for all of them.

    Attributes
    ----------
    made : list
        The engines.
    """

    def __init__(self, number: int, ready: Written | None = None) -> None:
        self.made: list[Any] = []
        made = self.made

        class Switched(Engine):
            """An engine that switches at ``number``."""

            mode = Mode.AUTO
            advances = 0

            def __init__(self, design: Any) -> None:
                super().__init__(design)
                self._switch: Any = _Chosen(ready or built(design), number)
                made.append(self)

            def _ready(self, design: Any, mode: Mode) -> None:
                """Begin in Amaranth's simulator."""

            def advance(self) -> bool:
                self.advances += 1
                return super().advance()

        self.engine = Switched


def expect_same_wherever_switched(
    run: Callable[[Any], list[Any]], expected: list[Any], ready: Written | None = None
) -> int:
    """Expect that ``run`` returns the same on engines that switch at any of their advances.

    Of many advances, some at equal distances are tested. Returns the number of advances.
    """
    most = len(seeds(8, 40))
    number, advances = 0, 1
    while number < advances:
        switching = Switching(number, ready)
        assert run(switching.engine) == expected, number
        advances = max(engine.advances for engine in switching.made)
        # An engine need not switch before its last advance, which may fail.
        assert any(engine.compiled for engine in switching.made) or number == advances - 1
        number += 1 + advances // most
    return advances
