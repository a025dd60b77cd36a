"""The array API's namespace of arrays, which `bitlane.api` sets: it has a default device."""

from collections.abc import Callable
from types import ModuleType

supporting: Callable[[str | None], ModuleType]
"""Return the namespace, if it has a version of the standard. Raises ``NotOfferedError``."""
