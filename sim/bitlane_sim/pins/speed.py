"""The speed to which a terminal is set: any number of bits a second, where the system has it."""

import fcntl
import struct
import sys
import termios

__all__ = ["set_speed", "speed_of"]

# Linux: struct termios2, whose speeds are numbers. Python knows none but those with names.
_GET, _SET = 0x802C542A, 0x402C542B
_SIZE, _FLAGS, _SPEEDS = 44, 8, 36
_SPEED_MASK, _ANY_SPEED = 0o010017, 0o010000


def speed_of(terminal: int) -> int | None:
    """Bits a second of the open terminal; None if the system does not tell."""
    if not sys.platform.startswith("linux"):
        return int(termios.tcgetattr(terminal)[5])
    state = bytearray(_SIZE)
    try:
        fcntl.ioctl(terminal, _GET, state)
    except OSError:
        return None
    return int(struct.unpack_from("II", state, _SPEEDS)[1])


def set_speed(terminal: int, speed: int) -> None:
    """Set it, where the system can."""
    if not sys.platform.startswith("linux"):
        return
    state = bytearray(_SIZE)
    try:
        fcntl.ioctl(terminal, _GET, state)
        (flags,) = struct.unpack_from("I", state, _FLAGS)
        struct.pack_into("I", state, _FLAGS, flags & ~_SPEED_MASK | _ANY_SPEED)
        struct.pack_into("II", state, _SPEEDS, speed, speed)
        fcntl.ioctl(terminal, _SET, state)
    except OSError:
        return
