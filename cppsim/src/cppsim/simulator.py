"""Amaranth's ``Simulator`` on compiled code, by its own name or in place of Amaranth's."""

import warnings
from collections.abc import Callable
from functools import cache, wraps
from typing import Any

from amaranth.sim import Simulator as AmaranthSimulator

from .amaranth_internals import closing_generators, engine_of, femtoseconds_of
from .designs import uncollected
from .engine import Engine
from .errors import FallbackWarning
from .mode import Mode, default_mode
from .running import RunningEngine
from .stand_ins import with_stand_ins


class _CompiledEngine(Engine):
    mode = Mode.ALWAYS


_ENGINES: dict[Mode, Any] = {
    Mode.OFF: "pysim",
    Mode.ALWAYS: _CompiledEngine,
}


def _engine_for(mode: Mode) -> Any:
    if mode is Mode.CHECK:
        from .checking import CheckedEngine  # only here: few simulations are checked

        return CheckedEngine
    return _ENGINES[mode]


class Simulator(AmaranthSimulator):
    """``amaranth.sim.Simulator`` on compiled code, with the same interface and the same results.

    ``run`` and ``run_until`` stay in compiled code while no testbench or process is due. Ctrl-C
    interrupts them.

    Parameters
    ----------
    mode : Mode or str, optional
        ``"always"`` compiles the design unless it is in the cache, ``"off"`` is Amaranth's
        simulator, and ``"check"`` compares both. Default: `default_mode`.
    """

    _engine: Any
    _running: bool

    def __init__(self, toplevel: Any, *, mode: Mode | str | None = None) -> None:
        chosen = default_mode() if mode is None else Mode(mode)
        with uncollected():
            super().__init__(with_stand_ins(toplevel), engine=_engine_for(chosen))

    def run(self) -> None:
        if isinstance(self._engine, RunningEngine):
            self._running = True
            with closing_generators(self):
                self._engine.run()
        else:
            super().run()

    def run_until(self, deadline: Any, **deprecated: Any) -> None:
        femtoseconds = femtoseconds_of(deadline)
        if femtoseconds is None or deprecated or not isinstance(self._engine, RunningEngine):
            super().run_until(deadline, **deprecated)
            return
        assert self._engine.now <= femtoseconds
        self._running |= self._engine.now < femtoseconds
        with closing_generators(self):
            self._engine.run(femtoseconds)


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
