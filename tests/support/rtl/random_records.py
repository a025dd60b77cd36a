"""Random records: sealed, plausible, and often wrong in one word, near the edge of its range.

They are for tests of refusals and of started commands; nothing executes them.
"""

import random

from bitlane_rtl.abi import RECORD, RECORD_WORDS, Lane, Op
from bitlane_rtl.configuration import Configuration
from support.commands import random_form, random_tests
from support.record import Record
from support.rtl.records import reseal

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
