"""What has to be closed, and closes itself at the end of a ``with`` statement."""

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self

__all__ = ["Closing"]


class Closing(ABC):
    """Leaving the ``with`` statement calls ``close``, after an error too."""

    __slots__ = ()

    @abstractmethod
    def close(self) -> None:
        """Give back what is held. May be called again."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
