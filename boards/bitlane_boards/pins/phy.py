"""A circuit at the pins of RGMII with a gigabit PHY at the other end, in simulated time."""

import ctypes
import math
from collections.abc import Mapping
from enum import IntEnum
from pathlib import Path
from typing import NamedTuple

from bitlane_rtl.abi import SPEEDS
from cppsim.build import Signatures
from cppsim.errors import SimulationError

from .model import NUMBER, POINTER, SIZE, Native, PinModel, load
from .rgmii import DOMAINS, INPUT_PINS, OUTPUT_PINS, edge_port

_SOURCE = Path(__file__).with_name("phy.cc")
_SIGNATURES: Signatures = {
    "phy_create": (POINTER, [POINTER, POINTER]),
    "phy_destroy": (None, [POINTER]),
    "phy_send": (None, [POINTER, ctypes.c_char_p, SIZE]),
    "phy_set_status": (None, [POINTER, ctypes.c_uint8]),
    "phy_unsent": (NUMBER, [POINTER]),
    "phy_now": (NUMBER, [POINTER]),
    "phy_edges": (NUMBER, [POINTER, ctypes.c_int]),
    "phy_illegal": (NUMBER, [POINTER]),
    "phy_front": (SIZE, [POINTER, POINTER]),
    "phy_take": (None, [POINTER, POINTER]),
    "phy_run": (ctypes.c_int, [POINTER, NUMBER, NUMBER, NUMBER]),
}

LINE_HZ = 125e6
CLOCK_ERROR = 100e-6
"""The difference between the PHY's clock and the circuit's; twice what IEEE 802.3 allows each."""

_FEMTOSECONDS = 1e15


class LineFrame(NamedTuple):
    """A frame from the destination address to the FCS.

    ``seconds`` is the simulated time of its first byte of preamble; ``sent``: the circuit sent it.
    """

    seconds: float
    sent: bool
    frame: bytes


class _Stop(IntEnum):
    """Why a run ended."""

    BROKEN = -1
    TIME = 0
    RECEIVED = 1
    QUIET = 2


_Edges, _Lines = (ctypes.c_void_p * len(DOMAINS), ctypes.c_void_p * len(INPUT_PINS))


class _Model(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("model", "chips", "run_until", "run_chips")),
        ("port", ctypes.c_size_t),
        ("edges", _Edges),
        ("into", _Lines),
        ("out", _Lines),
        ("clock", ctypes.c_void_p * 2),
        ("busy", ctypes.c_void_p),
    )


class PhySimulation:
    """Clocks ``model``, which has the ports of `RgmiiPins`, and ``busy``, 1 while it has work.

    The time stands still between the calls; none of them calls Python in a cycle.

    Parameters
    ----------
    model
        The circuit. The simulation then owns it.
    clock_hz
        The clock of the domain ``sync``.

    Raises ``SimulationError`` if a port is missing, if there is no C++ compiler, and from every
    member except ``close`` after ``close``.
    """

    def __init__(self, model: PinModel, clock_hz: float) -> None:
        self.model = model
        entry, other = model.entry(), model.entry_of_other_clocks()
        ports = entry.addresses
        wanted = (*INPUT_PINS, *OUTPUT_PINS, *map(edge_port, DOMAINS), "busy")
        missing = [name for name in wanted if name not in ports]
        if missing:
            raise SimulationError(f"{model.description}: no pin {missing[0]!r}")
        description = _Model(
            model=other.model,
            chips=entry.model,
            run_until=other.run_until,
            run_chips=entry.run_until,
            port=entry.numbers["busy"],
            edges=_Edges(*(ports[edge_port(domain)] for domain in DOMAINS)),
            into=_Lines(*_addresses(ports, INPUT_PINS)),
            out=_Lines(*_addresses(ports, OUTPUT_PINS[: len(INPUT_PINS)])),
            clock=(ctypes.c_void_p * 2)(*_addresses(ports, OUTPUT_PINS[len(INPUT_PINS) :])),
            busy=ports["busy"],
        )
        rates = {"rx": LINE_HZ / (1 + CLOCK_ERROR), "tx": LINE_HZ, "sync": clock_hz}
        periods = (ctypes.c_uint64 * len(DOMAINS))(
            *(round(_FEMTOSECONDS / rates[domain]) for domain in DOMAINS)
        )
        library, of = load(_SOURCE, _SIGNATURES), (ctypes.byref(description), periods)
        self._phy = Native(library, "phy", "the simulation is closed", *of)

    @property
    def seconds(self) -> float:
        """Simulated time since power-on."""
        return int(self._phy("now")) / _FEMTOSECONDS

    @property
    def unsent(self) -> int:
        """Bytes of frames that ``send`` took and that have not gone out."""
        return int(self._phy("unsent"))

    @property
    def illegal(self) -> int:
        """Frames of the circuit that a PHY or a MAC would not accept; they are dropped."""
        return int(self._phy("illegal"))

    def edges(self, domain: str) -> int:
        """Clock edges of ``domain`` since power-on."""
        return int(self._phy("edges", DOMAINS.index(domain)))

    def send(self, frame: bytes) -> None:
        """Queue a frame with its FCS; frames go out with the least gap while time passes."""
        self._phy("send", frame, len(frame))

    def report(self, *, up: bool = True, mbits: int = 1000, full_duplex: bool = True) -> None:
        """Report this status between frames from now on, as a PHY that has negotiated it.

        ``mbits``: 10, 100 or 1000. Frames are a gigabit's all the same.
        """
        self._phy("set_status", up | SPEEDS.index(mbits) << 1 | full_duplex << 3)

    def frames(self) -> list[LineFrame]:
        """Return the frames that ended on the line since the last call, in both directions."""
        found = []
        about = (ctypes.c_uint64 * 2)()
        while size := self._phy("front", about):
            content = ctypes.create_string_buffer(size)
            self._phy("take", content)
            found.append(LineFrame(about[0] / _FEMTOSECONDS, bool(about[1]), content.raw))
        return found

    def run(self, seconds: float) -> None:
        """Run for simulated ``seconds``. Raises ``SimulationError`` if a rule breaks."""
        self._run(seconds)

    def wait(self, seconds: float) -> bool:
        """Run until a frame of the circuit has ended, for ``seconds`` at most."""
        return self._run(seconds, count=1) is _Stop.RECEIVED

    def advance(self, seconds: float, *, quiet: float) -> bool:
        """Run until a frame of the circuit has ended, or nothing has moved for ``quiet`` seconds.

        Returns whether all is quiet.
        """
        return self._run(seconds, count=1, quiet=quiet) is _Stop.QUIET

    def close(self) -> None:
        """Free the model. May be called twice."""
        self._phy.close()
        self.model.close()

    def _run(self, seconds: float, count: int = 0, quiet: float = 0) -> _Stop:
        # Rounded up, or the last part of a femtosecond before a deadline would never pass.
        time, rest = (math.ceil(each * _FEMTOSECONDS) for each in (seconds, quiet))
        stop = _Stop(self._phy("run", time, count, rest))
        if stop is _Stop.BROKEN:
            raise self.model.trouble()
        return stop


def _addresses(ports: Mapping[str, int], names: list[str]) -> list[int]:
    return [ports[name] for name in names]
