"""The page docs/registers.md, rendered from `bitlane_rtl.abi`: `python -m bitlane.abi_page`.

Rendering only: whatever the page says about the contract must stand in `abi`.
"""

from collections.abc import Iterable, Sequence
from enum import IntEnum

from bitlane_rtl import abi

__all__ = ["page"]

_ACCESS = {
    abi.Access.READ: "read",
    abi.Access.READ_WRITE: "read, write",
    abi.Access.WRITE: "write",
}


def _table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    lines = [heads, ["---"] * len(heads), *rows]
    return ["| " + " | ".join(str(cell) for cell in line) + " |" for line in lines] + [""]


def _position(bits: abi.Bits) -> str:
    high = bits.low + bits.width - 1
    return str(high) if bits.width == 1 else f"{high}:{bits.low}"


def _bits(title: str, fields: Sequence[abi.Bits]) -> list[str]:
    rows = [(_position(bits), f"`{bits.name}`", bits.summary) for bits in fields]
    return [f"### {title}", "", *_table(("Bits", "Field", "Meaning"), rows)]


def _codes(title: str, codes: type[IntEnum], width: int = 1) -> list[str]:
    rows = [(f"{code.value:#0{width + 2}x}", f"`{code.name}`") for code in codes]
    return [f"### {title}", "", *_table(("Value", "Name"), rows)]


def page() -> str:
    """The whole page, Markdown."""
    lines = [
        "# Registers and command record",
        "",
        "<!-- Written by `make docs` from rtl/bitlane_rtl/abi/. Change it there. -->",
        "",
        (
            f"ABI version {abi.ABI_VERSION}, identity `{abi.IDENTITY:#010x}`. All words are 32"
            " bits, little-endian. Offsets are bytes from the start of the control window, which is"
            f" {abi.CONTROL_SIZE // 1024} KiB and which a link shows at `{abi.CONTROL_BASE:#010x}`."
            " Reading a register has no side effects."
        ),
        "",
        "## Control window",
        "",
        *_table(
            ("Offset", "Size", "What"),
            [
                ("`0x0000`", f"`{abi.REGISTERS[-1].offset + abi.WORD_BYTES:#06x}`", "registers"),
                (
                    f"`{abi.COMPLETION_OFFSET:#06x}`",
                    "a word a slot",
                    "completions: `Status` in bits 7:0, the command's index modulo 2^24 above",
                ),
                (
                    f"`{abi.RING_OFFSET:#06x}`",
                    f"{abi.RECORD_BYTES} bytes a slot",
                    "command ring, write-only",
                ),
            ],
        ),
        "## Registers",
        "",
        *_table(
            ("Offset", "Register", "Access", "Meaning"),
            [
                (f"`{entry.offset:#04x}`", f"`{entry.name}`", _ACCESS[entry.access], entry.summary)
                for entry in abi.REGISTERS
            ],
        ),
    ]
    for entry in abi.REGISTERS:
        if any(bits.summary for bits in entry.bits):
            lines += _bits(entry.name, entry.bits)
    lines += [
        "## Command record",
        "",
        (
            f"{abi.RECORD_WORDS} words, of which a command uses the leading 6 (dense, one operand),"
            " 8 (dense, two operands) or 12 + 4 (loops - 1). The circuit reads no others. The bytes"
            f" of the words in use XOR to `{abi.RECORD_SEAL:#04x}`."
        ),
        "",
        *_table(
            ("Word", "Field", "Meaning"),
            [(field.word, f"`{field.name}`", field.summary) for field in abi.RECORD.values()],
        ),
        (
            "With byte steps `step_k` of loop `k`, where loop 0 is the run and takes part only if"
            " the stream is STRIDED:"
        ),
        "",
        "    JUMP_k = step_k - sum(step_i * (count_i - 1) for i < k)",
        "",
        "Strides and jumps are signed, modulo 2^32.",
        "",
        *_bits("CONTROL", abi.RECORD["CONTROL"].bits),
        "## Codes",
        "",
        *_codes("Op", abi.Op),
        *_codes("Lane", abi.Lane),
        *_codes("Mode", abi.Mode),
        *_codes("Status", abi.Status),
        *_codes("Port", abi.Port),
    ]
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    print(page(), end="")
