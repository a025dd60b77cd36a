"""The layouts of the streams between stages, and the buffers between them."""

from .buffer import Stage, StreamBuffer
from .credit import Credit
from .fifo import Fifo
from .register_slices import (
    ForwardRegister,
    HalfRateRegister,
    PingPongBuffer,
    ReverseRegister,
    SkidBuffer,
    Wire,
)
from .two_write_fifo import TwoWriteFifo

__all__ = [
    "Credit",
    "Fifo",
    "ForwardRegister",
    "HalfRateRegister",
    "PingPongBuffer",
    "ReverseRegister",
    "SkidBuffer",
    "Stage",
    "StreamBuffer",
    "TwoWriteFifo",
    "Wire",
]
