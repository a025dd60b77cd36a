"""Commands that overlap: the ring full of all kinds of them, none waiting for another."""

from bitlane_rtl.abi import BIT_OPS, Lane, Op

from .arena import Arena
from .operators import add_job, layouts
from .session import Session, plural

__all__ = ["check_overlap"]

_ROUNDS, _QUICK_ROUNDS = 32, 16


def check_overlap(session: Session) -> str:
    """Random tensors of all operations, as many as there is room for, in one go without FENCE."""
    random, has = session.random, session.geometry
    arena = Arena(session)
    rounds = _QUICK_ROUNDS if session.quick else _ROUNDS
    for number in range(rounds):
        while True:
            op = Op(random.choice(sorted(BIT_OPS & has.ops)))
            sizes = [lane.bytes for lane in Lane if not op.splits_lanes or lane in has.lanes]
            size = int(random.choice(sizes))
            out = int(random.choice((1, 4))) if op.counts else size
            choices = list(layouts(session, op, size, out))
            name, tensors = choices[random.integers(0, len(choices))]
            places = arena.place(tensors)
            if places is None:
                break
            add_job(session, arena, op, name, places)
        arena.run(together=True)
        session.progress((number + 1) / rounds)
    return f"{plural(arena.done, 'tensor')} by commands that do not wait for each other"
