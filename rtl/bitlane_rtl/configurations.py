"""The named configurations. All others are one of these with fields replaced.

Data only; `Configuration` describes the fields.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from .abi import BIT_OPS, SHIFT_OPS, Mode, Op
from .configuration import Configuration

__all__ = ["NAMED", "copy", "full", "one_port", "small"]


def copy(data_width: int = 32, *, block_ram: bool = False) -> Configuration:
    """NOT alone, one reader, one dense run between any bytes: the work of a plain DMA.

    Its depths and widths are equal to those of the DMA cores of the comparison.
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


def one_port(data_width: int = 64, *, block_ram: bool = False) -> Configuration:
    """`full` with one read port, which A and B share: for a SoC with room for one AXI manager."""
    return replace(full(data_width, block_ram=block_ram), read_ports=1)


NAMED: Mapping[str, Callable[..., Configuration]] = {
    "copy": copy,
    "small": small,
    "full": full,
    "one-port": one_port,
}
"""Functions of the named configurations, by their names on command lines."""
