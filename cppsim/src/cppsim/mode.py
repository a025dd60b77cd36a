"""The modes of simulation, and the default mode of a process.

The order is: the ``mode`` argument, `set_default_mode`, the environment variable, ``ALWAYS``.
"""

import os
from enum import Enum

from .errors import warn_user

__all__ = ["MODE_VARIABLE", "Mode", "default_mode", "set_default_mode"]

MODE_VARIABLE = "CPPSIM"
"""Environment variable that names the default mode."""


class Mode(Enum):
    """The simulator that runs a design."""

    OFF = "off"
    """Amaranth's simulator runs the design."""
    ALWAYS = "always"
    """Compiled code runs the design from the beginning."""
    CHECK = "check"
    """Both run the design side by side and are compared."""

    @classmethod
    def _missing_(cls, value: object) -> "Mode":
        if value == "auto":
            line = "mode 'auto' is gone and compiles as 'always' does; say 'always'"
            warn_user(FutureWarning(line), "enum")
            return cls.ALWAYS
        names = ", ".join(mode.value for mode in cls)
        raise ValueError(f"{value!r} is not a mode; expected {names}")


_chosen: Mode | None = None


def default_mode() -> Mode:
    """Return the mode set for this process, else the environment's mode, else ``ALWAYS``.

    Raises ``ValueError`` if the environment names an unknown mode.
    """
    if _chosen is not None:
        return _chosen
    named = os.environ.get(MODE_VARIABLE) or Mode.ALWAYS.value
    try:
        return Mode(named)
    except ValueError as error:
        raise ValueError(f"{MODE_VARIABLE}: {error}") from None


def set_default_mode(mode: Mode | None) -> None:
    """Set the default mode of this process; None restores the environment's."""
    global _chosen
    _chosen = mode
