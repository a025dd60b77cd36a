"""What can stand between two units. Which of them does is said in `datapath.stages`."""

from collections.abc import Callable

from amaranth.hdl import ShapeLike

from .queue import Hold, Queue, Register, Skid, Slack, Wire
from .twin import Twin

__all__ = ["Buffer", "Stage"]

Buffer = Wire | Register | Hold | Skid | Slack | Queue | Twin
"""Takes payloads in at ``i``, and gives the same out at ``o``."""

Stage = Callable[[ShapeLike], Buffer]
"""Makes a buffer for payloads of a shape."""
