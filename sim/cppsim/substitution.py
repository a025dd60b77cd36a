"""Let ``amaranth.sim.Simulator`` simulate in compiled code, for whoever has imported it whenever.

The class itself stays; its instances become those of a subclass. One that is told its ``engine`` is
left alone.
"""

import warnings
from collections.abc import Callable
from functools import cache, wraps
from typing import Any

from amaranth.sim import Simulator

from .checked import CheckedEngine
from .engine import Engine, FallbackWarning
from .mode import Mode, default_mode

__all__ = ["substitute"]

_class: Any = Simulator


class _Compiled(Simulator):
    def __init__(self, toplevel: Any) -> None:
        engine = CheckedEngine if default_mode() is Mode.CHECK else Engine
        with warnings.catch_warnings():
            # Whoever substitutes says at the end what was not compiled, and why.
            warnings.simplefilter("ignore", FallbackWarning)
            super().__init__(toplevel, engine=engine)


def substitute(note: Callable[[Any], None]) -> Callable[[], None]:
    """From now on compile; ``note`` gets every simulator made. Returns what undoes it."""
    before = _class.__init__

    @wraps(before)
    def __init__(self: Any, toplevel: Any, **options: Any) -> None:
        if options or isinstance(self, _Compiled):
            before(self, toplevel, **options)
            return
        kind: Any = type(self)
        self.__class__ = _compiled(kind)
        _Compiled.__init__(self, toplevel)
        note(self)

    def undo() -> None:
        _class.__init__ = before

    _class.__init__ = __init__
    return undo


@cache
def _compiled(kind: Any) -> Any:
    """``kind``, a subclass perhaps that somebody else wrote, in compiled code."""
    return _Compiled if kind is Simulator else type(kind.__name__, (kind, _Compiled), {})
