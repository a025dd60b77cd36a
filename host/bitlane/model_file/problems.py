"""Collects the errors of a model file: one for each part that can be read without the others."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from ..errors import ModelFileError

_Thing = TypeVar("_Thing")


class UnreadError(Exception):
    """A part names a thing that has an error of its own; the part itself has none so far."""


class Problems:
    """The errors of the parts of a thing.

    Each part is read in a block ``with problems.part()``; `expect_none` follows the last one.
    """

    def __init__(self) -> None:
        self.errors: list[ModelFileError] = []
        self._unread = False

    @contextmanager
    def part(self) -> Iterator[None]:
        """Collect the error that ends the block, if any, unless another part has had the same."""
        try:
            yield
        except ModelFileError as error:
            known = {str(each) for each in self.errors}
            self.errors += [each for each in error.all if str(each) not in known]
        except UnreadError:
            self._unread = True

    def expect_none(self) -> None:
        """Raise the first error, which carries all others, or `UnreadError`."""
        if self.errors:
            first, *others = self.errors
            first.others = tuple(others)
            raise first
        if self._unread:
            raise UnreadError


class Things(dict[str, _Thing]):
    """Things of a model file by name; those in ``unread`` are there, too, but have errors."""

    def __init__(self) -> None:
        self.unread: set[str] = set()

    @contextmanager
    def part(self, name: str, problems: Problems) -> Iterator[None]:
        """Collect the error of the thing ``name``, which the block reads."""
        with problems.part():
            yield
        if name not in self:
            self.unread.add(name)
