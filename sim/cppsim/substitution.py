"""Let ``amaranth.sim.Simulator`` simulate in compiled code, for whoever has imported it whenever.

The class itself stays; its instances become those of a subclass. One that is told its ``engine`` is
left alone.
"""

import warnings
from collections.abc import Callable
from functools import cache, wraps
from typing import Any

from amaranth.sim import Simulator as AmaranthSimulator

from .amaranth_internals import engine_of
from .engine import FallbackWarning
from .simulator import Simulator

__all__ = ["substitute"]

_class: Any = AmaranthSimulator


def substitute(note: Callable[[Any], None]) -> Callable[[], None]:
    """From now on compile; ``note`` gets the engine of every simulator. Returns what undoes it."""
    before = _class.__init__

    @wraps(before)
    def __init__(self: Any, toplevel: Any, **options: Any) -> None:
        if options or isinstance(self, Simulator):
            before(self, toplevel, **options)
            return
        kind: Any = type(self)
        self.__class__ = _compiled(kind)
        with warnings.catch_warnings():
            # Whoever substitutes says at the end what was not compiled, and why.
            warnings.simplefilter("ignore", FallbackWarning)
            Simulator.__init__(self, toplevel)
        note(engine_of(self))

    def undo() -> None:
        _class.__init__ = before

    _class.__init__ = __init__
    return undo


@cache
def _compiled(kind: Any) -> Any:
    """``kind``, a subclass perhaps that somebody else wrote, in compiled code."""
    return Simulator if kind is _class else type(kind.__name__, (kind, Simulator), {})
