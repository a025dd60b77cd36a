"""Make ``amaranth.sim.Simulator`` simulate in compiled code, in modules that have imported it.

The class stays the same object; its instances get a subclass. Simulators with an ``engine``
argument are left alone.
"""

import warnings
from collections.abc import Callable
from functools import cache, wraps
from typing import Any

from amaranth.sim import Simulator as AmaranthSimulator

from .amaranth_internals import engine_of
from .simulator import Simulator
from .starting.switch import FallbackWarning

_class: Any = AmaranthSimulator


def substitute(note: Callable[[Any], None]) -> Callable[[], None]:
    """Compile from now on, and pass every engine to ``note``; return a function that undoes it."""
    before = _class.__init__

    @wraps(before)
    def __init__(self: Any, toplevel: Any, **options: Any) -> None:
        if options or isinstance(self, Simulator):
            before(self, toplevel, **options)
            return
        kind: Any = type(self)
        self.__class__ = _compiled(kind)
        with warnings.catch_warnings():
            # The caller of `substitute` reports designs that were not compiled.
            warnings.simplefilter("ignore", FallbackWarning)
            Simulator.__init__(self, toplevel)
        note(engine_of(self))

    def undo() -> None:
        _class.__init__ = before

    _class.__init__ = __init__
    return undo


@cache
def _compiled(kind: Any) -> Any:
    """Return a subclass of ``kind`` and `Simulator`."""
    return Simulator if kind is _class else type(kind.__name__, (kind, Simulator), {})
