"""The names of ports by the signals themselves, and of fields by expressions for them."""

from collections.abc import Collection, Mapping
from typing import Any

from ..errors import BatchError
from .ports import NO_FIELDS, listed


class NamedSignals:
    """The names of ports by the signals themselves, from ``signals`` by name.

    ``fields`` has by name the port that a field is a part of, its lowest bit and its shape; without
    it, fields are not ports. Errors list ``names``, by default those of all signals.
    """

    def __init__(
        self,
        signals: Mapping[str, Any],
        fields: Mapping[str, tuple[str, int, Any]] | None = None,
        names: Collection[str] | None = None,
    ) -> None:
        self._names = {id(signal): name for name, signal in signals.items()}
        self._signals = signals  # so that identities stay theirs
        self._fields: dict[tuple[str, int, int, bool], str] = {}
        for name, (port, low, shape) in (fields or {}).items():
            self._fields.setdefault((port, low, shape.width, shape.signed), name)
        self._has_fields = fields is not None
        self._listed = signals if names is None else names

    def name_of(self, port: Any) -> str:
        """Return the name of a port, which may be its name already. Raises ``BatchError``."""
        if isinstance(port, str):
            return port
        found = self._names.get(id(port))
        return self._field_of(port) if found is None else found

    def _field_of(self, value: Any) -> str:
        # A compiled model needs no Amaranth.
        from ..amaranth_internals import part_of

        whole, low, width, signed = part_of(value)
        port = self._names.get(id(whole))
        if port is None:
            raise BatchError(f"{value!r} is not a port; there are: {listed(self._listed)}")
        if not self._has_fields:
            raise BatchError(f"{value!r} is not a port but a part of {port!r}; {NO_FIELDS}")
        found = self._fields.get((port, low, width, signed))
        if found is None:
            fields = listed(x for x in self._fields.values() if x.startswith(f"{port}."))
            raise BatchError(f"{value!r} is not a field of {port!r}; there are: {fields}")
        return found
