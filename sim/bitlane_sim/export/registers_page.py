"""The page docs/registers.md, rendered from `bitlane_rtl.abi`; `make registers` writes it."""

import re
from collections.abc import Iterable, Sequence
from inspect import cleandoc
from textwrap import wrap

from bitlane.driver import Command, Walk, encode
from bitlane_rtl import abi
from bitlane_rtl.abi import RECORD, Lane, Mode, Op

_WIDTH = 100
"""Characters in a line of text."""

_ROW_WIDTH = 125
"""Characters in a row of a table; a longer meaning is a list item below the table."""

STORY = """\
XOR of 3 rows of 10 elements of 16 bits. A's elements are 4 bytes apart and its rows 64 bytes, from
0x1002. One row of B, at 0x2000, is used for all three. Y's rows are contiguous from 0x3000."""

EXAMPLE = Command(
    Op.XOR,
    Lane.BITS_16,
    Lane.BITS_16,
    run=10,
    a=Walk(0x1002, 0x1002 + 2 * 64 + 9 * 4 + 1, Mode.STRIDED, stride=4, jumps=(64 - 9 * 4,)),
    b=Walk(0x2000, 0x2000 + 19, jumps=(0,)),
    y=Walk(0x3000, 0x3000 + 59, jumps=(20,)),
    counts=(3,),
)

_WHY = {
    "RUN": "elements in a row",
    "A_BASE": "first byte of A",
    "A_LAST": "its last: 2 rows of 64 bytes, 9 elements of 4, and the element's second byte on",
    "Y_BASE": "first byte of Y",
    "Y_LAST": "its last: 3 rows of 20 bytes",
    "B_BASE": "first byte of B",
    "B_LAST": "its last: a row of 20 bytes",
    "A_STRIDE": "from one element of A to the next",
    "Y_STRIDE": "Y is DENSE",
    "B_STRIDE": "B is DENSE",
    "RESERVED": "",
    "COUNT_1": "rows",
    "A_JUMP_1": "64 - 4 * 9: from a row's last element to the next row's first",
    "Y_JUMP_1": "from a row's start to the next one's, as Y is DENSE",
    "B_JUMP_1": "the same row again",
}


def rows() -> list[tuple[int, str, int, str]]:
    """Number, name and value of each word of the example, and where the value comes from."""
    words = encode(EXAMPLE).tolist()
    names = list(RECORD)[: len(words)]
    fields = [f"{bits.name} {bits.extract(words[0]):#x}" for bits in RECORD["CONTROL"].bits]
    why = {"CONTROL": ", ".join(fields), **_WHY}
    return [(number, name, words[number], why[name]) for number, name in enumerate(names)]


_ACCESS = {
    abi.Access.READ: "read",
    abi.Access.READ_WRITE: "read, write",
    abi.Access.WRITE: "write",
}


def _table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """Return a table and an empty line. Long cells of its last column follow as a list."""
    lines = [heads, ["---"] * len(heads)]
    below: list[str] = []
    for row in rows:
        *first, last = (_plain(str(cell)) for cell in row)
        if len(_row([*first, last])) > _ROW_WIDTH:
            below += _wrapped(f"- {first[1]}: {last}")
            last = "see below"
        lines.append([*first, last])
    return [*map(_row, lines), "", *below, *([""] if below else [])]


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _plain(text: str) -> str:
    """Return ``text`` without powers: two of them in a line would make the text between bold."""
    return text.replace("**", "^")


def _wrapped(text: str) -> list[str]:
    """Return the lines of a paragraph or of an item of a list."""
    return wrap(
        text,
        _WIDTH,
        subsequent_indent=" " * (len(text) - len(_ITEM.sub("", text))),
        break_long_words=False,
        break_on_hyphens=False,
    )


_ITEM = re.compile(r"^(- |\d\. )")
"""The beginning of an item of a list."""


def _position(bits: abi.Bits) -> str:
    high = bits.low + bits.width - 1
    return str(high) if bits.width == 1 else f"{high}:{bits.low}"


def _bits(title: str, fields: Sequence[abi.Bits]) -> list[str]:
    rows = [(_position(bits), f"`{bits.name}`", bits.summary) for bits in fields]
    return [f"### {title}", "", *_table(("Bits", "Field", "Meaning"), rows)]


def _codes(title: str, codes: type[abi.Code]) -> list[str]:
    rows = [(f"{code.value:#x}", f"`{code.name}`", code.summary) for code in codes]
    return [f"### {title}", "", *_table(("Value", "Name", "Meaning"), rows)]


def _paragraphs(text: str) -> list[str]:
    """Return the lines of the paragraphs of ``text``, with an empty line after each."""
    paragraphs = cleandoc(text).split("\n\n")
    return [line for part in paragraphs for line in (*_wrapped(" ".join(part.split())), "")]


def _reset(entry: abi.Register) -> str:
    return "as built" if entry.reset is None else f"`{entry.reset:#x}`"


