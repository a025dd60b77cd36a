"""What can stand between two units. Which of them does is said in `datapath.stages`."""

from collections.abc import Callable

from amaranth.hdl import ShapeLike

from .queue import ForwardRegister, Hold, Queue, Skid, Slack, Wire
from .twin import Twin

__all__ = ["Stage", "StreamBuffer"]

StreamBuffer = Wire | ForwardRegister | Hold | Skid | Slack | Queue | Twin
"""Takes payloads in at ``i``, and gives the same out at ``o``."""

Stage = Callable[[ShapeLike], StreamBuffer]
"""Makes a buffer for payloads of a shape."""
