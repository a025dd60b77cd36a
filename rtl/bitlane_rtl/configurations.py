"""The configurations that have names. All others are one of these with fields replaced.

Data only; what a field means stands in `Configuration`.
"""

from collections.abc import Callable, Mapping

from .abi import BIT_OPS, SHIFT_OPS, Mode, Op
from .configuration import Configuration

__all__ = ["NAMED", "copy", "full", "small"]


def copy(data_width: int = 32, *, block_ram: bool = False) -> Configuration:
    """NOT alone, one reader, one dense run between any bytes: what a plain DMA does.

    Depths and widths are those of the DMA cores that it is measured beside.
    """
    return Configuration(
        data_width=data_width,
        memory_bytes=1 << 32,
        ops=frozenset({Op.NOT}),
        lanes=frozenset(),
        modes=frozenset({Mode.DENSE}),
        loops=1,
        read_ports=1,
        length_bits=20,
        fifo_beats=32,
        block_ram=block_ram,
    )


def small(data_width: int = 32, *, block_ram: bool = False) -> Configuration:
    """Logic and count in all lanes, all modes but SUM, two readers, two loops: for small FPGAs."""
    return Configuration(
        data_width=data_width,
        ops=BIT_OPS - SHIFT_OPS,
        modes=frozenset(Mode) - {Mode.SUM},
        loops=2,
        length_bits=16,
        count_bits=16,
        slots=8,
        fifo_beats=32,
        bursts=2,
        block_ram=block_ram,
        operand_registers=True,
        counters=False,
    )


def full(data_width: int = 64, *, block_ram: bool = False) -> Configuration:
    """All operators, modes and lanes, two readers, four loops."""
    return Configuration(data_width=data_width, block_ram=block_ram)


NAMED: Mapping[str, Callable[..., Configuration]] = {"copy": copy, "small": small, "full": full}
"""By name, as on command lines: bits in a beat, and whether FIFOs are in block RAM."""
