"""The parameters of a circuit. Data only; every component takes its parameters from here."""

from dataclasses import dataclass, field

from .abi import BEATS_PER_BLOCK, BIT_OPS, MAX_LOOPS, SEARCH_ENTRY_BYTES, Lane, Mode, Op, Rows

__all__ = ["Configuration", "Search"]

_WIDTHS = (32, 64, 128)
_SEARCH_WIDTHS = (32, 64)

_LUT_RAM_ENTRIES = 16
"""Depth of a LUT RAM of ECP5 and Gowin: fewer entries would save nothing."""
_FLIP_FLOP_ENTRIES = 2
"""Entries of a FIFO of flip-flops that can take and give one in each cycle."""
_ELEMENTS_ELSEWHERE = 4
"""Elements of a beat that wait in other registers of the data path than its FIFOs."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Search:
    """Parameters of a search array.

    Raises ``ValueError`` on a value outside the ranges below.
    """

    units: int
    """Rows of the database that the array compares at a time, 1 to 1024."""

    row_bits: int = 512
    """Bits of a row and of a query: a power of two, 64 to 1024."""

    queries: int = 512
    """Most queries of one pass over the database: a power of two, 2 to 4096."""

    nearest: int = 16
    """Rows that the array finds for each query: a power of two, 1 to 64."""

    def __post_init__(self) -> None:
        _expect("search.units", self.units, 1, 1024)
        _power_of_two("search.row_bits", self.row_bits, 64, 1024)
        _power_of_two("search.queries", self.queries, 2, 4096)
        _power_of_two("search.nearest", self.nearest, 1, 64)


@dataclass(frozen=True, kw_only=True, slots=True)
class Configuration:
    """Parameters of an engine.

    The constructor completes ``ops`` and ``modes``, so that they list exactly what is built:
    CAPABILITIES shows them as they are, and configurations of one circuit are equal.

    Raises ``ValueError`` on a value that no circuit can be built with.
    """

    data_width: int = 64
    """Bits in a beat: 32, 64 or 128."""

    address_width: int = 32
    """Bits in an address, 16 to 32."""

    memory_base: int = 0
    """First byte that commands may touch."""

    memory_bytes: int = 1 << 30
    """Bytes of that memory. Both are multiples of ``abi.BEATS_PER_BLOCK`` beats, so that no block
    of a burst is partly outside."""

    ops: frozenset[Op] = field(default_factory=lambda: frozenset(Op))
    """Operations to build; others cost nothing. The constructor adds SEARCH if `search` is set, and
    removes it otherwise."""

    lanes: frozenset[Lane] = field(default_factory=lambda: frozenset(Lane))
    """Lanes of shifts and counts, and element widths of STRIDED and REPEAT runs."""

    modes: frozenset[Mode] = field(default_factory=lambda: frozenset(Mode))
    """Ways to walk a run; DENSE must be one. The constructor removes SUM unless one of `ops`
    counts, because SUM adds counts."""

    loops: int = 4
    """Most nested loops of a command, the run included: 1 to ``abi.MAX_LOOPS``."""

    read_ports: int = 2
    """Read ports: 2, or 1 that A and B share in turn. Without a B in any operation, 2 builds 1."""

    length_bits: int = 24
    """A run has fewer than ``2**length_bits`` bytes on every stream."""

    count_bits: int = 24
    """A loop has fewer than ``2**count_bits`` iterations."""

    slots: int = 16
    """Slots of the command ring, a power of two, 2 to 32."""

    fifo_beats: int = 64
    """Beats that each reader can buffer and have in flight: a power of two, 32 to 1024."""

    bursts: int = 16
    """Bursts that each stream can have in flight: a power of two, 2 to 256."""

    block_ram: bool = False
    """Whether FIFOs use block RAM with a registered read (iCE40) or LUT RAM (ECP5, Gowin)."""

    operand_registers: bool = False
    """Insert a pipeline register between each reader's FIFO and the bit unit. Raises the clock rate
    of counts; costs one cycle of latency."""

    counters: bool = True
    """Whether to build the performance counters."""

    rows: Rows | None = None
    """Row layout of the memory (SDRAM banks and rows), or None for a flat memory."""

    search: Search | None = None
    """The search array to build, or None. It needs beats of 32 or 64 bits."""

    def __post_init__(self) -> None:
        if self.data_width not in _WIDTHS:
            raise ValueError(
                f"data_width: {self.data_width} is not supported; expected 32, 64 or 128"
            )
        _expect("address_width", self.address_width, 16, 32)
        _expect("loops", self.loops, 1, MAX_LOOPS)
        _expect("read_ports", self.read_ports, 1, 2)
        _expect("length_bits", self.length_bits, 12, 32)
        _expect("count_bits", self.count_bits, 1, 32)
        _power_of_two("slots", self.slots, 2, 32)
        _power_of_two("fifo_beats", self.fifo_beats, 2 * BEATS_PER_BLOCK, 1024)
        _power_of_two("bursts", self.bursts, 2, 256)
        if self.search:
            self._expect_fit(self.search)
        if not self.bit_ops:
            raise ValueError("ops: empty; expected at least one operation")
        self._complete()
        if self.splits_lanes and not self.lanes:
            raise ValueError("lanes: empty; shifts and counts need at least one lane")
        if Mode.DENSE not in self.modes:
            raise ValueError("modes: DENSE is missing; expected it in every circuit")
        self._expect_memory()

    def _complete(self) -> None:
        """Make ``ops`` and ``modes`` list exactly what is built, see the class."""
        # The only way to set a field of a frozen dataclass; no field changes after this.
        object.__setattr__(self, "ops", self.bit_ops | ({Op.SEARCH} if self.search else set()))
        if not self.counts:
            object.__setattr__(self, "modes", self.modes - {Mode.SUM})

    def _expect_memory(self) -> None:
        block = BEATS_PER_BLOCK * self.data_width // 8
        for name, low in (("memory_base", 0), ("memory_bytes", 1)):
            value = getattr(self, name)
            if value % block or value < low:
                shown = hex(value) if name == "memory_base" else value
                raise ValueError(
                    f"{name}: {shown}; expected a multiple of {BEATS_PER_BLOCK} beats,"
                    f" {block} bytes, {low} or more"
                )
        if self.memory_last >= 1 << self.address_width:
            raise ValueError(
                f"memory_bytes: the last address {self.memory_last:#x} needs more than"
                f" address_width = {self.address_width} bits"
            )

    def _expect_fit(self, search: Search) -> None:
        if self.data_width not in _SEARCH_WIDTHS:
            raise ValueError(f"data_width: {self.data_width}; search needs one of {_SEARCH_WIDTHS}")
        longest = search.queries * max(search.row_bits // 8, search.nearest * SEARCH_ENTRY_BYTES)
        if longest >= 1 << self.length_bits:
            raise ValueError(
                f"length_bits: {self.length_bits}; search.queries = {search.queries} take runs of"
                f" {longest} bytes"
            )

    @property
    def data_bytes(self) -> int:
        """Bytes in a beat."""
        return self.data_width // 8

    @property
    def data_bytes_log2(self) -> int:
        """Address bits within a beat."""
        return self.data_bytes.bit_length() - 1

    @property
    def ahead(self) -> int:
        """Entries of the FIFOs that carry commands, and runs of the output, ahead of the data.

        At least the depth of a LUT RAM, or 2 where an entry costs flip-flops. With STRIDED the
        FIFOs also hold the elements of a beat: a scattered run has one entry for each element, and
        all elements of a beat must be in flight before the beat is complete.
        """
        least = _FLIP_FLOP_ENTRIES if self.block_ram else _LUT_RAM_ENTRIES
        elements = self.data_bytes - _ELEMENTS_ELSEWHERE if Mode.STRIDED in self.modes else 0
        return max(least, 1 << max(elements - 1, 0).bit_length())

    @property
    def bit_ops(self) -> frozenset[Op]:
        """The operations of the bit unit."""
        return self.ops & BIT_OPS

    @property
    def single_runs(self) -> bool:
        """Whether every command is one dense run, and so a stream's bursts have many beats."""
        return self.loops == 1 and self.modes == {Mode.DENSE}

    @property
    def single_op(self) -> Op | None:
        """The operation of every beat, if there is one and the lane does not matter."""
        return None if len(self.ops) > 1 or self.splits_lanes else next(iter(self.ops))

    @property
    def memory_last(self) -> int:
        """Last byte that commands may touch."""
        return self.memory_base + self.memory_bytes - 1

    @property
    def has_b(self) -> bool:
        """Whether any operation has a second operand."""
        return any(op.reads_b for op in self.ops)

    @property
    def two_ports(self) -> bool:
        """Whether B has a memory port of its own."""
        return self.has_b and self.read_ports == 2

    @property
    def counts(self) -> bool:
        """Whether any operation counts."""
        return any(op.counts for op in self.ops)

    @property
    def splits_lanes(self) -> bool:
        """Whether any operation depends on the lane."""
        return any(op.splits_lanes for op in self.ops)


def _expect(name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise ValueError(f"{name}: {value} is outside {low} to {high}")


def _power_of_two(name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high or value & (value - 1):
        raise ValueError(f"{name}: {value} is not a power of two from {low} to {high}")
