"""Stores the words of a record and turns them into a command. It checks nothing."""

from collections.abc import Mapping
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..abi import MAX_LOOPS, RECORD, RECORD_WORDS, STREAMS, Lane, Mode, WordKind, loop_word
from ..command import CheckedCommand, LoopRegisters, in_lanes
from ..configuration import Configuration
from .record_words import ControlWord, RecordGroup, reads_b, record_word, searches, sums

__all__ = ["Decoder"]

_LESS = {WordKind.RUN: 1, WordKind.COUNT: 2}
"""The registers hold these words less a constant, which the loop nest needs so."""

assert loop_word(1) % 4 == 0, "a loop's words begin a group"


class _Stored(data.StructLayout):
    """Words of the record that make a command; the words of loops are in the loop registers.

    ``RUN`` is one less than in the record.
    """

    def __init__(self, configuration: Configuration) -> None:
        width = configuration.address_width
        super().__init__(
            {
                "CONTROL": ControlWord(),
                "RUN": configuration.length_bits,
                **{f"{stream}_BASE": width for stream in STREAMS},
            }
        )


class _Decoded(data.StructLayout):
    """Values computed from the words: parts of `command.StreamFormat`, extents of the streams."""

    def __init__(self, configuration: Configuration) -> None:
        bits = configuration.length_bits
        super().__init__(
            {
                "widens": 1,
                "ratio": 2,
                "plain": 1,
                "extent": bits,
                "out_extent": bits,
            }
        )


