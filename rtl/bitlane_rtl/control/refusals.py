"""Decides whether a command can be executed, word by word as its record is read.

Reads nothing and starts nothing: it only collects what is wrong.
"""

from typing import Any

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..abi import RECORD, RECORD_SEAL, Lane, Mode, Op, Status, loop_word
from ..configuration import Configuration

__all__ = ["Refusals", "control_field"]


def control_field(control: Value, name: str) -> Value:
    """The field ``name`` of the record's CONTROL word."""
    for bits in RECORD["CONTROL"].bits:
        if bits.name == name:
            return control[bits.low : bits.low + bits.width]
    raise KeyError(f"CONTROL has no field {name}")


class _Findings(data.StructLayout):
    """What the words taken so far say.

    ``low``: the low bits of the addresses and strides of A, Y and B, OR-ed; a bit set is one that
    is misaligned.
    """

    def __init__(self, configuration: Configuration) -> None:
        super().__init__(
            {
                "seal": 8,
                "run": configuration.length_bits,
                "long_run": 1,
                "bad_count": 1,
                "reserved": 1,
                "outside": 1,
                "low": data.ArrayLayout(3, 3),
            }
        )


class Refusals(wiring.Component):
    """Collects the faults of one record.

    Parameters
    ----------
    configuration
        What the circuit can do.
    columns
        Words that arrive together: 1, 2 or 4.

    Members
    -------
    words : ``In(32 * columns)``
        Words ``position * columns`` and up of the record.
    position : ``In(5)``
    used : ``In(columns)``
        Which of the words belong to the command.
    take : ``In(1)``
        The words are there in this cycle.
    control : ``In(32)``
        The CONTROL word, from the cycle after ``position`` 0 on.
    clear : ``In(1)``
        Forget the record.
    code : ``Out(8)``
        Lowest `Status` that applies to the words taken so far, or OK.

    Latency: ``code`` follows the last word by 1 cycle. Throughput: ``columns`` words a cycle.
    """

    words: Signal
    position: Signal
    used: Signal
    take: Signal
    control: Signal
    clear: Signal
    code: Signal

    def __init__(self, configuration: Configuration, columns: int) -> None:
        self._configuration = configuration
        self._columns = columns
        super().__init__(
            {
                "words": In(32 * columns),
                "position": In(5),
                "used": In(columns),
                "take": In(1),
                "control": In(32),
                "clear": In(1),
                "code": Out(8),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self._configuration
        found: Any = Signal(_Findings(config))
        op = control_field(self.control, "OP")
        reads_b = Signal()
        m.d.comb += reads_b.eq(op.matches(*(each for each in Op if each.reads_b)))

        folded: Value = found.seal
        with m.If(self.take):
            for column in range(self._columns):
                word = self.words[32 * column : 32 * column + 32]
                used = self.used[column]
                parts = word[0:8] ^ word[8:16] ^ word[16:24] ^ word[24:32]
                folded = folded ^ Mux(used, parts, 0)
                for name, entry in RECORD.items():
                    if entry.word % self._columns != column:
                        continue
                    if entry.word >= loop_word(1) + 4 * (config.loops - 1):
                        continue
                    with m.If((self.position == entry.word // self._columns) & used):
                        self._word(m, found, name, word, reads_b)
            m.d.sync += found.seal.eq(folded)
        with m.If(self.clear):
            m.d.sync += found.eq(0)

        lane, out_lane = (control_field(self.control, name) for name in ("LANE", "OUT_LANE"))
        widest = Signal(2)
        run_end = Signal(config.length_bits + 3)
        m.d.comb += [
            widest.eq(Mux(lane > out_lane, lane, out_lane)),
            run_end.eq(found.run << widest),
        ]
        bad_size = (found.run == 0) | found.long_run | found.bad_count
        bad_size |= run_end[config.length_bits :].any()
        wrong = {
            Status.BAD_SEAL: found.seal != RECORD_SEAL,
            Status.BAD_OP: ~op.matches(*config.ops),
            Status.BAD_LANE: self._bad_lane(op, lane, out_lane),
            Status.BAD_CONTROL: self._bad_control(reads_b) | found.reserved,
            Status.BAD_SIZE: bad_size,
            Status.MISALIGNED: self._misaligned(m, found),
            Status.PAST_MEMORY: found.outside,
        }
        for status, condition in reversed(wrong.items()):  # the last assignment wins
            with m.If(condition):
                m.d.comb += self.code.eq(status)
        return m

    def _word(self, m: Module, found: Any, name: str, word: Value, reads_b: Signal) -> None:
        """Note what is wrong with the word ``name`` of the record."""
        config = self._configuration
        if name == "RUN":
            m.d.sync += [found.run.eq(word), found.long_run.eq(word[config.length_bits :].any())]
        elif name == "RESERVED":
            m.d.sync += found.reserved.eq(word.any())
        elif name.startswith("COUNT_"):
            with m.If((word == 0) | word[config.count_bits :].any()):
                m.d.sync += found.bad_count.eq(1)
        elif name != "CONTROL":
            stream = "AYB".index(name[0])
            if name.endswith(("_BASE", "_LAST")):
                inside = (word >= config.memory_base) & (word <= config.memory_last)
                with m.If(~inside & (reads_b if name[0] == "B" else 1)):
                    m.d.sync += found.outside.eq(1)
            if not name.endswith("_LAST"):
                m.d.sync += found.low[stream].eq(found.low[stream] | word)

    def _misaligned(self, m: Module, found: Any) -> Value:
        """Whether an address is no multiple of its element where it has to be."""
        op = control_field(self.control, "OP")
        splits = op.matches(*(each for each in Op if each.splits_lanes))
        dense = {
            stream: control_field(self.control, f"{stream}_MODE") == Mode.DENSE for stream in "AYB"
        }
        lanes = {
            "A": control_field(self.control, "LANE"),
            "B": control_field(self.control, "LANE"),
            "Y": control_field(self.control, "OUT_LANE"),
        }
        bad = Signal(3)
        for index, stream in enumerate("AYB"):
            element = Signal(3, name=f"element_{stream}")
            m.d.comb += element.eq((1 << lanes[stream]) - 1)
            bound = ~dense[stream]
            if stream == "Y":
                bound = splits | ~(dense["A"] & dense["B"] & dense["Y"])
            m.d.comb += bad[index].eq((found.low[index] & element).any() & bound)
        return bad.any()

    def _bad_lane(self, op: Value, lane: Value, out_lane: Value) -> Value:
        config = self._configuration
        built = Array(each in config.lanes for each in Lane)
        fits = Array(each in config.lanes and each.bytes <= config.data_bytes for each in Lane)
        dense = Cat(control_field(self.control, f"{s}_MODE") == Mode.DENSE for s in "AYB").all()
        splits = op.matches(*(each for each in Op if each.splits_lanes))
        counted = out_lane.matches(Lane.BITS_8, Lane.BITS_32)
        return (
            Mux(op == Op.COUNT, ~counted, lane != out_lane)
            | (splits & ~built[lane])
            | (~dense & ~fits[lane])
        )

    def _bad_control(self, reads_b: Signal) -> Value:
        config = self._configuration
        modes = {s: control_field(self.control, f"{s}_MODE") for s in "AYB"}
        known = 0
        for bits in RECORD["CONTROL"].bits:
            known |= ((1 << bits.width) - 1) << bits.low
        unknown = Cat(self.control[bit] for bit in range(32) if not known >> bit & 1).any()
        bad = unknown | (control_field(self.control, "LOOPS") > config.loops)
        bad |= control_field(self.control, "LOOPS") == 0
        for mode in modes.values():
            bad |= ~mode.matches(*config.modes)
        return bad | (modes["Y"] == Mode.REPEAT) | (~reads_b & (modes["B"] != Mode.DENSE))
