"""Aliases that type annotations of several rooms need."""

from typing import Any, TypeAlias

from numpy.typing import NDArray

AnyArray: TypeAlias = NDArray[Any]
