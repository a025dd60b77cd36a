"""The names of ports by the signals themselves, and of fields by expressions for them."""

from collections.abc import Collection, Mapping
from typing import Any

from ..errors import BatchError
from .ports import listed


class NamedSignals:
    """The names of ports by the signals themselves, from ``signals`` by name.

    Errors list ``names``, by default those of all signals.
    """

    def __init__(self, signals: Mapping[str, Any], names: Collection[str] | None = None) -> None:
        self._names = {id(signal): name for name, signal in signals.items()}
        self._signals = signals  # so that identities stay theirs
        self._listed = signals if names is None else names

    def name_of(self, port: Any) -> str:
        """Return the name of a port, which may be its name already. Raises ``BatchError``."""
        if isinstance(port, str):
            return port
        if id(port) not in self._names:
            raise BatchError(f"{port!r} is not a port; there are: {listed(self._listed)}")
        return self._names[id(port)]
