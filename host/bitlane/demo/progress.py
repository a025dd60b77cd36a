"""A progress bar on a terminal, and nothing anywhere else."""

import sys
from collections.abc import Collection, Iterator
from typing import TypeVar

__all__ = ["progress"]

Item = TypeVar("Item")


def progress(items: Collection[Item], name: str) -> Iterator[Item]:
    """Yield ``items`` while a bar called ``name`` on standard error, if that is a terminal, moves
    and goes away at the end."""
    if not sys.stderr.isatty():
        yield from items
        return
    from tqdm import tqdm

    yield from tqdm(items, desc=f"  {name}", leave=False, file=sys.stderr)
