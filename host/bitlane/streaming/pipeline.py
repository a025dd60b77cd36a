"""Double buffering: while a piece is computed, the next one is sent and the last one is read.

Moves bytes and runs commands; does not interpret them.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..driver import Command, Driver, Read, Write

Key = TypeVar("Key")


@dataclass(frozen=True, slots=True)
class Piece(Generic[Key]):
    """A unit of work. ``key`` identifies its results."""

    key: Key
    writes: list[Write]
    """Data that it needs and the device does not hold."""
    commands: Iterable[Command]
    result: Read


def results(
    driver: Driver, pieces: Iterable[Piece[Key]], *, overlapped: bool
) -> Iterator[tuple[Key, NDArray[np.uint8]]]:
    """Yield the keys and the results of ``pieces``, in their order.

    With ``overlapped`` a piece is written while the one before is computed: they must share no
    memory, neither for operands nor for results.
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
