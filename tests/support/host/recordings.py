"""Recordings drawn as text, a character a cycle."""

from collections.abc import Mapping

import numpy as np

from bitlane.links.recording import Recording

__all__ = ["drawn"]

_CHANNELS = ("aw", "w", "b", "ar", "r", "ar_b", "r_b")


def drawn(
    asked: Mapping[str, list[tuple[int, int]]], *, cut: bool = False, **lines: str
) -> Recording:
    """A recording of as many cycles as each of ``lines`` has characters, an entry a cycle.

    A channel's: ``v`` only valid, ``r`` only ready, ``x`` both, ``.`` none. For ``doorbell``,
    ``started``, ``retired`` and ``faulted``: ``x`` where it happens. ``asked`` has address and
    beats of what the address channels take, in their order. What is not given never happens.
    """
    (length,) = {len(line) for line in lines.values()}
    marks = {name: np.array(list(line)) for name, line in lines.items()}
    never = np.full(length, ".")
    flags = {name: marks.get(name, never) for name in _CHANNELS}
    addresses, beats = {}, {}
    for name in ("aw", "ar", "ar_b"):
        addresses[name], beats[name] = (np.zeros(length, np.int64) for _ in range(2))
        for cycle, (address, count) in zip(
            np.flatnonzero(flags[name] == "x"), asked.get(name, []), strict=True
        ):
            addresses[name][cycle], beats[name][cycle] = address, count
    return Recording(
        cycles=np.arange(length),
        end=length,
        cut=cut,
        valid={name: np.isin(line, ["v", "x"]) for name, line in flags.items()},
        ready={name: np.isin(line, ["r", "x"]) for name, line in flags.items()},
        addresses=addresses,
        beats=beats,
        doorbell=marks.get("doorbell", never) == "x",
        started=marks.get("started", never) == "x",
        retired=marks.get("retired", never) == "x",
        faulted=marks.get("faulted", never) == "x",
    )
