"""Statements of C++ with the variables that they read and change."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

__all__ = ["Code", "assignment", "block", "lines_of"]


@dataclass(frozen=True, slots=True)
class Code:
    """A statement: its lines, and the names of the variables that it reads and changes.

    A word of the state is a variable, the array of a memory is one as a whole. Something outside
    that statements must reach in their order, such as the list of messages, is a variable, too.
    """

    lines: tuple[str, ...]
    reads: frozenset[str] = frozenset()
    changes: frozenset[str] = frozenset()


def assignment(target: str, value: str, reads: Iterable[str], kind: str = "") -> Code:
    """Return ``target = value;``; with the type ``kind`` it declares the target."""
    text = f"{kind} {target} = {value};" if kind else f"{target} = {value};"
    return Code((text,), frozenset(reads), frozenset({target.removesuffix("[]")}))


def block(reads: Iterable[str], *branches: tuple[str, Iterable[Code]]) -> Code:
    """Return branches with their heads, such as ``if (a) {`` and ``} else {``, as one statement.

    The heads read the variables ``reads``.
    """
    lines: list[str] = []
    read, changed = set(reads), set[str]()
    for head, inner in branches:
        lines.append(head)
        for code in inner:
            lines += [f"  {line}" for line in code.lines]
            read |= code.reads
            changed |= code.changes
    return Code((*lines, "}"), frozenset(read), frozenset(changed))


def lines_of(codes: Iterable[Code]) -> Iterator[str]:
    """Yield the lines of ``codes``."""
    for code in codes:
        yield from code.lines
