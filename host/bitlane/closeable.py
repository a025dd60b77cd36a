"""Mixin for objects that close themselves when a ``with`` block ends."""

from abc import ABC, abstractmethod
from types import TracebackType
from typing import NoReturn, Self

from .errors import NotOfferedError


class Closeable(ABC):
    """An object whose ``close`` is called when its ``with`` block ends, after an error too."""

    __slots__ = ()

    @abstractmethod
    def close(self) -> None:
        """Release the device or memory. May be called again."""

    def __enter__(self) -> Self:
        return self

    def __reduce__(self) -> NoReturn:
        raise NotOfferedError(
            f"{type(self).__name__} cannot be pickled, as it holds a device or a part of one;"
            " in another process, open the device there: bitlane.open(url)"
        )

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
