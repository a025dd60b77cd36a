"""Cut a design into words: what can be done in parts of so many bits is. Changes nothing else."""

from collections.abc import Iterator
from dataclasses import replace

from .design import Design, Node, Op

__all__ = ["narrow"]

_POINTWISE = frozenset({Op.AND, Op.OR, Op.XOR, Op.NOT})
_WHOLE = {Op.ALL: Op.ALL, Op.ANY: Op.ANY, Op.ODD: Op.ODD, Op.EQUAL: Op.ALL, Op.UNEQUAL: Op.ANY}
"""How the answers for the parts make the answer for the whole."""


def narrow(design: Design, width: int) -> None:
    """Split operations wider than ``width`` bits, except those with carries, orders and shifts."""
    values = [bit for port in design.ports for bit in port.bits]
    values += [bit for node in design.nodes for bit in node.result]
    values += [bit for register in design.registers for bit in register.result]
    values += [bit for x in design.memories for read in x.reads for bit in read.result]
    free = iter(range(1 + max(values, default=1), 1 << 62))
    design.nodes = [part for node in design.nodes for part in _split(node, width, free)]


def _split(node: Node, width: int, free: Iterator[int]) -> Iterator[Node]:
    if max(len(node.result), *(len(bits) for bits in node.operands)) <= width:
        yield node
    elif node.op in _POINTWISE or node.op is Op.MUX:
        for part in _parts(len(node.result), width):
            operands = tuple(
                bits if node.op is Op.MUX and number % 2 else bits[part]
                for number, bits in enumerate(node.operands)
            )
            yield replace(node, operands=operands, result=node.result[part])
    elif node.op in _WHOLE:
        answers: list[int] = []
        for part in _parts(len(node.operands[0]), width):
            operands = tuple(bits[part] for bits in node.operands)
            if len(operands) == 1 and len(operands[0]) == 1:
                answers += operands[0]
            else:
                answers.append(next(free))
                yield Node(node.op, operands, (answers[-1],))
        yield Node(_WHOLE[node.op], (tuple(answers),), node.result)
    else:
        yield node


def _parts(size: int, width: int) -> Iterator[slice]:
    return (slice(low, min(low + width, size)) for low in range(0, size, width))
