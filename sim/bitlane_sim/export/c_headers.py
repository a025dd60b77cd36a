"""C headers of the contract and of one core: macros for the preprocessor alone. Text only.

Every number and every meaning comes from `bitlane_rtl.abi` and the core's configuration.
"""

import textwrap
from collections.abc import Iterator, Mapping, Sequence

from bitlane_rtl import abi
from bitlane_rtl.configuration import Configuration

_WIDTH = 100
_END = " */"
_DENSE = (abi.Mode.DENSE, abi.Mode.DENSE, abi.Mode.DENSE)
_CODES = (abi.Op, abi.Lane, abi.Mode, abi.Status, abi.Port)

_ACCESSORS = """\
/* A field's value in a word, and a word with nothing but a field's value. */
#define BITLANE_GET(word, field) (((uint32_t)(word) & field##_MASK) >> field##_SHIFT)
#define BITLANE_PUT(value, field) (((uint32_t)(value) << field##_SHIFT) & field##_MASK)
"""


def registers_header() -> str:
    """Return the header of the contract: offsets, fields, codes, the layout of records."""
    lines = [
        *_comment("The contract between a bitlane core and its driver, the same for every core."),
        *_comment("Written by bitlane export. SPDX-License-Identifier: MIT"),
        "",
        "#ifndef BITLANE_REGISTERS_H",
        "#define BITLANE_REGISTERS_H",
        "",
        "#include <stdint.h>",
        "",
        *_numbers(),
        "",
        *_ACCESSORS.splitlines(),
        "",
        *_comment("Registers, as offsets in the control window, and their fields."),
    ]
    for entry in abi.REGISTERS:
        lines += ["", *_comment(entry.summary), _hexadecimal(f"REG_{entry.name}", entry.offset)]
        lines += _fields(entry.name, entry.bits)
    lines += ["", *_comment("A completion: a word a slot, from COMPLETION_OFFSET on.")]
    lines += [*_fields("COMPLETION", abi.COMPLETION), "", *_record()]
    for codes in _CODES:
        lines += ["", *_comment(_first_paragraph(codes.__doc__))]
        for code in codes:
            lines += _comment(code.summary)
            lines.append(_macro(f"{codes.__name__.upper()}_{code.name}", code.value))
    return "\n".join([*lines, "", "#endif"]) + "\n"


def core_header(
    configuration: Configuration, name: str, command: str, built: Mapping[str, int]
) -> str:
    """Return the header of the core ``name``, written by ``command``: the limits of its commands.

    ``built`` are the `reset_values` of its registers.
    """
    prefix = name.upper()
    limits = {
        "DATA_BYTES": (configuration.data_bytes, "bytes in a beat"),
        "READ_PORTS": (1 + configuration.two_ports, "managers that read"),
        "SLOTS": (configuration.slots, "slots of the command ring"),
        "LOOPS": (configuration.loops, "most nested loops of a command, the run included"),
        "LENGTH_BITS": (configuration.length_bits, "a run has fewer than 2**LENGTH_BITS bytes"),
        "COUNT_BITS": (configuration.count_bits, "a count is less than 2**COUNT_BITS"),
    }
    lines = [
        *_comment(f"What the core called {name} was built with."),
        *_comment(f"Written by: {command}"),
        "",
        f"#ifndef {prefix}_H",
        f"#define {prefix}_H",
    ]
    for key, (value, meaning) in limits.items():
        lines += ["", *_comment(meaning), f"#define {prefix}_{key} {value}u"]
    for entry in abi.REGISTERS:
        if entry.reset is None:
            lines += ["", *_comment(f"Register {entry.name}: {entry.summary}")]
            lines.append(f"#define {prefix}_{entry.name} 0x{built[entry.name]:08x}u")
    return "\n".join([*lines, "", "#endif"]) + "\n"


def _numbers() -> Iterator[str]:
    with_b = sum(1 << op for op in abi.Op if op.reads_b)
    numbers = {
        "IDENTITY": (abi.IDENTITY, "what register IDENTITY reads"),
        "CONTROL_SIZE": (abi.CONTROL_SIZE, "bytes of the control window"),
        "COMPLETION_OFFSET": (abi.COMPLETION_OFFSET, "completions in the control window"),
        "RING_OFFSET": (abi.RING_OFFSET, "the command ring in the control window"),
        "OPS_WITH_B": (with_b, "bit op is 1 if the operation has a second operand"),
    }
    for name, (value, meaning) in numbers.items():
        yield from _comment(meaning)
        yield _hexadecimal(name, value)
    yield from _comment("what register VERSION reads")
    yield _macro("ABI_VERSION", abi.ABI_VERSION)
    yield from _comment("bytes of a register and of a word of a record")
    yield _macro("WORD_BYTES", abi.WORD_BYTES)


def _record() -> Iterator[str]:
    yield from _comment(
        "A command record: 32-bit words, of which the circuit reads the leading ones alone:"
        " WORDS_ONE_OPERAND or WORDS_TWO_OPERANDS of a command of one loop in which nothing is"
        " STRIDED, else WORDS_STRIDED, and LOOP_WORDS for each loop outside the run."
    )
    sizes = {
        "MAX_LOOPS": abi.MAX_LOOPS,
        "RECORD_WORDS": abi.RECORD_WORDS,
        "RECORD_BYTES": abi.RECORD_BYTES,
        "RECORD_SEAL": abi.RECORD_SEAL,
        "LOOP_WORDS": abi.loop_word(2) - abi.loop_word(1),
        "WORDS_ONE_OPERAND": abi.record_words(abi.Op.NOT, 1, _DENSE),
        "WORDS_TWO_OPERANDS": abi.record_words(abi.Op.XOR, 1, _DENSE),
        "WORDS_STRIDED": abi.record_words(abi.Op.NOT, 1, (abi.Mode.STRIDED, *_DENSE[1:])),
    }
    for name, value in sizes.items():
        yield _macro(name, value)
    for field in abi.RECORD.values():
        yield ""
        yield from _comment(field.summary)
        yield _macro(f"WORD_{field.name}", field.word)
        yield from _fields(field.name, field.bits)


def _fields(of: str, fields: Sequence[abi.Bits]) -> Iterator[str]:
    for bits in fields:
        if bits.summary:
            yield from _comment(bits.summary)
        mask = bits.insert((1 << bits.width) - 1)
        yield f"#define BITLANE_{of}_{bits.name}_SHIFT {bits.low}"
        yield f"#define BITLANE_{of}_{bits.name}_MASK 0x{mask:08x}u"


def _macro(name: str, value: int) -> str:
    return f"#define BITLANE_{name} {value}u"


def _hexadecimal(name: str, value: int) -> str:
    return f"#define BITLANE_{name} {value:#04x}u"


def _comment(text: str) -> list[str]:
    lines = textwrap.wrap(
        text,
        _WIDTH - len(_END),
        initial_indent="/* ",
        subsequent_indent=" * ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [*lines[:-1], lines[-1] + _END]


def _first_paragraph(text: str | None) -> str:
    return " ".join((text or "").split("\n\n")[0].split())
