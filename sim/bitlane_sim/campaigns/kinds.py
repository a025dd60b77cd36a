"""Kinds of faults: the settings that inject each, and the report that it may cause."""

from dataclasses import dataclass

from bitlane_rtl.abi import Port, Status

from ..system.ports import Hang, Response
from .stimulus import MEMORY_CHANNELS

_A, _B, _Y = (1 << port for port in (Port.READ_A, Port.READ_B, Port.WRITE))

_READS, _DATA = ("ar", "ar_b"), ("r", "r_b")


@dataclass(frozen=True, slots=True)
class FaultKind:
    """A kind of fault: ``settings`` of the harness, for good or, without ``ever``, for one cycle.

    Accesses to the bytes of ``stream`` fail. FAULT may report ``code`` and one of ``ports``, a
    bit mask. A hang must be reported if it begins up to the last handshake on the channels
    ``asks``, and cannot be reported if it begins after the last one on ``answers``.
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
    """Return a hang: ``port`` of the harness; ``more``: channels of answers unless ``asks``."""
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
"""All kinds, in the order of tables; the first is the reset."""
