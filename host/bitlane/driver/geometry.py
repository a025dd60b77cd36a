"""The sizes and abilities of a device, decoded from its registers. Data only."""

from dataclasses import dataclass, field, fields

from bitlane_rtl.abi import BIT_OPS, CONTROL_BASE, MAX_LOOPS, Lane, Mode, Op, Rows, register

from ..errors import LinkError


@dataclass(frozen=True, slots=True)
class ArraySizes:
    """The sizes of a search array (register SEARCH)."""

    units: int
    """Rows compared at a time."""
    row_bytes: int
    queries: int
    """Most queries of a command."""
    nearest: int
    """Rows found for each query."""

    @classmethod
    def from_register(cls, word: int) -> "ArraySizes | None":
        """Decode the register; return None for a circuit without an array."""
        field = register("SEARCH")
        if not field["UNITS"].extract(word):
            return None
        return cls(
            units=field["UNITS"].extract(word),
            row_bytes=1 << field["ROW_BYTES_LOG2"].extract(word),
            queries=1 << field["QUERIES_LOG2"].extract(word),
            nearest=1 << field["NEAREST_LOG2"].extract(word),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Abilities:
    """The sizes and abilities of a circuit (registers CAPABILITIES, GEOMETRY and SEARCH).

    Commands are the same for all circuits of equal abilities, wherever their memory is.
    """

    data_bytes: int
    """Bytes in a beat."""
    loops: int
    """Most nested loops of a command, the run included."""
    slots: int
    """Slots of the command ring."""
    length_bits: int
    """A run has fewer than ``2**length_bits`` bytes on every stream."""
    count_bits: int
    """A loop has fewer than ``2**count_bits`` iterations."""
    ops: frozenset[Op] = BIT_OPS
    lanes: frozenset[Lane] = frozenset(Lane)
    """Lanes of shifts and counts, and element widths of runs that are not dense."""
    modes: frozenset[Mode] = frozenset(Mode)
    read_ports: int = 2
    counters: bool = True
    rows: Rows | None = None
    """Row layout of the memory (SDRAM banks and rows), or None for a flat memory."""
    search: ArraySizes | None = None

    @property
    def longest_run(self) -> int:
        """The most bytes of a run, which is also the most that one sum adds up."""
        return (1 << self.length_bits) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Geometry(Abilities):
    """A circuit's abilities and the bounds of its memory (registers MEMORY_BASE, MEMORY_LAST)."""

    memory_base: int
    """First byte that commands may touch."""
    memory_last: int
    """Last byte that commands may touch."""

    abilities: Abilities = field(init=False, repr=False, compare=False)
    """The abilities alone: equal for equal circuits, wherever their memory is."""
    memory: range = field(init=False, repr=False, compare=False)
    """Addresses that commands may touch."""

    def __post_init__(self) -> None:
        # Attributes, not properties: every call reads both.
        own = {each.name: getattr(self, each.name) for each in fields(Abilities)}
        object.__setattr__(self, "abilities", Abilities(**own))
        object.__setattr__(self, "memory", range(self.memory_base, self.memory_last + 1))

    @property
    def memory_bytes(self) -> int:
        return self.memory_last - self.memory_base + 1

    @classmethod
    def from_registers(
        cls,
        capabilities: int,
        geometry: int,
        memory_base: int,
        memory_last: int,
        search: int = 0,
    ) -> "Geometry":
        """Decode the registers of its sizes, and that of the search array.

        Raises
        ------
        LinkError
            No circuit has these values: the link garbles data, or this is not a bitlane device.
        """
        has = register("CAPABILITIES")
        size = register("GEOMETRY")
        result = cls(
            data_bytes=1 << size["DATA_BYTES_LOG2"].extract(geometry),
            loops=size["LOOPS"].extract(geometry),
            slots=1 << size["SLOTS_LOG2"].extract(geometry),
            length_bits=size["LENGTH_BITS"].extract(geometry),
            count_bits=size["COUNT_BITS"].extract(geometry),
            memory_base=memory_base,
            memory_last=memory_last,
            ops=frozenset(op for op in Op if has["OPS"].extract(capabilities) >> op & 1),
            lanes=frozenset(x for x in Lane if has["LANES"].extract(capabilities) >> x & 1),
            modes=frozenset(
                mode for mode in Mode if has["MODES"].extract(capabilities) >> mode & 1
            ),
            read_ports=has["READ_PORTS"].extract(capabilities),
            counters=bool(has["COUNTERS"].extract(capabilities)),
            search=ArraySizes.from_register(search),
            rows=_rows(geometry),
        )
        if not (
            4 <= result.data_bytes <= 64
            and 1 <= result.loops <= MAX_LOOPS
            and 2 <= result.slots <= 32
            and 12 <= result.length_bits <= 32
            and 1 <= result.count_bits <= 32
            and 1 <= result.read_ports <= 2
            and Mode.DENSE in result.modes
            and result.ops
            and memory_base <= memory_last < CONTROL_BASE
        ):
            raise LinkError(
                f"device: CAPABILITIES={capabilities:#010x} GEOMETRY={geometry:#010x}"
                f" MEMORY_BASE={memory_base:#x} MEMORY_LAST={memory_last:#x} describe no circuit;"
                " expected a bitlane device at the other end of the link"
            )
        return result


def _rows(geometry: int) -> Rows | None:
    size = register("GEOMETRY")
    size_log2, banks_log2, word_bytes_log2 = (
        size[name].extract(geometry) for name in ("ROWS_LOG2", "BANKS_LOG2", "WORD_BYTES_LOG2")
    )
    if not size_log2:
        return None
    return Rows(size_log2=size_log2, banks_log2=banks_log2, word_bytes_log2=word_bytes_log2)
