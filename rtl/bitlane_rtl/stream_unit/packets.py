"""Layouts of the streams of a stream unit: packets at its ports, and beats on their way through."""

from amaranth.lib import data

from ..stream_configuration import StreamConfiguration
from ..streams import Operands, Operation, Result

__all__ = [
    "InputBeat",
    "JoinedBeat",
    "OutputBeat",
    "PacketControl",
    "PacketFlags",
    "PacketResult",
    "Sampled",
    "SampledBeat",
    "Sideband",
]


class PacketFlags(data.Struct):
    """The faults of a packet up to a beat; on its last beat those of the whole packet."""

    refused: 1
    """The control inputs ask for something that was not built, or contradict each other. All bytes
    of Y are null: TKEEP is 0 in the packet."""
    unequal: 1
    """The packets of A and B differ in length: in TLAST or in TKEEP. Y has the results of the bytes
    that both have, and the rest of the longer packet is dropped."""
    holes: 1
    """TKEEP has a 0 before the last 1 of the packet, or the packet ends within an element. An
    element of which a byte is missing has no result."""
    empty: 1
    """The packet has no byte at all."""


class PacketControl(data.StructLayout):
    """The control inputs, which hold for a whole packet.

    ``op``: an `abi.Op`. ``lane``, ``out_lane``: an `abi.Lane`; ``out_lane`` matters for counts
    alone, and is 8 or 32 bits, or ``lane``, and not wider than ``lane``. ``saturate``,
    ``arithmetic``, ``test``, ``negate``: as in CONTROL of a command record. ``reduction``: a
    `PacketReduction`. A field on which nothing depends has 0 bits.
    """

    def __init__(self, configuration: StreamConfiguration) -> None:
        super().__init__(configuration.control)


class InputBeat(data.StructLayout):
    """A beat of a packet: bit k of ``keep`` is 1 if byte k belongs to it."""

    def __init__(self, data_width: int, user_width: int) -> None:
        super().__init__(
            {"data": data_width, "keep": data_width // 8, "last": 1, "user": user_width}
        )


class OutputBeat(data.StructLayout):
    """A beat of the packet of results, and the flags of the packet so far.

    ``data`` is undefined where ``keep`` is 0.
    """

    def __init__(self, configuration: StreamConfiguration) -> None:
        super().__init__(
            {
                "data": configuration.data_width,
                "keep": configuration.data_bytes,
                "last": 1,
                "user": configuration.user_width,
                "flags": PacketFlags,
            }
        )


class Sampled(data.Struct):
    """The decoded control inputs of a packet.

    ``splits``: an element of which a byte is missing has no result; else each byte has one.
    """

    operation: Operation
    reads_b: 1
    splits: 1
    truth: 1
    refused: 1


class SampledBeat(data.StructLayout):
    """A beat of A, and the operation of its packet."""

    def __init__(self, configuration: StreamConfiguration) -> None:
        super().__init__(
            {
                "beat": InputBeat(configuration.data_width, configuration.user_width),
                "sampled": Sampled,
            }
        )


class Sideband(data.StructLayout):
    """The fields that move with a beat beside the bit unit.

    ``refused``, ``unequal``, ``holes``: the flags, of this beat alone. ``some``: a byte belongs to
    both packets. ``sums``, ``truth``: the packet is reduced, to a truth value; ``negate``: which is
    inverted.
    """

    def __init__(self, configuration: StreamConfiguration) -> None:
        super().__init__(
            {
                "keep": configuration.data_bytes,
                "last": 1,
                "user": configuration.user_width,
                "refused": 1,
                "unequal": 1,
                "holes": 1,
                "some": 1,
                "sums": 1,
                "truth": 1,
                "negate": 1,
            }
        )


class JoinedBeat(data.StructLayout):
    """Both operands for the bit unit, and the fields beside it."""

    def __init__(self, configuration: StreamConfiguration) -> None:
        super().__init__(
            {"operands": Operands(configuration.data_width), "sideband": Sideband(configuration)}
        )


class PacketResult(data.StructLayout):
    """A result of the bit unit, and the fields beside it."""

    def __init__(self, configuration: StreamConfiguration) -> None:
        super().__init__(
            {"result": Result(configuration.data_width), "sideband": Sideband(configuration)}
        )
