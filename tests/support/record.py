"""The words of a record, taken apart by `abi`'s tables, and random records.

Random ones are sealed, plausible, and often wrong in one word, near the edge of its range.
"""

import random
from struct import Struct
from typing import Self

from bitlane_rtl.abi import RECORD, RECORD_WORDS, Lane, Mode, Op, Status, record_words
from bitlane_rtl.configuration import Configuration
from bitlane_sim.fields import Fields, Limits, refusals
from support.commands import random_form, random_tests
from support.rtl.records import reseal

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


_CONTROL = {bits.name: bits for bits in RECORD["CONTROL"].bits}
_UNNAMED = [at for at in range(32) if not any(bits.extract(1 << at) for bits in _CONTROL.values())]
"""The bits of CONTROL that belong to no field."""


def random_record(generator: random.Random, configuration: Configuration) -> list[int]:
    """Return all 32 words of a record; half can be executed, one in twenty has a wrong seal."""
    words = _good_record(generator, configuration)
    if generator.random() < 0.7:
        for _ in range(generator.choice([1, 1, 2])):
            _spoil(generator, configuration, words)
    sealed = reseal(words, Record(words).used)
    if generator.random() < 0.05:
        sealed[0] ^= 1 << generator.randrange(24, 32)
    return sealed


def _good_record(generator: random.Random, configuration: Configuration) -> list[int]:
    """Return a record that can be executed, but for its LAST words; unused words are rubbish."""
    if generator.choice(sorted(configuration.ops)) is Op.SEARCH:
        return _good_search(generator, configuration)
    form = random_form(generator, configuration)
    a_mode, b_mode, y_mode = form.modes
    fields = {
        "OP": form.op,
        "LANE": form.lane,
        "OUT_LANE": form.out_lane,
        "A_MODE": a_mode,
        "B_MODE": b_mode,
        "Y_MODE": y_mode,
        "LOOPS": generator.choice([1, generator.randint(1, configuration.loops)]),
    }
    flags = ("SATURATE", "ARITHMETIC", "FENCE", "INTERRUPT")
    fields |= {name: generator.getrandbits(1) for name in flags}
    fields |= {name.upper(): value for name, value in random_tests(generator, form.op).items()}
    words = [generator.getrandbits(32) for _ in range(RECORD_WORDS)]
    words[0] = sum(_CONTROL[name].insert(value) for name, value in fields.items())
    for name, entry in RECORD.items():
        if name == "RUN" or name.startswith("COUNT_"):
            words[entry.word] = generator.choice([1, 2, 3, generator.randint(1, 500)])
        elif name == "RESERVED":
            words[entry.word] = 0
        elif name.endswith(("_BASE", "_LAST")):
            inside = generator.randrange(configuration.memory_bytes)
            words[entry.word] = configuration.memory_base + inside & ~7
        elif name != "CONTROL":
            words[entry.word] &= ~7
    return words


def _good_search(generator: random.Random, configuration: Configuration) -> list[int]:
    """Return a SEARCH with sizes that the array supports."""
    search = configuration.search
    assert search is not None
    row = search.row_bits // 8
    queries = generator.choice([1, search.queries, generator.randint(1, search.queries)])
    fields = {"OP": Op.SEARCH, "LANE": Lane.BITS_8, "OUT_LANE": Lane.BITS_32, "LOOPS": 1}
    words = [generator.getrandbits(32) for _ in range(RECORD_WORDS)]
    words[0] = sum(_CONTROL[name].insert(value) for name, value in fields.items())
    words[RECORD["RUN"].word] = row * generator.choice([1, 2, generator.randint(1, 500)])
    base = configuration.memory_base
    sizes = {"A": 1, "B": queries * row, "Y": queries * search.nearest * 8}
    for name, size in sizes.items():
        start = base + generator.randrange(configuration.memory_bytes - size)
        start &= -8 if name == "Y" else -1
        words[RECORD[f"{name}_BASE"].word] = start
        words[RECORD[f"{name}_LAST"].word] = start + size - 1
    return words


def _spoil(generator: random.Random, configuration: Configuration, words: list[int]) -> None:
    """Change one field or word, to a value at an edge of its valid range or to a random one."""
    if generator.random() < 0.4:
        bits = generator.choice([*_CONTROL.values(), None])
        if bits is None:
            words[0] ^= 1 << generator.choice(_UNNAMED)
        else:
            most = (1 << bits.width) - 1
            values = [generator.randint(0, most), most]
            if bits.name == "OP":
                values = sorted(set(range(1 << bits.width)) - configuration.ops)
            value = generator.choice(values)
            words[0] = words[0] & ~bits.insert(most) | bits.insert(value)
        return
    record = Record(words)
    name = generator.choice([name for name in RECORD if name != "CONTROL" and record.uses(name)])
    value = generator.choice([*_edges(configuration, name), generator.getrandbits(32)])
    words[RECORD[name].word] = value % (1 << 32)


def _edges(configuration: Configuration, name: str) -> list[int]:
    """Return values around the bounds of the word ``name``."""
    if name == "RUN":
        longest = 1 << configuration.length_bits
        return [0, *(longest >> lane for lane in Lane), longest - 1, (longest >> 3) - 1]
    if name.startswith("COUNT_"):
        return [0, (1 << configuration.count_bits) - 1, 1 << configuration.count_bits]
    if name.endswith(("_BASE", "_LAST")):
        first, last = configuration.memory_base, configuration.memory_last
        return [first - 1, first - 8, first, last, last + 1, first + 1, first + 2, first + 4]
    return [0, 1, 2, 4, 8, -4, -8]
