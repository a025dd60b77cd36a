"""Statements of C++ with the variables that they read and change."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Snippet:
    """A statement: its lines, and the names of the variables that it reads and changes.

    A word of the state is a variable, the array of a memory is one as a whole. Something outside
    that statements must reach in their order, such as the list of messages, is a variable, too.
    """

    lines: tuple[str, ...]
    reads: frozenset[str] = frozenset()
    changes: frozenset[str] = frozenset()


def assignment(target: str, value: str, reads: Iterable[str], kind: str = "") -> Snippet:
    """Return ``target = value;``; with the type ``kind`` it declares the target."""
    text = f"{kind} {target} = {value};" if kind else f"{target} = {value};"
    return Snippet((text,), frozenset(reads), frozenset({target.removesuffix("[]")}))


def block(reads: Iterable[str], *branches: tuple[str, Iterable[Snippet]]) -> Snippet:
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
    return Snippet((*lines, "}"), frozenset(read), frozenset(changed))


def lines_of(codes: Iterable[Snippet]) -> Iterator[str]:
    """Yield the lines of ``codes``."""
    for code in codes:
        yield from code.lines
