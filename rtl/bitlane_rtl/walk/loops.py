"""The nested loops of a command as the sequencer holds them for its walkers. Layouts only."""

from amaranth.lib import data

from ..configuration import Configuration

__all__ = ["Loops", "Track"]


class Track(data.StructLayout):
    """One stream's way through the loops: what to add to its address when a loop advances.

    ``stride`` is for the elements of a STRIDED run, ``jumps[k - 1]`` for loop ``k``: signed bytes,
    modulo the address width.
    """

    def __init__(self, address_width: int, loops: int) -> None:
        super().__init__(
            {"stride": address_width, "jumps": data.ArrayLayout(address_width, loops - 1)}
        )


class Loops(data.StructLayout):
    """Loop registers, shared by all walkers and steady while any of them walks.

    ``run`` and ``counts[k - 1]`` are iterations less one, of a STRIDED run and of loop ``k``; loops
    that the command does not use count as one iteration. ``once[k]`` and ``twice[k]``: whether loop
    ``k``, or for ``k = 0`` the run, has one or two iterations.
    """

    def __init__(self, configuration: Configuration) -> None:
        width, loops = configuration.address_width, configuration.loops
        super().__init__(
            {
                "run": configuration.length_bits,
                "counts": data.ArrayLayout(configuration.count_bits, loops - 1),
                "once": loops,
                "twice": loops,
                "a": Track(width, loops),
                "b": Track(width, loops),
                "y": Track(width, loops),
            }
        )
