"""Kinds of faults: what is set for each, and what may be told of it."""

from dataclasses import dataclass

from bitlane_rtl.abi import Port, Status

from ..system.ports import Hang, Response
from .stimulus import MEMORY_CHANNELS

__all__ = ["KINDS", "FaultKind"]

_A, _B, _Y = (1 << port for port in (Port.READ_A, Port.READ_B, Port.WRITE))

_READS, _DATA = ("ar", "ar_b"), ("r", "r_b")


@dataclass(frozen=True, slots=True)
class FaultKind:
    """A kind of fault: ``settings`` of the stand. ``ever``: it lasts; else it is over in a cycle.

    ``stream``: whose bytes answer with an error. ``ports``: bits, of those that may be told with
    ``code``. Silence matters to a job up to the last handshake of ``asks``, and not after that of
    ``answers``, on any channel of each.
    """

    name: str
    settings: dict[str, int]
    stream: str = ""
    code: Status = Status.OK
    ports: int = 0
    ever: bool = True
    asks: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()


def _silence(name: str, port: str, value: int, asks: tuple[str, ...], *more: str) -> FaultKind:
    """``port`` is the stand's; ``more``: channels of answers, if not those that ask."""
    ports = _A | _B if "ar" in asks else _Y
    return FaultKind(
        name, {port: value}, "", Status.TIMEOUT, ports, asks=asks, answers=more or asks
    )


def _errors() -> list[FaultKind]:
    kinds = []
    for response in (Response.SLVERR, Response.DECERR):
        for stream, port in (("A", _A), ("B", _B), ("Y", _Y)):
            way = "write" if stream == "Y" else "read"
            code = Status.WRITE_ERROR if stream == "Y" else Status.READ_ERROR
            settings = {f"memory__error_{way}": 1, "memory__error_response": int(response)}
            for ever in (True, False):
                name = f"{response.name} of {stream}{'' if ever else ', for a cycle'}"
                kinds.append(FaultKind(name, settings, stream, code, port, ever))
    return kinds


def _silences() -> list[FaultKind]:
    read, write = "memory__hang_read", "memory__hang_write"
    one = {name: 1 << bit for bit, name in enumerate(MEMORY_CHANNELS)}
    return [
        _silence("reads NO_ACCEPT", read, Hang.NO_ACCEPT, _READS),
        _silence("reads NO_ANSWER", read, Hang.NO_ANSWER, _READS, *_DATA),
        _silence("writes NO_ACCEPT", write, Hang.NO_ACCEPT, ("aw", "w")),
        _silence("writes NO_ANSWER", write, Hang.NO_ANSWER, ("aw", "w"), "b"),
        _silence("silence of AR", "mute", one["ar"], _READS),
        _silence("silence of R", "mute", one["r"], _READS, *_DATA),
        _silence("silence of AW", "mute", one["aw"], ("aw",)),
        _silence("silence of W", "mute", one["w"], ("w",)),
        _silence("silence of B", "mute", one["b"], ("aw", "w"), "b"),
    ]


KINDS = [FaultKind("reset", {"reset": 1}, ever=False), *_errors(), *_silences()]
"""In the order of tables; the first is the reset."""
