"""When a simulation is compiled: as the user says, or as the environment does."""

import os
from enum import Enum

__all__ = ["MODE_VARIABLE", "Mode", "default_mode", "set_default_mode"]

MODE_VARIABLE = "CPPSIM"
"""Environment variable that names the mode where nobody else does."""


class Mode(Enum):
    """How a design is simulated."""

    OFF = "off"
    """By Amaranth's simulator."""
    AUTO = "auto"
    """By Amaranth's simulator until it pays to compile, which happens meanwhile."""
    ALWAYS = "always"
    """Compiled, from the beginning."""
    CHECK = "check"
    """By both side by side, and compared."""


_chosen: Mode | None = None


def default_mode() -> Mode:
    """What was set for this process, else the environment's mode, else ``AUTO``.

    Raises ``ValueError`` if the environment names none.
    """
    if _chosen is not None:
        return _chosen
    named = os.environ.get(MODE_VARIABLE, Mode.AUTO.value)
    try:
        return Mode(named)
    except ValueError:
        names = ", ".join(mode.value for mode in Mode)
        raise ValueError(f"{MODE_VARIABLE}: {named!r} is no mode; expected {names}") from None


def set_default_mode(mode: Mode | None) -> None:
    """Let simulators of this process that are not told otherwise use ``mode``; None: as before."""
    global _chosen
    _chosen = mode
