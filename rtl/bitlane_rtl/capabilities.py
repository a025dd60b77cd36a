"""The words of the registers that say what a circuit was built with. Data only."""

from .abi import register
from .configuration import Configuration

__all__ = ["capabilities", "geometry", "search"]


def capabilities(configuration: Configuration) -> int:
    """Return the word of CAPABILITIES."""
    entry = register("CAPABILITIES")
    lanes = configuration.lanes if configuration.splits_lanes else ()
    ports = configuration.read_ports if configuration.has_b else 1
    return (
        entry["OPS"].insert(sum(1 << op for op in configuration.ops))
        | entry["LANES"].insert(sum(1 << lane for lane in lanes))
        | entry["MODES"].insert(sum(1 << mode for mode in configuration.modes))
        | entry["READ_PORTS"].insert(ports)
        | entry["COUNTERS"].insert(configuration.counters)
    )


def geometry(configuration: Configuration) -> int:
    """Return the word of GEOMETRY."""
    entry, rows = register("GEOMETRY"), configuration.rows
    word = 0
    if rows:
        word |= entry["ROWS_LOG2"].insert(rows.size_log2)
        word |= entry["WORD_BYTES_LOG2"].insert(rows.word_bytes_log2)
        word |= entry["BANKS_LOG2"].insert(rows.banks_log2)
    return (
        word
        | entry["DATA_BYTES_LOG2"].insert(configuration.data_bytes_log2)
        | entry["LOOPS"].insert(configuration.loops)
        | entry["SLOTS_LOG2"].insert(_log2(configuration.slots))
        | entry["LENGTH_BITS"].insert(configuration.length_bits)
        | entry["COUNT_BITS"].insert(configuration.count_bits)
    )


def search(configuration: Configuration) -> int:
    """Return the word of SEARCH."""
    entry, array = register("SEARCH"), configuration.search
    if array is None:
        return 0
    return (
        entry["UNITS"].insert(array.units)
        | entry["ROW_BYTES_LOG2"].insert(_log2(array.row_bits // 8))
        | entry["QUERIES_LOG2"].insert(_log2(array.queries))
        | entry["NEAREST_LOG2"].insert(_log2(array.nearest))
    )


def _log2(power: int) -> int:
    """Return the logarithm of a power of two."""
    return power.bit_length() - 1
