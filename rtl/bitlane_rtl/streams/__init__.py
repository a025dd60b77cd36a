"""The layouts of the streams between stages, and the buffers between them."""

from .beats import Edge, Operands, Operation, Result, ToWrite
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
    "Edge",
    "Fifo",
    "ForwardRegister",
    "HalfRateRegister",
    "Operands",
    "Operation",
    "PingPongBuffer",
    "Result",
    "ReverseRegister",
    "SkidBuffer",
    "Stage",
    "StreamBuffer",
    "ToWrite",
    "TwoWriteFifo",
    "Wire",
]
