"""Copies of every length and alignment, with guard bytes around them."""

from typing import Final

from bitlane_rtl.abi import BIT_OPS, Op

from .arena import Arena, Tensor
from .session import Session, plural

__all__ = ["check_dma"]

_BY_SIMPLICITY: Final = (Op.COPY, Op.NOT, Op.XOR, Op.OR, Op.AND, Op.XNOR, Op.NOR, Op.NAND)


def check_dma(session: Session) -> str:
    """Runs from every byte of a beat to every byte of one, of up to five beats."""
    has = session.geometry
    op = next((op for op in (*_BY_SIMPLICITY, *sorted(BIT_OPS)) if op in has.ops), Op.COPY)
    lanes = sorted(lane.bytes for lane in has.lanes)
    item = lanes[0] if op.splits_lanes else 1
    out = 1 if op.counts else item
    beat = has.data_bytes
    step = 3 if session.quick else 1
    offsets = [(a, y) for a in range(0, beat, step) for y in range(0, beat, step)]
    if beat > 16 and not session.quick:
        # As many as 16 x 16, spread over the beat.
        chosen = session.random.choice(len(offsets), 256, replace=False)
        offsets = [offsets[index] for index in sorted(chosen.tolist())]
    arena, lengths = Arena(session), set()
    for number, (from_a, to_y) in enumerate(offsets):
        count = int(session.random.integers(1, 5 * beat // item + 1))
        tensors = [
            Tensor((count,), (item,), item, 64, from_a - from_a % item),
            *[Tensor((count,), (item,), item, 64, beat - 1 - from_a)] * op.reads_b,
            Tensor((count,), (out,), out, 64, to_y - to_y % out),
        ]
        if (places := arena.make_room(tensors)) is None:
            continue
        lengths.add(count)
        b = places[1] if op.reads_b else None
        name = f"{op.name} of {count} elements from byte {from_a} to byte {to_y} of a beat"
        arena.add(op, places[0], b, places[-1], name)
        session.progress((number + 1) / len(offsets))
    arena.run()
    return (
        f"{plural(arena.done, 'run')} of {min(lengths)} to {max(lengths)} elements at all offsets,"
        f" by {op.name}; guard bytes intact"
    )