def _window() -> list[str]:
    """The control window, and the registers in it."""
    registers = [
        (
            f"`{entry.offset:#04x}`",
            f"`{entry.name}`",
            _ACCESS[entry.access],
            _reset(entry),
            entry.summary,
        )
        for entry in abi.REGISTERS
    ]
    size = abi.REGISTERS[-1].offset + abi.WORD_BYTES
    lines = [
        "## Control window",
        "",
        *_table(
            ("Offset", "Size", "What"),
            [
                ("`0x0000`", f"`{size:#06x}`", "registers"),
                (f"`{abi.COMPLETION_OFFSET:#06x}`", "a word a slot", "completions, read-only"),
                (
                    f"`{abi.RING_OFFSET:#06x}`",
                    f"{abi.RECORD_BYTES} bytes a slot",
                    "command ring, write-only",
                ),
            ],
        ),
        "## Registers",
        "",
        *_table(("Offset", "Register", "Access", "After reset", "Meaning"), registers),
    ]
    for entry in abi.REGISTERS:
        if any(bits.summary for bits in entry.bits):
            lines += _bits(entry.name, entry.bits)
    return [*lines, *_bits("Completion", abi.COMPLETION)]


def _record() -> list[str]:
    """The command record, and the example."""
    words = [
        (field.word, f"`{field.name}`", field.summary)
        for field in abi.RECORD.values()
        if field.loop < 2
    ]
    example = [
        (number, f"`{name}`", f"`{value:#010x}`", why) for number, name, value, why in rows()
    ]
    return [
        "## Command record",
        "",
        *_paragraphs(
            f"{abi.RECORD_WORDS} words, of which a command uses the leading ones: see Words in use."
            f" The bytes of these XOR to RECORD_SEAL, `{abi.RECORD_SEAL:#04x}`."
        ),
        *_table(("Word", "Field", "Meaning"), [*words, *_outer_loops()]),
        *_paragraphs(
            "With byte steps `step_k` of loop `k`, where loop 0 is the run and takes part only if"
            " the stream is STRIDED:"
        ),
        "```text",
        "JUMP_k = step_k - sum(step_i * (count_i - 1) for i < k)",
        "```",
        "",
        *_paragraphs(
            "Strides and jumps are signed, modulo 2^32. Rows -16 bytes apart, of 4 STRIDED elements"
            " -2 bytes apart, have JUMP_1 = -16 + 2 * 3 = -10."
        ),
        *_bits("CONTROL", abi.RECORD["CONTROL"].bits),
        "### Example",
        "",
        *_paragraphs(STORY),
        *_table(("Word", "Field", "Value", "Why"), example),
    ]


def _outer_loops() -> list[tuple[str, str, str]]:
    """Return a row for each loop outside loop 1, which has the same four words."""
    loops = range(2, abi.MAX_LOOPS)
    fields = [[x for x in abi.RECORD.values() if x.loop == loop] for loop in loops]
    return [
        (
            f"{words[0].word} to {words[-1].word}",
            ", ".join(f"`{field.name}`" for field in words),
            f"the same for loop {loop}",
        )
        for loop, words in zip(loops, fields, strict=True)
    ]


def _running(slots: int | None) -> list[str]:
    """The steps of a driver."""
    number = "2^GEOMETRY.SLOTS_LOG2" if slots is None else str(slots)
    steps = f"""\
        1. Write the leading words of command i's record to the ring, at
        `{abi.RING_OFFSET:#06x}` + {abi.RECORD_BYTES} (i mod {number}).

        2. Write i + 1 to DOORBELL, modulo 2^16. It may exceed RETIRED by at most {number}; one that
        exceeds it by more stops the core with {abi.Status.BAD_DOORBELL.name}.

        3. Wait until RETIRED is i + 1, or STATUS.FAULT is 1; or set INTERRUPT.ENABLE, and the flag
        INTERRUPT in the record, and wait for the interrupt line. Then write 1 to INTERRUPT.PENDING
        first, and read RETIRED and STATUS after it.

        4. If STATUS.FAULT is 1, read FAULT and FAULT_ADDRESS, write 1 to CLEAR, and wait until
        STATUS.BUSY, FAULT and DOORBELL are 0. Commands that had not retired are gone.
        """
    return [
        "## Running commands",
        "",
        *_paragraphs(
            f"Read IDENTITY, which is `{abi.IDENTITY:#010x}`, and VERSION, which is"
            f" {abi.ABI_VERSION}: another core has other registers. Then read GEOMETRY. Commands"
            " are counted from 0 since reset or CLEAR: the next one, i, has the number in DOORBELL,"
            " which is 0 after CLEAR."
        ),
        *(line for line in _paragraphs(steps) if line),
        "",
    ]


_PLACE = f"; bitlane's links show it at `{abi.CONTROL_BASE:#010x}`, and a SoC maps it to its bus"


def render(slots: int | None = None) -> str:
    """Return the whole page, Markdown: of any core, or of a core with ``slots`` in a SoC."""
    lines = [
        "# Registers and command record",
        "",
        "<!-- Written by `make registers` from rtl/bitlane_rtl/abi/. Change it there. -->",
        "",
        *_paragraphs(
            f"ABI version {abi.ABI_VERSION}, identity `{abi.IDENTITY:#010x}`. All words are 32"
            " bits, little-endian. Offsets are bytes from the start of the control window, which is"
            f" {abi.CONTROL_SIZE // 1024} KiB{_PLACE if slots is None else ''}."
        ),
        *_window(),
        *_running(slots),
        *_record(),
        "## Codes",
        "",
        *_codes("Op", abi.Op),
        *_codes("Lane", abi.Lane),
        *_codes("Mode", abi.Mode),
        *_codes("Status", abi.Status),
        "The lowest code that applies is the one that a command is refused with.",
        "",
        *_codes("Port", abi.Port),
        "## Rules",
        "",
    ]
    for rule in abi.RULES:
        lines += [f"### {rule.title}", "", *_paragraphs(rule.text)]
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    print(render(), end="")
