"""Fetches records from the command ring, checks them, and starts commands in order.

Starts a command only when its record has been submitted, is sealed and can be executed; a bad one
is reported once every command before it has retired, and nothing after it is started.
"""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..abi import RECORD, RECORD_WORDS, Mode, Op, Status, loop_word
from ..configuration import Configuration
from ..walk.loops import Command, Loops
from .refusals import Refusals, control_field

__all__ = ["Sequencer", "ring_columns"]


def ring_columns(configuration: Configuration) -> int:
    """Words that are read from the ring at once, so that a short command is fetched in no more
    cycles than its 64 bytes take on the data path."""
    return min(configuration.data_width, 128) // 32


class Sequencer(wiring.Component):
    """Turns the ring's records into commands.

    Members
    -------
    doorbell : ``In(16)``
        Records submitted since reset.
    doorbell_write, doorbell_data : ``In``
        ``doorbell`` will be ``doorbell_data`` in the next cycle.
    ring_write : ``In(1)``
        The host writes to the ring in this cycle: what was fetched ahead is fetched again.
    ring_read, ring_address, ring_words
        Read port of the ring: ``ring_words`` follow ``ring_read`` by a cycle, and stay.
    walking : ``In(1)``
        The loop registers are in use.
    idle : ``In(1)``
        Every command that was started has retired.
    loops : ``Out(Loops(configuration))``
    o : ``Out(stream.Signature(Command(configuration)))``
    interrupt : ``Out(1)``
        The command on ``o`` asks for an interrupt when it retires.
    refused : ``Out(1)``
        The next command cannot be executed, and all before it have retired.
    code : ``Out(8)``
        Why.

    Latency: doorbell to command 0 cycles if the record was fetched ahead; a fetch takes
    ``4 + ceil(words / columns)`` cycles. Throughput: a command of 6 (8 with B) words every
    ``2 + ceil(words / columns)`` cycles; a record with loops waits until ``walking`` is 0.
    Bound of the clock: a write to DOORBELL into ``submitted``, and ``take`` into `Refusals`.
    """

    doorbell: Signal
    doorbell_write: Signal
    doorbell_data: Signal
    ring_write: Signal
    ring_read: Signal
    ring_address: Signal
    ring_words: Signal
    walking: Signal
    idle: Signal
    loops: Any
    o: stream.Interface
    interrupt: Signal
    refused: Signal
    code: Signal

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        self._columns = ring_columns(configuration)
        groups = RECORD_WORDS // self._columns
        super().__init__(
            {
                "doorbell": In(16),
                "doorbell_write": In(1),
                "doorbell_data": In(16),
                "ring_write": In(1),
                "ring_read": Out(1),
                "ring_address": Out(range(configuration.slots * groups)),
                "ring_words": In(32 * self._columns),
                "walking": In(1),
                "idle": In(1),
                "loops": Out(Loops(configuration)),
                "o": Out(stream.Signature(Command(configuration))),
                "interrupt": Out(1),
                "refused": Out(1),
                "code": Out(8),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config, columns = self._configuration, self._columns
        m.submodules.refusals = refusals = Refusals(config, columns)

        started = Signal(16)
        submitted = Signal()
        started_now = Signal()
        just_started = Signal()
        # Compared a cycle ahead, and once for each: a write to the doorbell is known late. So is
        # the start of a command, which `submitted` follows a cycle late; it is not needed then.
        m.d.sync += [
            just_started.eq(started_now),
            submitted.eq(
                Mux(self.doorbell_write, self.doorbell_data != started, self.doorbell != started)
            ),
        ]

        # Fetch: address -> ring -> `words`, each stage waiting for the next.
        slot = Signal(range(config.slots))
        group = Signal(range(RECORD_WORDS // columns))
        arriving = Signal()
        full = Signal()
        words = Signal(32 * columns, reset_less=True)
        take = Signal()
        restart = Signal()
        load = Signal()
        m.d.comb += [
            load.eq(arriving & (~full | take)),
            self.ring_read.eq(~arriving | load),
            self.ring_address.eq(Cat(group, slot)),
        ]
        with m.If(self.ring_read):
            m.d.sync += [group.eq(group + 1), arriving.eq(1)]
        with m.If(load):
            m.d.sync += [words.eq(self.ring_words), full.eq(1)]
        with m.Elif(take):
            m.d.sync += full.eq(0)

        # Take the words of a record, then decode it, then hold it until it is started.
        position = Signal(range(RECORD_WORDS // columns))
        decode = Signal()
        ready = Signal()
        # A cycle late, but long before a command that follows can bring a loop register.
        walking = Signal()
        m.d.sync += walking.eq(self.walking)
        control = Signal(32, reset_less=True)
        fields = {name: Signal(32, name=name.lower(), reset_less=True) for name in _KEPT}
        final, used = self._length(m, control, position)
        beyond = position >= 8 // columns
        m.d.comb += [
            take.eq(full & ~decode & ~ready & ~(beyond & walking)),
            refusals.words.eq(words),
            refusals.position.eq(position),
            refusals.used.eq(used),
            refusals.take.eq(take),
            refusals.control.eq(control),
        ]
        next_slot = Signal.like(slot)
        m.d.comb += next_slot.eq(slot + 1)
        with m.If(take):
            m.d.sync += position.eq(position + 1)
            self._keep(m, words, position, control, fields)
            with m.If(final):
                # What was fetched beyond the record is of no use; the next one is.
                m.d.sync += [decode.eq(1), position.eq(0), slot.eq(next_slot), group.eq(0)]
                m.d.sync += [arriving.eq(0), full.eq(0)]

        code = Signal(Status)
        good = Signal()
        widens = Signal()
        ratio = Signal(2)
        extent = {
            lane: Signal(config.length_bits, name=f"{lane.lower()}_extent") for lane in _LANES
        }
        with m.If(decode):
            m.d.sync += [
                decode.eq(0),
                ready.eq(1),
                code.eq(refusals.code),
                good.eq(refusals.code == Status.OK),
            ]
            with m.If(_strided(control)):  # else walkers may still use it
                m.d.sync += [
                    self.loops.run.eq(fields["RUN"][: len(self.loops.run)] - 2),
                ]
            lane, out_lane = (control_field(control, name) for name in _LANES)
            m.d.sync += [
                widens.eq(lane < out_lane),
                ratio.eq(Mux(lane < out_lane, out_lane - lane, lane - out_lane)),
            ]
            m.d.sync += [
                extent[lane].eq((fields["RUN"] << control_field(control, lane)) - 1)
                for lane in _LANES
            ]

        # Found a cycle ahead, as much follows from a start: the command can be executed, and the
        # nest, which takes loops in before it is to walk them, has had the time.
        offers = Signal()
        plain = (control_field(control, "LOOPS") == 1) & ~_strided(control)
        with m.If(decode):
            m.d.sync += [
                self.o.p.plain.eq(plain),
                offers.eq(plain & (refusals.code == Status.OK)),
            ]
        with m.Elif(ready):
            m.d.sync += offers.eq(good)
        fence = control_field(control, "FENCE")
        m.d.comb += [
            started_now.eq(self.o.valid & self.o.ready),
            self.o.valid.eq(offers & submitted & (~fence | self.idle)),
            self.refused.eq(ready & submitted & ~good & self.idle),
            self.code.eq(code),
            self.interrupt.eq(control_field(control, "INTERRUPT")),
        ]
        with m.If(started_now):
            m.d.sync += [ready.eq(0), offers.eq(0), started.eq(started + 1)]
        m.d.comb += refusals.clear.eq(restart | decode)

        # The host may still be writing what was fetched ahead of the doorbell.
        with m.If(self.ring_write):
            with m.If(~submitted | just_started):
                m.d.comb += restart.eq(1)
                m.d.sync += [position.eq(0), decode.eq(0), ready.eq(0), offers.eq(0)]
                m.d.sync += [slot.eq(started), group.eq(0), arriving.eq(0), full.eq(0)]
            with m.Elif((position == 0) & ~take):
                m.d.sync += [group.eq(0), arriving.eq(0), full.eq(0)]
        self._command(m, control, fields, extent, widens, ratio)
        return m

    def _length(self, m: Module, control: Signal, position: Signal) -> tuple[Value, Signal]:
        """Whether ``position`` is the record's last, and which of its words are in use."""
        columns = self._columns
        most = min(self._configuration.loops, 6) - 1
        loops = Signal(3)
        long = Signal()
        reads_b = Signal()
        asked = control_field(control, "LOOPS")
        m.d.comb += [
            # A number of loops out of range is refused, whatever its record's length.
            loops.eq(Mux((asked == 0) | (asked > most + 1), 0, asked - 1)),
            long.eq((loops != 0) | _strided(control)),
            reads_b.eq(control_field(control, "OP").matches(*(op for op in Op if op.reads_b))),
        ]

        def group_of(words: int) -> int:
            return (words - 1) // columns

        last = Signal(range(RECORD_WORDS // columns), init=group_of(6))
        length = Mux(reads_b, group_of(8), group_of(6))
        length = Mux(long, group_of(12) + loops * (4 // columns), length)
        used = Signal(columns, init=-1)
        if columns <= 2:
            # Known a cycle late, when the words of the first two groups, which every record has,
            # have been taken; and all words of a group are used.
            m.d.sync += last.eq(length)
        else:
            both = (position != group_of(8)) | long | reads_b
            m.d.comb += [last.eq(length), used[2:].eq(both.replicate(2))]
        return position == last, used

    def _keep(
        self, m: Module, words: Signal, position: Signal, control: Signal, fields: dict[str, Signal]
    ) -> None:
        """Store the words at ``position`` where the command is built from."""
        config, columns = self._configuration, self._columns
        targets: dict[str, Value] = {"CONTROL": control, **fields}
        tracks = {"A": self.loops.a, "Y": self.loops.y, "B": self.loops.b}
        for name, track in tracks.items():
            targets[f"{name}_STRIDE"] = track.stride
        for loop in range(1, config.loops):
            for name, track in tracks.items():
                targets[f"{name}_JUMP_{loop}"] = track.jumps[loop - 1]
            targets[f"COUNT_{loop}"] = self.loops.counts[loop - 1]
        for name, target in targets.items():
            number = RECORD[name].word
            column = number % columns
            word = words[32 * column : 32 * column + 32]
            less = 2 if name.startswith("COUNT_") else 0
            with m.If(position == number // columns):
                m.d.sync += target.eq(word - less)

    def _command(
        self,
        m: Module,
        control: Signal,
        fields: dict[str, Signal],
        extent: dict[str, Signal],
        widens: Signal,
        ratio: Signal,
    ) -> None:
        config, command = self._configuration, self.o.p
        y_dense = control_field(control, "Y_MODE") == Mode.DENSE
        operation = command.operation
        m.d.comb += [
            operation.op.eq(control_field(control, "OP")),
            operation.lane.eq(control_field(control, "LANE")),
            operation.out_lane.eq(control_field(control, "OUT_LANE")),
            operation.saturate.eq(control_field(control, "SATURATE")),
            operation.arithmetic.eq(control_field(control, "ARITHMETIC")),
            command.reads_b.eq(operation.op.matches(*(op for op in Op if op.reads_b))),
        ]
        form = command.form
        m.d.comb += [
            form.lane.eq(operation.lane),
            form.out_lane.eq(operation.out_lane),
            form.widens.eq(widens),
            form.ratio.eq(ratio),
            form.y_dense.eq(y_dense),
            command.loops.eq(control_field(control, "LOOPS") - 1),
        ]
        for name, start in (("A", command.a), ("B", command.b), ("Y", command.y)):
            m.d.comb += [
                start.address.eq(fields[f"{name}_BASE"]),
                start.offset.eq(Mux(y_dense, fields["Y_BASE"][: config.data_bytes_log2], 0)),
                start.extent.eq(extent["OUT_LANE" if name == "Y" else "LANE"]),
                start.mode.eq(control_field(control, f"{name}_MODE")),
            ]


def _strided(control: Value) -> Value:
    return Cat(control_field(control, f"{s}_MODE") == Mode.STRIDED for s in "AYB").any()


_KEPT = ("RUN", "A_BASE", "Y_BASE", "B_BASE")
_LANES = ("LANE", "OUT_LANE")

assert loop_word(1) % 4 == 0
