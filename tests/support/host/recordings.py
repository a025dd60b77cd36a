"""Recordings drawn as text, one character per cycle."""

from collections.abc import Mapping

import numpy as np

from bitlane.links.recording import Recording

__all__ = ["drawn"]

_CHANNELS = ("aw", "w", "b", "ar", "r", "ar_b", "r_b")


def drawn(
    asked: Mapping[str, list[tuple[int, int]]], *, cut: bool = False, **lines: str
) -> Recording:
    """Return a recording with a cycle for each character of ``lines``, and an entry per cycle.

    The letters of a channel: ``v`` valid alone, ``r`` ready alone, ``x`` both, ``.`` none. In
    ``doorbell``, ``started``, ``retired`` and ``faulted``, ``x`` marks the event. ``asked`` has
    address and beats of each handshake of an address channel, in order. Lines left out stay idle.
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
