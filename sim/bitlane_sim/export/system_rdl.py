"""A core's control window in SystemRDL 2.0, for register tools. Text only.

Every number and every meaning comes from `bitlane_rtl.abi` and the core's configuration.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from bitlane_rtl import abi
from bitlane_rtl.configuration import Configuration

_CODES = (abi.Op, abi.Lane, abi.Mode, abi.Status, abi.Port)

RESERVED = frozenset(
    # SystemRDL 2.0, annex A, in the order of its table of keywords.
    """
    abstract accesstype addressingtype addrmap alias all bit boolean bothedge compact component
    componentwidth constraint default encode enum external false field fullalign hw inside internal
    level longint mem na negedge nonsticky number onreadtype onwritetype posedge property r rclr ref
    reg regalign regfile rset ruser rw rw1 signal string struct sw this true type unsigned w w1 wclr
    woclr woset wot wr wset wuser wzc wzs wzt
    alternate byte int precedencetype real shortint shortreal signed with within
    """.split()  # noqa: SIM905
) | {codes.__name__ for codes in _CODES}
"""Names that an address map cannot have: keywords, and those of the file's enumerations."""

_ACCESS = {
    abi.Access.READ: "sw = r; hw = w;",
    abi.Access.READ_WRITE: "sw = rw; hw = r;",
    abi.Access.WRITE: "sw = w; hw = r;",
}


def system_rdl(
    configuration: Configuration, name: str, command: str, built: Mapping[str, int]
) -> str:
    """The address map ``name`` of the core that ``command`` wrote.

    ``built`` are the `reset_values` of its registers.
    """
    lines = [f"// Written by: {command}", "// SPDX-License-Identifier: MIT", ""]
    for codes in _CODES:
        lines += [f"enum {codes.__name__} {{", *_indented(_values(codes)), "};", ""]
    inside: list[str] = [
        f'name = "{name}";',
        f'desc = "Control window of a bitlane core, ABI version {abi.ABI_VERSION}.";',
        "littleendian;",
        "default regwidth = 32;",
        "default accesswidth = 32;",
    ]
    for entry in abi.REGISTERS:
        fields = _fields(entry.bits, entry.access, built[entry.name])
        inside += ["", *_register(entry.name, entry.summary, fields, f"@ {entry.offset:#x}")]
    completion = _fields(abi.COMPLETION, abi.Access.READ, 0)
    place = f"[{configuration.slots}] @ {abi.COMPLETION_OFFSET:#x}"
    inside += ["", *_register("COMPLETION", "a word a slot", completion, place)]
    inside += ["", *_ring(configuration.slots)]
    return "\n".join([*lines, f"addrmap {name} {{", *_indented(inside), "};"]) + "\n"


def _ring(slots: int) -> Iterator[str]:
    yield "regfile {"
    yield '  desc = "the command ring: a record a slot";'
    for field in abi.RECORD.values():
        place = f"@ {field.word * abi.WORD_BYTES:#x}"
        fields = _fields(field.bits, abi.Access.WRITE, None)
        yield from _indented(_register(field.name, field.summary, fields, place))
    yield f"}} RING[{slots}] @ {abi.RING_OFFSET:#x} += {abi.RECORD_BYTES:#x};"


def _register(name: str, meaning: str, fields: Iterable[str], place: str) -> Iterator[str]:
    yield "reg {"
    yield f"  desc = {_quoted(meaning)};"
    yield from _indented(fields)
    yield f"}} {name}{place if place.startswith('[') else ' ' + place};"


def _fields(bits: Sequence[abi.Bits], access: abi.Access, reset: int | None) -> Iterator[str]:
    """Fields of a register that reads ``reset`` after reset; one of 32 bits if it has none."""
    for field in bits or (abi.Bits("VALUE", 0, 32),):
        said = [_ACCESS[access]]
        if field.clears:
            said = ["sw = rw; onwrite = woclr; hw = w;"]
        if field.codes:
            said.append(f"encode = {field.codes.__name__};")
        if field.summary:
            said.append(f"desc = {_quoted(field.summary)};")
        start = "" if reset is None else f" = {field.extract(reset):#x}"
        place = f"[{field.low + field.width - 1}:{field.low}]"
        yield f"field {{ {' '.join(said)} }} {field.name}{place}{start};"


def _values(codes: type[abi.Code]) -> Iterator[str]:
    for code in codes:
        yield f"{code.name} = {code.value} {{ desc = {_quoted(code.summary)}; }};"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _indented(lines: Iterable[str]) -> Iterator[str]:
    return (f"  {line}" if line else "" for line in lines)
