"""The ports, memories and sizes of a written batch, as plain data, without Amaranth."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import BatchError
from ..model import PortLayout, found
from ..netlist import FormattedValue


class BrokenOff(BatchError):
    """A run ended before all instances had finished.

    ``done`` marks the instances that finished, as (instances,); ``results`` has 0 for the others.
    """

    def __init__(
        self, line: str, done: NDArray[np.bool_], results: dict[str, NDArray[Any]]
    ) -> None:
        super().__init__(line)
        self.done, self.results = done, results


@dataclass(frozen=True, slots=True)
class MemoryLayout:
    """A memory at byte ``offset``; a row has ``count`` elements of ``element`` bits.

    A memory of depth 0 has no bytes.
    """

    name: str
    width: int
    depth: int
    element: int
    count: int
    offset: int
    signed: bool

    @property
    def arguments(self) -> str:
        """The arguments of the C++ templates that read and write the memory."""
        return f"uint{self.element}_t, {self.count}, {self.width}, {self.depth}, {self.offset}"

    @property
    def words(self) -> int:
        return self.count

    @property
    def label(self) -> str:
        return f"memory {self.name!r}"

    @property
    def bytes(self) -> int:
        return self.depth * self.count * self.element // 8


@dataclass(frozen=True, slots=True)
class Description:
    """The ports, memories and sizes of a written design.

    Attributes
    ----------
    core_words : int
        Bits of an instance on threads; 0 where the source is not written for them.
    block_words : int
        Bits of an instance on a GPU; 0 where the source is not written for it.
    shared_words, shared_bytes : int
        On a GPU, the words that every cycle uses, and the size of the tables that it reads.
    row_bytes : int
        Memory contents of an instance.
    checks : mapping of int to tuple
        Messages of the design's checks by number, from 1.
    """

    ports: Mapping[str, PortLayout]
    memories: Mapping[str, MemoryLayout]
    core_words: int
    block_words: int
    shared_words: int
    shared_bytes: int
    row_bytes: int
    checks: Mapping[int, tuple[str | FormattedValue, ...]] = field(default_factory=dict)

    @property
    def instance_bytes(self) -> int:
        """The size of an instance, in bytes."""
        return -(-max(self.core_words, self.block_words) // 8) + self.row_bytes

    def memory(self, name: str) -> MemoryLayout:
        """Return the memory ``name``. Raises ``BatchError`` if it does not exist."""
        return found(self.memories, name, "memory")

    def as_dict(self) -> dict[str, Any]:
        """Return the description as values that JSON has."""
        return asdict(self)

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> "Description":
        """Return the description of which `as_dict` returned ``values``."""
        tables = {
            "ports": {name: PortLayout(**x) for name, x in values["ports"].items()},
            "memories": {name: MemoryLayout(**x) for name, x in values["memories"].items()},
            "checks": {
                int(number): tuple(x if isinstance(x, str) else FormattedValue(**x) for x in parts)
                for number, parts in values["checks"].items()
            },
        }
        return Description(**{**values, **tables})


@dataclass(frozen=True, slots=True)
class Source:
    """The C++ of a design for one backend or for both, and its description."""

    text: str
    description: Description


def around(entry: str, text: str) -> str:
    """Return the file ``entry`` of this package with ``text`` in place of its source."""
    whole = (files("cppsim") / "batch" / entry).read_text(encoding="utf-8")
    before, _, behind = whole.partition("#include SOURCE")
    return f"{before}{text}\n//{behind}"
