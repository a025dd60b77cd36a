"""The words of a record, taken apart by `abi`'s tables."""

from struct import Struct
from typing import Self

from bitlane_rtl.abi import RECORD, RECORD_WORDS, Lane, Mode, Op, Status, record_words
from bitlane_sim.fields import Fields, Limits, refusals

_SLOT = Struct(f"<{RECORD_WORDS}I")

RUBBISH = 0xEEEE_EEEE
"""The content of words that no command uses."""


class Record:
    """A record of up to 32 words. A missing word is read as `RUBBISH`."""

    def __init__(self, words: list[int]) -> None:
        self.words = [*words, *[RUBBISH] * (RECORD_WORDS - len(words))]
        control = {bits.name: bits.extract(words[0]) for bits in RECORD["CONTROL"].bits}
        self.control = control
        self.op = control["OP"]
        self.loops = control["LOOPS"]
        self.modes = (control["A_MODE"], control["B_MODE"], control["Y_MODE"])
        self.run = self.word("RUN")

    @classmethod
    def of(cls, content: bytes) -> Self:
        """Return the record in a slot that holds ``content``."""
        return cls(list(_SLOT.unpack(content)))

    @property
    def content(self) -> bytes:
        """The 128 bytes of a slot with this record."""
        return _SLOT.pack(*self.words)

    def word(self, name: str) -> int:
        return self.words[RECORD[name].word]

    def signed(self, name: str) -> int:
        value = self.word(name)
        return value - (1 << 32) if value >> 31 else value

    @property
    def used(self) -> int:
        """The number of words that the circuit reads and seals."""
        return record_words(self.op, self.loops, self.modes)

    def uses(self, name: str) -> bool:
        """Return whether the circuit reads the word ``name``."""
        return RECORD[name].word < self.used

    @property
    def lane(self) -> Lane:
        return Lane(self.control["LANE"])

    @property
    def out_lane(self) -> Lane:
        return Lane(self.control["OUT_LANE"])

    @property
    def sums(self) -> bool:
        """Whether Y is a SUM."""
        return bool(self.modes[2] == Mode.SUM)

    @property
    def streams(self) -> str:
        """The letters of the command's streams; ``op`` must exist."""
        return "ABY" if Op(self.op).reads_b else "AY"

    @property
    def counts(self) -> list[int]:
        """Iterations of the loops outside the run, the innermost first."""
        return [self.word(f"COUNT_{loop}") for loop in range(1, self.loops)]

    def mode(self, stream: str) -> Mode:
        return Mode(self.control[f"{stream}_MODE"])

    def size(self, stream: str) -> int:
        """Return the bytes of an element."""
        return (self.out_lane if stream == "Y" else self.lane).bytes

    def jumps(self, stream: str) -> list[int]:
        return [self.signed(f"{stream}_JUMP_{loop}") for loop in range(1, self.loops)]

    def refusal(self, circuit: object) -> Status:
        """Return the code with which ``circuit``, a `Configuration`, refuses the record, or OK."""
        used = self.words[: self.used]
        return Status(refusals(Fields(used + [0] * (RECORD_WORDS - len(used))), Limits.of(circuit)))
