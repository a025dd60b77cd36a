"""The base class of stream buffers: components that pass payloads on unchanged and in order."""

from abc import abstractmethod
from collections.abc import Callable

from amaranth.hdl import Module, ShapeLike
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Stage", "StreamBuffer"]


class StreamBuffer(wiring.Component):
    """Base class of the buffers between two units; `datapath.stages` selects them.

    A buffer never loses, doubles, reorders or alters a payload. No combinational path leads from
    ``o.ready`` to ``i.ready``, except through `Wire` and `ForwardRegister`.

    Parameters
    ----------
    shape
        Shape of a payload; may be a data layout.
    members
        Ports besides ``i`` and ``o``.

    Members
    -------
    i
        Payloads to store.
    o
        The payloads, in order.
    """

    def __init__(self, shape: ShapeLike, **members: wiring.Member) -> None:
        self._shape = shape
        payloads = stream.Signature(shape)
        super().__init__({"i": In(payloads), "o": Out(payloads), **members})

    @abstractmethod
    def elaborate(self, platform: object) -> Module:
        """Return the circuit of the buffer."""


Stage = Callable[[ShapeLike], StreamBuffer]
"""Returns a new buffer for payloads of a shape."""
