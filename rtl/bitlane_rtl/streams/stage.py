"""The types of buffers between two units; `datapath.stages` selects them."""

from collections.abc import Callable

from amaranth.hdl import ShapeLike

from .queue import ForwardRegister, Hold, Queue, Skid, Slack, Wire
from .twin import Twin

__all__ = ["Stage", "StreamBuffer"]

StreamBuffer = Wire | ForwardRegister | Hold | Skid | Slack | Queue | Twin
"""Accepts payloads at ``i``, and emits the same at ``o``."""

Stage = Callable[[ShapeLike], StreamBuffer]
"""Returns a new buffer for payloads of a shape."""
