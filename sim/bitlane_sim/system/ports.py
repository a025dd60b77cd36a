"""The ports of the simulated system: their names, and the meaning of their values.

Data only. Whoever opens a simulator needs this and, as long as the cache knows the circuit, no
Amaranth; so there is none here.
"""

from enum import IntEnum

from cppsim import StorageAccess, StoragePort

AXI_CHANNELS = ("aw", "w", "b", "ar", "r", "ar_b", "r_b")
"""Channels of the memory; ``ar_b`` and ``r_b`` only with two read ports."""

MEMORY_CHANNELS = ("ar", "r", "aw", "w", "b")
"""Channels of the memory whose stalls are set. Both read ports have the same."""

CHANNELS = (*AXI_CHANNELS, "doorbell")
"""Channels that are measured."""

STORAGE_BUFFER = "memory"
"""Name of the buffer that the storage ports of a system use."""

EVENTS = ("doorbell", "started", "retired", "faulted")
"""Events that a recorder stores beside the handshakes."""

EVENTS_BIT = 2 * len(AXI_CHANNELS)
"""First bit of the events in the flags of a record."""

RECORD = {
    "cycle": 64,
    "flags": 32,
    "aw_address": 32,
    "ar_address": 32,
    "ar_b_address": 32,
    "aw_beats": 16,
    "ar_beats": 16,
    "ar_b_beats": 16,
    "unused": 16,
}
"""Bits of each field of a record, the lowest first.

``flags`` has valid and ready of each of `AXI_CHANNELS`, in turn, then `EVENTS`. They hold from
``cycle`` on until that of the next record; the other fields, in that cycle alone.
"""

RECORD_BYTES = sum(RECORD.values()) // 8

RECORD_BUFFER = "record"
"""Name of the buffer for records, and of the ports of the recorder."""


class Response(IntEnum):
    """AXI4 responses (A3.4.4)."""

    OKAY = 0
    SLVERR = 2
    DECERR = 3


class Hang(IntEnum):
    """The way in which a channel pair of the memory hangs."""

    NONE = 0
    NO_ANSWER = 1
    """Requests and data are accepted; no answer begins until the hang is over."""
    NO_ACCEPT = 2
    """Nothing more is accepted; what was accepted before is answered."""


class Where(IntEnum):
    """The part of the bus in which a rule was broken."""

    WRITE = 0
    READ_A = 1
    READ_B = 2


class Violation(IntEnum):
    """The rule that was broken. Section numbers refer to ARM IHI 0022."""

    NONE = 0
    AW_CHANGED = 1
    """AWVALID fell, or its payload changed, before AWREADY (A3.2.1)."""
    W_CHANGED = 2
    B_CHANGED = 3
    AR_CHANGED = 4
    R_CHANGED = 5
    BURST = 6
    """A burst that is not of type INCR, or not of whole beats."""
    ALIGNMENT = 7
    """A burst whose address is not a multiple of the beat."""
    BOUNDARY = 8
    """A burst that crosses a block of ``abi.BEATS_PER_BLOCK`` beats, and so may cross 4 KiB."""
    WLAST = 9
    """WLAST is not on the last beat of its burst (A3.4.1)."""
    EARLY_B = 10
    """A write response before all of its burst was accepted (A3.3.1)."""
    RLAST = 11
    """RLAST is not on the last beat of its burst."""
    EARLY_R = 12
    """Read data without a request."""


def measured_channels(*, two: bool) -> list[str]:
    """Return the members of ``CHANNELS`` that exist with one or two read ports."""
    return [name for name in CHANNELS if two or not name.endswith("_b")]


def storage_ports(*, two: bool) -> list[StoragePort]:
    """Return the storage ports of the RAM that holds the memory."""
    reads = ("read", "read_b") if two else ("read",)
    return [
        *(StoragePort.of_member(name, STORAGE_BUFFER, StorageAccess.READ) for name in reads),
        StoragePort.of_member("write", STORAGE_BUFFER, StorageAccess.WRITE),
    ]


def record_port() -> StoragePort:
    """Return the storage port of the RAM that a recorder writes."""
    return StoragePort.of_member(RECORD_BUFFER, RECORD_BUFFER, StorageAccess.WRITE)


def broken_rule(violation: int, where: int, cycle: int) -> str:
    """Return the message that a rule was broken, by the values of the system's ports."""
    rule, part = Violation(violation).name, Where(where).name
    return f"bus rule {rule} was broken on {part} in cycle {cycle}"
