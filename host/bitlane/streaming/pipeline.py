"""Work in pieces: while one is computed, the next one is sent and the one before comes back.

Moves bytes and runs commands; knows nothing of what they mean.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..driver.commands import Command
from ..driver.driver import Driver
from ..driver.queue import Read, Write

Key = TypeVar("Key")


@dataclass(frozen=True, slots=True)
class Piece(Generic[Key]):
    """What is to be done at a time. ``key``: what its results are of."""

    key: Key
    writes: list[Write]
    """What it needs that is not on the device."""
    commands: Iterable[Command]
    result: Read


def results(
    driver: Driver, pieces: Iterable[Piece[Key]], *, overlapped: bool
) -> Iterator[tuple[Key, NDArray[np.uint8]]]:
    """The keys and the results of ``pieces``, in their order.

    With ``overlapped`` a piece is written while the one before is computed: they must share neither
    what they write nor their results.
    """
    if not overlapped:
        for piece in pieces:
            driver.run(piece.commands, before=piece.writes)
            yield piece.key, driver.read(*piece.result)
        return
    computed = running = None
    for sent in chain(pieces, (None, None)):
        data = driver.run(
            running.commands if running else (),
            meanwhile=sent.writes if sent else (),
            reads=(computed.result,) if computed else (),
        )
        if computed:
            yield computed.key, data[0]
        computed, running = running, sent