class Decoder(wiring.Component):
    """Takes a record's words in groups, then decodes them.

    Parameters
    ----------
    configuration
        Loops and widths.
    columns
        Words of a group: 1, 2 or 4.

    Members
    -------
    group
        The words of the record.
    decode
        All words have been taken.
    used
        A bit for each word of ``group`` that the record uses.
    last
        ``group`` is the record's last; see `abi.record_words`.
    control
        Valid from the cycle after the first group was taken.
    loops
        They change one cycle after the words behind the eighth, and with ``decode``.
    b_extent, y_extent
        Bytes of B and Y in a SEARCH, less one; only with a search array.
    plain
        Valid with ``decode``: ``plain`` of the command.
    command
        Valid from the cycle after ``decode`` until the next record's words are taken.

    Latency: 1 cycle from ``decode`` to ``command``. Throughput: a group a cycle.
    """

    def __init__(self, configuration: Configuration, columns: int) -> None:
        self._configuration = configuration
        self._columns = columns
        extent = In(configuration.length_bits)
        super().__init__(
            {
                **({"b_extent": extent, "y_extent": extent} if configuration.search else {}),
                "group": In(RecordGroup(columns)),
                "decode": In(1),
                "used": Out(columns),
                "last": Out(1),
                "control": Out(ControlWord()),
                "loops": Out(LoopRegisters(configuration)),
                "plain": Out(1),
                "command": Out(CheckedCommand(configuration)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        stored: Any = Signal(_Stored(self._configuration), reset_less=True)
        decoded: Any = Signal(_Decoded(self._configuration), reset_less=True)
        m.d.comb += [
            self.control.eq(stored.CONTROL),
            self.plain.eq((self.control.loops == 1) & ~_strided(self.control)),
        ]
        self._length(m)
        self._store(m, stored)
        self._decode(m, stored, decoded)
        self._command(m, stored, decoded)
        return m

    def _length(self, m: Module) -> None:
        """Compute the last group of the record."""
        columns = self._columns
        requested = self.control.loops
        loops = Signal(3)
        long = Signal()
        two = Signal()
        m.d.comb += [
            loops.eq(Mux((requested == 0) | (requested > MAX_LOOPS), 0, requested - 1)),
            long.eq((loops != 0) | _strided(self.control)),
            two.eq(reads_b(self.control.op)),
        ]

        def group_of(words: int) -> int:
            return (words - 1) // columns

        m.d.comb += self.used.eq(-1)
        end = Signal(range(RECORD_WORDS // columns), init=group_of(6))
        length = Mux(two, group_of(8), group_of(6))
        length = Mux(long, group_of(12) + loops * (4 // columns), length)
        if columns <= 2:
            # A cycle late: every record has at least three groups. It uses all words of each.
            m.d.sync += end.eq(length)
        else:
            both = (self.group.position != group_of(8)) | long | two
            m.d.comb += [end.eq(length), self.used[2:].eq(both.replicate(2))]
        m.d.comb += self.last.eq(self.group.position == end)

    def _store(self, m: Module, stored: Any) -> None:
        """Store each word in its register: CONTROL and RUN at once, the others a cycle late."""
        early = {name: stored[name] for name in ("CONTROL", "RUN")}
        late = {name: stored[name] for name in stored.shape().members if name not in early}
        for stream in STREAMS:
            strides = self.loops[stream.lower()]
            late[f"{stream}_STRIDE"] = strides.stride
            for loop in range(1, self._configuration.loops):
                late[f"{stream}_JUMP_{loop}"] = strides.jumps[loop - 1]
        for loop in range(1, self._configuration.loops):
            late[f"COUNT_{loop}"] = self.loops.counts[loop - 1]
        # A copy, so that the words reach few registers, and can be placed beside the block RAM that
        # they come from: its output takes 5.8 ns of the 7.7 of a cycle (ECP5-6).
        members = RecordGroup(self._columns).members
        layout = data.StructLayout({name: members[name].shape for name in members})
        copied: Any = Signal(layout, reset_less=True)
        m.d.sync += [copied[name].eq(getattr(self.group, name)) for name in members]
        _load(m, self.group, early)
        _load(m, copied, late)

    def _decode(self, m: Module, stored: Any, decoded: Any) -> None:
        """Compute the values that are not words of the record."""
        lane, out_lane = stored.CONTROL.lane, stored.CONTROL.out_lane
        widens = lane < out_lane
        summed = sums(stored.CONTROL, self._configuration)
        shift = Mux(self.decode, out_lane, lane)
        extent = Signal(len(decoded.extent))
        # The offset of the last element, plus its bytes after the first.
        m.d.comb += extent.eq((stored.RUN << shift) | ((1 << shift) - 1))
        with m.If(~self.decode):
            # One shifter for both lanes: RUN is valid in the cycle before `decode`, at the latest.
            m.d.sync += decoded.extent.eq(extent)
        with m.Else():
            m.d.sync += [
                # A sum is one element.
                decoded.out_extent.eq(Mux(summed, Lane.BITS_32.bytes - 1, extent)),
                decoded.widens.eq(widens),
                decoded.ratio.eq(Mux(widens, out_lane - lane, lane - out_lane)),
                decoded.plain.eq(self.plain),
            ]
            with m.If(_strided(stored.CONTROL)):  # else the loop nest may still use it
                m.d.sync += self.loops.run.eq(stored.RUN - 1)

    def _command(self, m: Module, stored: Any, decoded: Any) -> None:
        """Assemble the command."""
        control, command = stored.CONTROL, self.command
        operation = command.operation
        searched = searches(control, self._configuration)
        # The inputs of a search start at byte 0 of a beat, wherever its output starts.
        y_dense = (control.y_mode == Mode.DENSE) & ~searched
        m.d.comb += [
            operation.op.eq(control.op),
            operation.lane.eq(control.lane),
            operation.out_lane.eq(control.out_lane),
            operation.saturate.eq(control.saturate),
            operation.arithmetic.eq(control.arithmetic),
            operation.sums.eq(sums(control, self._configuration)),
            operation.test.eq(control.test),
            operation.negate.eq(control.negate),
            command.reads_b.eq(reads_b(control.op)),
        ]
        form = command.form
        m.d.comb += [
            form.lane.eq(control.lane),
            form.out_lane.eq(control.out_lane),
            form.widens.eq(decoded.widens),
            form.ratio.eq(decoded.ratio),
            form.y_dense.eq(y_dense),
            form.searches.eq(searched),
            command.loops.eq(control.loops - 1),
            command.plain.eq(decoded.plain),
        ]
        for stream in STREAMS:
            start = command[stream.lower()]
            offset = stored.Y_BASE[: len(start.offset)]
            m.d.comb += [
                start.address.eq(stored[f"{stream}_BASE"]),
                start.offset.eq(Mux(y_dense, offset, 0)),
                start.lane_offset.eq(in_lanes(start.offset, form)),
                start.extent.eq(decoded.out_extent if stream == "Y" else decoded.extent),
                start.mode.eq(control[f"{stream.lower()}_mode"]),
            ]
        if self._configuration.search:
            with m.If(searched):
                m.d.comb += [
                    command.b.extent.eq(self.b_extent),
                    command.y.extent.eq(self.y_extent),
                ]


def _load(m: Module, group: Any, targets: Mapping[str, Any]) -> None:
    """Load the words that are valid in ``group`` into the registers ``targets``, by their names."""
    for name, target in targets.items():
        word, valid = record_word(group, name)
        with m.If(valid):
            m.d.sync += target.eq(word - _LESS.get(RECORD[name].kind, 0))


def _strided(control: Any) -> Value:
    """Return whether any stream is STRIDED."""
    return Cat(control[f"{stream.lower()}_mode"] == Mode.STRIDED for stream in STREAMS).any()
