"""Amaranth's ``Simulator`` on compiled code."""

from typing import Any

from amaranth.sim import Simulator as AmaranthSimulator

from .checking.checked import CheckedEngine
from .engine import Engine
from .mode import Mode, default_mode
from .private import femtoseconds_of
from .running.running import RunningEngine

__all__ = ["Simulator"]


class _CompiledEngine(Engine):
    mode = Mode.ALWAYS


class _AdoptingEngine(Engine):
    mode = Mode.AUTO


_ENGINES: dict[Mode, Any] = {
    Mode.OFF: "pysim",
    Mode.AUTO: _AdoptingEngine,
    Mode.ALWAYS: _CompiledEngine,
    Mode.CHECK: CheckedEngine,
}


class Simulator(AmaranthSimulator):
    """``amaranth.sim.Simulator``, compiled as ``mode`` says: all that it does, sooner.

    ``run`` and ``run_until`` know how far they may go, so that repeated waits for ticks and clocks
    that nobody waits for take no Python. Ctrl-C is heard meanwhile.

    Parameters
    ----------
    mode : Mode or str, optional
        What the process or the environment says, where it is not given.
    """

    _engine: Any
    _running: bool

    def __init__(self, toplevel: Any, *, mode: Mode | str | None = None) -> None:
        chosen = default_mode() if mode is None else Mode(mode)
        super().__init__(toplevel, engine=_ENGINES[chosen])

    def run(self) -> None:
        if isinstance(self._engine, RunningEngine):
            self._running = True
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
        self._engine.run(femtoseconds)
