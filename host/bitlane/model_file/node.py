"""A value of a model file with its place, and the checks that name both."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import IntFlag
from itertools import islice
from typing import TypeVar

from ..errors import Fact, ModelFileError
from ..text import shortened
from .problems import Problems, UnreadError

_UINT_LAST = 2**32 - 1

_MOST_NAMES, _LONGEST_NAME = 20, 60
"""Names of things that a message lists, and characters of each."""

_Thing = TypeVar("_Thing")
_Flags = TypeVar("_Flags", bound=IntFlag)


@dataclass(frozen=True, slots=True)
class Node:
    """``value`` stands at ``path`` of ``file``. Every method raises ``ModelFileError``."""

    file: str
    path: str
    value: object

    def error(self, expected: str) -> ModelFileError:
        """An error at this place, for the caller to raise."""
        return ModelFileError(self.file, self.path, self.value, expected)

    def child(self, name: str, value: object) -> "Node":
        """A value at a named place below this one."""
        return Node(self.file, f"{self.path}.{name}" if self.path else name, value)

    def members(self) -> dict[str, "Node"]:
        """The members of an object, in order."""
        if not isinstance(self.value, dict):
            raise self.error("an object")
        return {name: self.child(name, value) for name, value in self.value.items()}

    def items(self) -> list["Node"]:
        """The items of an array."""
        if not isinstance(self.value, list):
            raise self.error("an array")
        return [
            Node(self.file, f"{self.path}[{index}]", value)
            for index, value in enumerate(self.value)
        ]

    def has(self, name: str) -> bool:
        """Whether an object has a member."""
        return isinstance(self.value, dict) and name in self.value

    def only(self, what: str, *names: str) -> None:
        """Refuse members of an object other than ``names``; ``what`` is what the object is."""
        problems = Problems()
        for name, node in self.members().items():
            with problems.part():
                if name not in names:
                    raise node.error(f"no such field: {what} has {', '.join(names)}")
        problems.expect_none()

    def required(self, name: str, expected: str = "this field") -> "Node":
        """A member that must be there; ``expected`` is what the error asks for."""
        members = self.members()
        if name not in members:
            raise self.child(name, Fact("missing")).error(expected)
        return members[name]

    def optional(self, *names: str) -> "Node | None":
        """The first of some members that is there and not null, if any is."""
        members = self.members()
        for name in names:
            if name in members and members[name].value is not None:
                return members[name]
        return None

    def text(self) -> str:
        """A string."""
        if not isinstance(self.value, str):
            raise self.error("a string")
        return self.value

    def boolean(self) -> bool:
        """``true`` or ``false``."""
        if not isinstance(self.value, bool):
            raise self.error("true or false")
        return self.value

    def integer(self, low: int = 0, high: int = _UINT_LAST) -> int:
        """An integer from ``low`` to ``high``, written without a fraction."""
        value = self.value
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise self.error(f"an integer from {low} to {high}")
        return value

    def integers(self, low: int = 0, high: int = _UINT_LAST) -> list[int]:
        """An array of such integers."""
        return [item.integer(low, high) for item in self.items()]

    def number(self, *names: str) -> int:
        """An integer of 64 bits: the first of some members that is there, or else 0."""
        found = self.optional(*names)
        return 0 if found is None else found.integer(0, 2**64 - 1)

    def named(self, kind: str, things: Mapping[str, _Thing]) -> _Thing:
        """The one of ``things``, all of a ``kind``, whose name this is."""
        name = self.text()
        if name in getattr(things, "unread", ()):
            raise UnreadError
        if name not in things:
            names = [shortened(thing, _LONGEST_NAME) for thing in islice(things, _MOST_NAMES)]
            more = [f"and {len(things) - len(names)} more"] if len(things) > len(names) else []
            raise self.error(f"{kind}: {', '.join(names + more) or 'there are none'}")
        return things[name]

    def choice(self, names: Collection[str], prefix: str = "") -> str:
        """One of ``names``, written with DirectML's ``prefix`` or without."""
        text = self.text()
        short = text.removeprefix(prefix)
        if short not in names:
            raise self.error(f"one of {', '.join(names)}")
        return short

    def flags(self, name: str, kind: type[_Flags], prefix: str) -> _Flags:
        """The flags that a member names, a string or an array of strings, if it is there."""
        given, flags = self.optional(name), kind(0)
        if given is not None:
            for item in given.items() if isinstance(given.value, list) else [given]:
                flags |= kind[item.choice(kind.__members__, prefix)]
        return flags
