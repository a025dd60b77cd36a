"""A checked command as the sequencer hands it to the data path. Layouts mostly."""

from typing import Any

from amaranth.hdl import Mux, Value
from amaranth.lib import data

from ..configuration import Configuration
from ..streams.beats import Operation

__all__ = ["CheckedCommand", "Form", "Loops", "Start", "Track", "in_lanes"]


class Start(data.StructLayout):
    """Where one stream begins.

    ``address`` of its first element; ``offset`` of the output's in its beat, 0 if Y is STRIDED,
    and ``place``: that in the input's lanes, see `in_lanes`; ``extent``: bytes of a dense run, less
    one; ``mode``: an `abi.Mode`.
    """

    def __init__(self, configuration: Configuration) -> None:
        super().__init__(
            {
                "address": configuration.address_width,
                "offset": configuration.data_bytes_log2,
                "place": configuration.data_bytes_log2 + 3,
                "extent": configuration.length_bits,
                "mode": 2,
            }
        )


class Form(data.StructLayout):
    """What streams know of a command as long as they walk it.

    ``lane``, ``out_lane``; ``widens``: the latter is wider, and ``ratio``: how often it is doubled
    or halved. ``y_dense``: the loops move the output's offset in its beat. ``searches``: the output
    comes from the search array.
    """

    def __init__(self) -> None:
        super().__init__(
            {"lane": 2, "out_lane": 2, "widens": 1, "ratio": 2, "y_dense": 1, "searches": 1}
        )


class CheckedCommand(data.StructLayout):
    """What each stream and the bit unit need to know of a command.

    ``loops`` in use, less one. ``plain``: there is none but a run, and no stream is STRIDED.
    """

    def __init__(self, configuration: Configuration) -> None:
        start = Start(configuration)
        super().__init__(
            {
                "a": start,
                "b": start,
                "y": start,
                "form": Form(),
                "loops": 3,
                "plain": 1,
                "operation": Operation,
                "reads_b": 1,
            }
        )


class Track(data.StructLayout):
    """One stream's way through the loops: what to add to its address when a loop goes on.

    ``stride`` is for the elements of a STRIDED run, ``jumps[k - 1]`` for loop ``k``: signed bytes,
    modulo the address width.
    """

    def __init__(self, address_width: int, loops: int) -> None:
        super().__init__(
            {"stride": address_width, "jumps": data.ArrayLayout(address_width, loops - 1)}
        )


class Loops(data.StructLayout):
    """Loop registers, steady while any stream walks.

    ``run`` and ``counts[k - 1]`` are the iterations less two, of a STRIDED run and of loop ``k``,
    with a sign: negative for a single one.
    """

    def __init__(self, configuration: Configuration) -> None:
        width, loops = configuration.address_width, configuration.loops
        super().__init__(
            {
                "run": configuration.length_bits + 1,
                "counts": data.ArrayLayout(configuration.count_bits + 1, loops - 1),
                "a": Track(width, loops),
                "b": Track(width, loops),
                "y": Track(width, loops),
            }
        )


def in_lanes(offset: Value, form: Any) -> Value:
    """An ``offset`` of the output's beat in bytes of the input's, as many times wider or narrower:
    the byte in its beat, and above that the number of the beat."""
    return Mux(form.widens, offset >> form.ratio, (offset << form.ratio)[: len(offset) + 3])
