"""The signature of the memory's settings. No behaviour."""

from amaranth.lib import wiring
from amaranth.lib.wiring import Out

__all__ = ["MemoryControl"]


class MemoryControl(wiring.Signature):
    """Settings of the memory, seen from whoever sets them. All may change at any time.

    Members
    -------
    latency : ``Out(8)``
        Cycles that R and B come later than in a memory without waits. Applies to bursts accepted,
        or completed, from then on.
    stall_ar, stall_r, stall_aw, stall_w, stall_b : ``Out(9)``
        Chance in 256 that the channel does nothing in a cycle; from 256 on it never does anything.
        A valid that has risen stays.
    seed, seed_load : ``Out(32)``, ``Out(1)``
        While ``seed_load`` is high, the random stalls start again from ``seed``.
    error_read, error_write : ``Out(1)``
        Whether beats in the error range are answered ``error_response``. Those of a write are not
        stored, and its burst is answered with an error.
    error_first, error_last : ``Out(address_width)``
        First and last byte of the error range; it takes whole beats.
    error_response : ``Out(2)``
        A ``Response``.
    hang_read, hang_write : ``Out(2)``
        A ``Hang``.
    """

    def __init__(self, address_width: int) -> None:
        super().__init__(
            {
                "latency": Out(8),
                "stall_ar": Out(9),
                "stall_r": Out(9),
                "stall_aw": Out(9),
                "stall_w": Out(9),
                "stall_b": Out(9),
                "seed": Out(32),
                "seed_load": Out(1),
                "error_read": Out(1),
                "error_write": Out(1),
                "error_first": Out(address_width),
                "error_last": Out(address_width),
                "error_response": Out(2),
                "hang_read": Out(2),
                "hang_write": Out(2),
            }
        )
