"""A value of a model file together with its place, and the checks that name both.

Knows JSON only, nothing of tensors.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .errors import Fact, ModelFileError

__all__ = ["Node"]


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
        for name, node in self.members().items():
            if name not in names:
                raise node.error(f"no such field: {what} has {', '.join(names)}")

    def required(self, name: str) -> "Node":
        """A member that must be there."""
        members = self.members()
        if name not in members:
            raise Node(self.file, self.child(name, None).path, Fact("missing")).error("this field")
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

    def integer(self, low: int, high: int) -> int:
        """An integer from ``low`` to ``high``, written without a fraction."""
        if isinstance(self.value, bool) or not isinstance(self.value, int):
            raise self.error(f"an integer from {low} to {high}")
        if not low <= self.value <= high:
            raise self.error(f"an integer from {low} to {high}")
        return self.value

    def integers(self, low: int, high: int) -> list[int]:
        """An array of such integers."""
        return [item.integer(low, high) for item in self.items()]

    def choice(self, names: Sequence[str], prefix: str = "") -> str:
        """One of ``names``, written with DirectML's ``prefix`` or without."""
        text = self.text()
        short = text.removeprefix(prefix)
        if short not in names:
            raise self.error(f"one of {', '.join(names)}")
        return short

    def choices(self, names: Sequence[str], prefix: str) -> Iterator[str]:
        """The flags that a string, or an array of strings, names."""
        if isinstance(self.value, list):
            for item in self.items():
                yield item.choice(names, prefix)
        else:
            yield self.choice(names, prefix)
