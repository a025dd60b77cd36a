"""The circuits whose area and clock are measured, what each comprises, and its goals."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from amaranth.lib import wiring

from bitlane_rtl.abi import BIT_OPS, COUNT_OPS, LOGIC_OPS, Op
from bitlane_rtl.configuration import Configuration
from bitlane_rtl.configurations import copy, full, one_port, small
from bitlane_rtl.core import Core
from bitlane_rtl.ethernet import BoardAddresses, NetworkBridge, UdpStack
from bitlane_rtl.search import Unit
from bitlane_rtl.stream_unit import StreamConfiguration, StreamCore

from .chips import CHIPS
from .copier import Copier
from .peers import DMA, STREAM

__all__ = ["CONFIGURED", "DESIGNS", "ON_REQUEST", "Design"]


@dataclass(frozen=True, slots=True)
class Design:
    """A circuit to place.

    ``family``: a key of `CHIPS`; ``scope`` says in words what it comprises; ``most_lut4`` and
    ``least_mhz``: the goals, None where the contract has none; ``beside``: the kind of peers that
    are comparable, if any; ``clocks``: its clock domains, of which the slowest has to meet the
    goal.
    """

    name: str
    family: str
    width: int
    scope: str
    build: Callable[[], wiring.Component]
    most_lut4: int | None = None
    least_mhz: float | None = None
    beside: str = ""
    clocks: tuple[str, ...] = ("sync",)

    @property
    def has_goal(self) -> bool:
        return self.most_lut4 is not None or self.least_mhz is not None


def _stream(width: int, ops: frozenset[Op], *, reduces: bool | None = None) -> StreamCore:
    return StreamCore(StreamConfiguration(data_width=width, ops=ops, reduces=reduces))


_KINDS: Mapping[str, tuple[str, Callable[[int, bool], wiring.Component]]] = {
    "copy-{}": (
        (
            "NOT, one reader, one loop, dense runs from and to any byte; AXI4 manager, descriptor"
            " port, status, bus errors, time-outs and recovery; no ring, no registers (as axi_cdma)"
        ),
        lambda width, block_ram: Copier(copy(width, block_ram=block_ram)),
    ),
    "copy-{}-deep": (
        "as copy, with a FIFO of 64 beats, which 30 cycles of latency need",
        lambda width, block_ram: Copier(replace(copy(width, block_ram=block_ram), fifo_beats=64)),
    ),
    "copy-{}-core": (
        "as copy, with command ring, checks of each command, registers, counters and AXI4-Lite",
        lambda width, block_ram: Core(copy(width, block_ram=block_ram)),
    ),
    "small-{}": (
        (
            "as the HX8K board's engine, behind AXI4 and with 32 address bits: logic and count, all"
            " modes, two readers, two loops; command ring, registers, AXI4-Lite"
        ),
        lambda width, block_ram: Core(small(width, block_ram=block_ram)),
    ),
    "full-{}": (
        (
            "all operators, lanes and modes, two readers, four loops; command ring, registers,"
            " counters, two AXI4 managers, AXI4-Lite"
        ),
        lambda width, block_ram: Core(full(width, block_ram=block_ram)),
    ),
    "one-port-{}": (
        "as full, with one read manager, which A and B share",
        lambda width, block_ram: Core(one_port(width, block_ram=block_ram)),
    ),
    "stream-logic-{}": (
        "the bit unit between AXI4-Stream buses: packets, skid buffers, flags; logic alone",
        lambda width, block_ram: _stream(width, LOGIC_OPS),
    ),
    "stream-count-{}": (
        "as stream-logic, with counts in all lanes that narrow, without reductions",
        lambda width, block_ram: _stream(width, LOGIC_OPS | COUNT_OPS, reduces=False),
    ),
    "stream-{}": (
        "as stream-logic, with all operators and lanes, and one sum or truth value a packet",
        lambda width, block_ram: _stream(width, BIT_OPS),
    ),
    "unit-{}": (
        "of a search array: W bits of a row, compared with a query in each cycle",
        lambda width, block_ram: Unit(width),
    ),
}
"""By name: what it comprises, and how it is made of a width and of whether FIFOs are block RAM."""


_BESIDE = {"copy-{}": DMA, "stream-logic-{}": STREAM, "stream-count-{}": STREAM}
"""Kinds of the peers of these designs."""


def _design(
    kind: str,
    width: int,
    family: str,
    most_lut4: int | None = None,
    least_mhz: float | None = None,
) -> Design:
    scope, make = _KINDS[kind]

    def build() -> wiring.Component:
        return make(width, CHIPS[family].block_ram)

    name = kind.format(width)
    return Design(name, family, width, scope, build, most_lut4, least_mhz, _BESIDE.get(kind, ""))


_ETHERNET = Design(
    "ethernet",
    "ecp5",
    8,
    (
        "UDP on a gigabit PHY, behind its DDR pins: MAC, ARP, echo, IPv4 and UDP with checksums,"
        " FIFOs of 4 KiB between the clocks of the line and the user's, which is 32 bits wide"
    ),
    lambda: UdpStack(BoardAddresses()),
    most_lut4=1400,
    least_mhz=130.0,
    clocks=("sync", "rx", "tx"),
)

_NETWORK = Design(
    "network",
    "ecp5",
    8,
    (
        "the network link of a board: UDP as in `ethernet`, sessions, a buffer of 32 KiB, the"
        " executor of the frames, and the mover of their data to and from memory"
    ),
    lambda: NetworkBridge(
        Configuration(data_width=32, address_width=17, memory_bytes=1 << 17),
        BoardAddresses(),
        100_000_000,
    ),
    most_lut4=2250,
    least_mhz=125.0,
    clocks=("sync", "rx", "tx"),
)

DESIGNS = (
    _design("copy-{}", 32, "ecp5", most_lut4=480, least_mhz=155.0),
    _design("copy-{}-deep", 32, "ecp5"),
    _design("copy-{}-core", 32, "ecp5"),
    _design("copy-{}", 64, "ecp5"),
    _design("copy-{}-core", 64, "ecp5"),
    _design("full-{}", 64, "ecp5", most_lut4=5300, least_mhz=130.0),
    _design("unit-{}", 512, "ecp5", least_mhz=140.0),
    _design("stream-logic-{}", 64, "ecp5", most_lut4=350, least_mhz=180.0),
    _design("stream-{}", 64, "ecp5", most_lut4=1550, least_mhz=140.0),
    _design("copy-{}", 32, "ice40"),
    _design("small-{}", 32, "ice40", most_lut4=3000, least_mhz=95.0),
    _design("stream-count-{}", 32, "ice40", most_lut4=600, least_mhz=100.0),
    _design("copy-{}", 32, "gowin"),
    _design("copy-{}-core", 32, "gowin"),
)

CONFIGURED = {
    "copy": "copy-32-core",
    "small": "small-32",
    "full": "full-64",
    "one-port": "one-port-64",
}
"""The designs of the named configurations, which every family has."""

ON_REQUEST = (
    _design("small-{}", 32, "ecp5"),
    _design("one-port-{}", 64, "ecp5"),
    _design("copy-{}-core", 32, "ice40"),
    _design("full-{}", 64, "ice40"),
    _design("one-port-{}", 64, "ice40"),
    _design("small-{}", 32, "gowin"),
    _design("full-{}", 64, "gowin"),
    _design("one-port-{}", 64, "gowin"),
    _design("copy-{}", 128, "ecp5"),
    _design("full-{}", 32, "ecp5"),
    _design("full-{}", 128, "ecp5"),
    _design("full-{}", 32, "ice40"),
    _design("full-{}", 32, "gowin"),
    _design("unit-{}", 512, "ice40"),
    _design("unit-{}", 512, "gowin"),
    _ETHERNET,
    _NETWORK,
)
"""Measured only when named: slow, larger than their chip with the flip-flops around them, or not a
part of the engine."""
