"""The layouts of a checked command, which control passes to the data path, and of its fault.

A command has two parts. `CheckedCommand` is the payload of a stream: it is short, and each unit
copies its part when the command starts. `LoopRegisters` are beside the stream: they are 484 bits
in full-64, all streams step through the loops together, and a FIFO of commands would hold them
several times. The sequencer therefore holds them unchanged until the last stream has walked them.
"""

from typing import Any

from amaranth.hdl import Mux, Value
from amaranth.lib import data

from . import abi
from .configuration import Configuration
from .streams import Operation

__all__ = [
    "STREAMS",
    "CheckedCommand",
    "FaultReport",
    "LoopRegisters",
    "StreamFlags",
    "StreamFormat",
    "StreamStart",
    "Strides",
    "in_lanes",
]

STREAMS = tuple(name.lower() for name in abi.STREAMS)
"""Names of the members of a layout for the streams A, Y and B."""


class StreamStart(data.StructLayout):
    """The beginning of one stream.

    ``address``: address of its first element. ``offset``: offset in bytes of the output's first
    element in its beat; 0 if Y is STRIDED. ``lane_offset``: the same offset in the input's lanes,
    see `in_lanes`. ``extent``: bytes of a dense run, less one. ``mode``: an `abi.Mode`.
    """

    def __init__(self, configuration: Configuration) -> None:
        super().__init__(
            {
                "address": configuration.address_width,
                "offset": configuration.data_bytes_log2,
                "lane_offset": configuration.data_bytes_log2 + 3,
                "extent": configuration.length_bits,
                "mode": 2,
            }
        )


class StreamFlags(data.StructLayout):
    """One bit for each stream."""

    def __init__(self) -> None:
        super().__init__(dict.fromkeys(STREAMS, 1))


class StreamFormat(data.StructLayout):
    """The format of a command, which is constant while its streams walk.

    ``lane``, ``out_lane``: `abi.Lane` of A and B, and of Y. ``widens``: ``out_lane`` is wider.
    ``ratio``: log2 of the wider over the narrower. ``y_dense``: the loops move the output's offset
    in its beat. ``searches``: the output comes from the search array.
    """

    def __init__(self) -> None:
        super().__init__(
            {"lane": 2, "out_lane": 2, "widens": 1, "ratio": 2, "y_dense": 1, "searches": 1}
        )


class CheckedCommand(data.StructLayout):
    """The part of a command that travels: starts of the streams, format and operation.

    ``loops``: loops in use, less one. ``plain``: the run is the only loop, and no stream is
    STRIDED.
    """

    def __init__(self, configuration: Configuration) -> None:
        start = StreamStart(configuration)
        super().__init__(
            {
                **dict.fromkeys(STREAMS, start),
                "form": StreamFormat(),
                "loops": 3,
                "plain": 1,
                "operation": Operation,
                "reads_b": 1,
            }
        )


class FaultReport(data.StructLayout):
    """The cause of a fault: ``code``: an `abi.Status`; ``port``: an `abi.Port`; ``address`` of the
    burst that failed, undefined if ``port`` is NONE."""

    def __init__(self, configuration: Configuration) -> None:
        super().__init__({"code": 8, "port": 2, "address": configuration.address_width})


class Strides(data.StructLayout):
    """The strides of one stream: signed bytes to add to its address, modulo the address width.

    ``stride``: after each element of a STRIDED run. ``jumps[k - 1]``: after each iteration of loop
    ``k``.
    """

    def __init__(self, address_width: int, loops: int) -> None:
        super().__init__(
            {"stride": address_width, "jumps": data.ArrayLayout(address_width, loops - 1)}
        )


class LoopRegisters(data.StructLayout):
    """The loops of a command, constant while any stream walks them.

    ``run``: iterations of a STRIDED run, less two. ``counts[k - 1]``: iterations of loop ``k``,
    less two. Both are signed: -1 for a single iteration.
    """

    def __init__(self, configuration: Configuration) -> None:
        width, loops = configuration.address_width, configuration.loops
        super().__init__(
            {
                "run": configuration.length_bits + 1,
                "counts": data.ArrayLayout(configuration.count_bits + 1, loops - 1),
                **dict.fromkeys(STREAMS, Strides(width, loops)),
            }
        )


def in_lanes(offset: Value, form: Any) -> Value:
    """Convert ``offset`` from bytes of the output's beat to bytes of the input's lanes.

    The low bits of the result are the byte in its beat, the bits above are the beat's number.
    """
    return Mux(form.widens, offset >> form.ratio, (offset << form.ratio)[: len(offset) + 3])
