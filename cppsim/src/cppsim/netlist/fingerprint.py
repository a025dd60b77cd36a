"""The fingerprint of a prepared design: designs with one fingerprint have one netlist.

A walk describes each node by its type, its fields and the numbers of its operands. Equal nodes have
one number, however many objects express them. Signals, domains, memories, prints and checks are
objects of their own, numbered in the order in which the walk meets them. Names, attributes, places
in source files and the contents of memories are left out.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from amaranth.hdl import ClockDomain, Fragment, MemoryData, Shape

from ..amaranth_internals import (
    MemoryInstance,
    RequirePosedge,
    ast,
    chunks_of,
    clocks_and_resets_of,
    memory_of,
    read_ports_of,
    signal_ports_of,
    write_ports_of,
)
from .cells import not_known


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """The ``digest`` of a design, and its ``objects`` in the order of their numbers.

    The objects of two designs with one digest correspond.
    """

    digest: str
    objects: Sequence[Any]


def fingerprint(design: Any) -> Fingerprint:
    """Return the fingerprint of ``design``. Raises ``NotPlain`` for a node without a plain form."""
    walk = _Walk()
    root = (
        walk.number(design.fragment),
        *sorted((walk.number(x), direction) for x, direction in signal_ports_of(design)),
        *walk.clocks(design),
    )
    return Fingerprint(walk.digest(root), walk.objects)


class _Walk:
    """The nodes of a design, numbered as they are met.

    Attributes
    ----------
    objects : list
        What is more than its description: a signal is not another one of the same shape.
    """

    def __init__(self) -> None:
        self.objects: list[Any] = []
        self._nodes: dict[tuple[Any, ...], int] = {}
        self._met: dict[int, int] = {}
        """The number of each node by its ``id``; the design holds the nodes."""

    def number(self, node: Any) -> int:
        """Return the number of ``node``, which is described when it is first met."""
        number = self._met.get(id(node))
        if number is None:
            kind = type(node)
            if kind not in _FIELDS:
                raise not_known(kind.__name__, node)
            described = (kind.__name__, *_FIELDS[kind](self, node))
            number = self._nodes.setdefault(described, len(self._nodes))
            self._met[id(node)] = number
        return number

    def new(self, node: Any) -> int:
        """Return the number of an object that is met for the first time."""
        self.objects.append(node)
        return len(self.objects)

    def clocks(self, design: Any) -> "Iterator[int]":
        """Yield clocks and resets of domains: the first that is a net gives its level at power-on.

        Those that are ports are left out. Amaranth adds them for missing domains, in any order, and
        their nets are different.
        """
        ports = {id(signal) for signal, _ in signal_ports_of(design)}
        for signal in clocks_and_resets_of(design):
            if id(signal) not in ports:
                yield self.number(signal)

    def digest(self, root: tuple[Any, ...]) -> str:
        """Return a digest of ``root`` and of all nodes, which are text and whole numbers."""
        return hashlib.sha256(repr((root, *self._nodes)).encode()).hexdigest()


def _const(_: _Walk, node: Any) -> tuple[Any, ...]:
    shape = node.shape()
    # Python writes no decimal number of more than 4,300 digits.
    return (hex(node.value), shape.width, shape.signed)


def _signal(walk: _Walk, node: Any) -> tuple[Any, ...]:
    shape, named = node.shape(), bool(node.name)
    # A signal without a name has no net unless something reads it.
    about = (shape.width, shape.signed, hex(node.init), node.reset_less, named)
    return (walk.new(node), *about)


def _operator(walk: _Walk, node: Any) -> tuple[Any, ...]:
    return (node.operator, *map(walk.number, node.operands))


def _slice(walk: _Walk, node: Any) -> tuple[Any, ...]:
    return (walk.number(node.value), node.start, node.stop)


def _part(walk: _Walk, node: Any) -> tuple[Any, ...]:
    return (walk.number(node.value), walk.number(node.offset), node.width, node.stride)


def _concat(walk: _Walk, node: Any) -> tuple[Any, ...]:
    return tuple(map(walk.number, node.parts))


def _choice(walk: _Walk, node: Any) -> tuple[Any, ...]:
    return (walk.number(node.test), *((x, walk.number(value)) for x, value in node.cases))


def _assign(walk: _Walk, node: Any) -> tuple[Any, ...]:
    return (walk.number(node.lhs), walk.number(node.rhs))


def _switch(walk: _Walk, node: Any) -> tuple[Any, ...]:
    cases = ((patterns, *map(walk.number, inner)) for patterns, inner, _ in node.cases)
    return (walk.number(node.test), *cases)


def _print(walk: _Walk, node: Any) -> tuple[Any, ...]:
    return (walk.new(node), walk.number(node.message))


def _property(walk: _Walk, node: Any) -> tuple[Any, ...]:
    message = () if node.message is None else (walk.number(node.message),)
    return (walk.new(node), node.kind.value, walk.number(node.test), *message)


def _format(walk: _Walk, node: Any) -> tuple[Any, ...]:
    return tuple(x if isinstance(x, str) else (walk.number(x[0]), x[1]) for x in chunks_of(node))


def _domain(walk: _Walk, node: Any) -> tuple[Any, ...]:
    reset = () if node.rst is None else (walk.number(node.rst),)
    return (walk.new(node), walk.number(node.clk), node.clk_edge, bool(node.async_reset), *reset)


def _memory(walk: _Walk, node: Any) -> tuple[Any, ...]:
    shape = Shape.cast(node.shape)
    return (walk.new(node), shape.width, shape.signed, node.depth)


def _memory_ports(walk: _Walk, node: Any) -> tuple[Any, ...]:
    def port(domain: str, values: Sequence[Any], *more: Any) -> tuple[Any, ...]:
        return (_domain_of(walk, node, domain), *map(walk.number, values), *more)

    reads = tuple(
        port(domain, (data, address, enable), transparent)
        for domain, data, address, enable, transparent in read_ports_of(node)
    )
    writes = tuple(
        port(domain, (data, address, enable))
        for domain, data, address, enable in write_ports_of(node)
    )
    return (walk.number(memory_of(node)), reads, writes)


def _fragment(walk: _Walk, node: Any) -> tuple[Any, ...]:
    statements = tuple(
        (_domain_of(walk, node, domain), *map(walk.number, inner))
        for domain, inner in node.statements.items()
    )
    return (statements, *(walk.number(inner) for inner, *_ in node.subfragments))


def _domain_of(walk: _Walk, fragment: Any, name: str) -> int | str:
    return name if name == "comb" else walk.number(fragment.domains[name])


_FIELDS: Mapping[Any, Callable[[_Walk, Any], tuple[Any, ...]]] = {
    ast.Const: _const,
    ast.Signal: _signal,
    ast.Operator: _operator,
    ast.Slice: _slice,
    ast.Part: _part,
    ast.Concat: _concat,
    ast.SwitchValue: _choice,
    ast.Assign: _assign,
    ast.Switch: _switch,
    ast.Print: _print,
    ast.Property: _property,
    ast.Format: _format,
    ClockDomain: _domain,
    MemoryData: _memory,
    MemoryInstance: _memory_ports,
    RequirePosedge: lambda _walk, _node: (),
    Fragment: _fragment,
}
"""The fields of a node, by its type: all that the netlist depends on."""
