"""Rewrite the Verilog of Yosys for readers: names, heads and attributes, but no logic."""

import re
from collections.abc import Iterator, Mapping

from .destination import is_identifier

_MODULE = re.compile(
    r"^((?:\(\*[^\n]*\*\)\n)*)module (\S+) ?\(([^;]*)\);\n(.*?)^endmodule\n", re.M | re.S
)
_ATTRIBUTE = re.compile(r'( *)\(\* (\w+) = +("[^"]*"|\S+) +\*\)(\n| ?)')
_ESCAPED = re.compile(r"\\(\S+) ")
_WORD = re.compile(r"[A-Za-z_]\w*")
_PORT = re.compile(
    r"^((?:  \(\*.*\*\)\n)*)  (input|output) ((?:\[\d+:\d+\] )?)(\w+) *;\n"
    r"  (wire|reg) .*?( = [^;]+)?;\n",
    re.M,
)
_START = re.compile(r"^  reg ((?:\[\d+:\d+\] )?)(\w+) = ([^;]+);$", re.M)
_ZEROS = re.compile(r"^  initial begin\n((?:    (\w+)\[\d+\] = (\d+'[dh]0+);\n)+)  end\n", re.M)
_KEPT = frozenset({"keep", "no_rw_check", "ram_style"})
"""Attributes that tools read."""

_PACKAGE = "bitlane_rtl/"
"""The folder that source locations start from."""


def rewritten(text: str, comments: Mapping[str, str], *, sources: bool) -> str:
    """Return ``text`` of Yosys with plain names, heads that list ports, and few attributes.

    The first module is the top; ``comments`` has the comments of its ports by name, in the order in
    which its head lists them. ``sources`` keeps the source locations in `bitlane_rtl`, relative to
    it; Amaranth's and Python's would differ between two installations.
    """

    def attribute(found: re.Match[str]) -> str:
        indent, name, value, end = found.groups()
        if name == "src" and sources:
            own = [x[x.rindex(_PACKAGE) :] for x in value[1:-1].split("|") if f"/{_PACKAGE}" in x]
            if own:
                return f'{indent}(* src = "{"|".join(own)}" *){end}'
        elif name in _KEPT:
            return found[0]
        return "" if end == "\n" else indent

    text = _plain_names(_ATTRIBUTE.sub(attribute, text))
    first, *others = _MODULE.finditer(text)
    modules = [_module(first, comments), *(_module(each, {}) for each in others)]
    return "\n".join([text[: first.start()].rstrip() + "\n", *modules])


def _plain_names(text: str) -> str:
    """Replace escaped identifiers by plain ones, each by the same one in all modules."""
    used = set(_WORD.findall(_ESCAPED.sub("", text)))
    names: dict[str, str] = {}

    def plain(found: re.Match[str]) -> str:
        escaped = found[1]
        if escaped not in names:
            name = re.sub(r"\W+", "_", escaped)
            while name in used or not is_identifier(name):
                name += "_"
            used.add(name)
            names[escaped] = name
        return names[escaped]

    return _ESCAPED.sub(plain, text)


def _module(found: re.Match[str], comments: Mapping[str, str]) -> str:
    attributes, name, listed, body = found.groups()
    ports: dict[str, str] = {}
    starts: list[str] = []

    def port(found: re.Match[str]) -> str:
        attribute, direction, width, port, kind, start = found.groups()
        ports[port] = f"{attribute}  {direction} {kind} {width}{port}"
        if start:
            starts.append(f"  initial {port}{start};\n")
        return ""

    body = _PORT.sub(port, body)
    body = "".join(starts) + _ZEROS.sub(_loop, _START.sub(_separate, body))
    order = [x for x in comments if x in ports]
    order += [x for x in re.findall(r"\w+", listed) if x not in comments]
    head = "".join(_head([ports[x] for x in order], [comments.get(x, "") for x in order]))
    return f"{attributes}module {name}(\n{head});\n{body}endmodule\n"


def _head(ports: list[str], comments: list[str]) -> Iterator[str]:
    """Yield the lines of a list of ports; a comment stands above the ports that share it."""
    shown = ""
    for number, (port, comment) in enumerate(zip(ports, comments, strict=True), 1):
        if comment != shown:
            yield f"  // {comment}\n"
            shown = comment
        yield f"{port}{',' if number < len(ports) else ''}\n"


def _separate(declaration: re.Match[str]) -> str:
    """Move a register's start value into a statement.

    Verilator reports the value in the declaration as PROCASSINIT, a name that 5.30 refuses.
    """
    width, register, value = declaration.groups()
    return f"  reg {width}{register};\n  initial {register} = {value};"


def _loop(found: re.Match[str]) -> str:
    """Return one loop in place of a line for each row of a memory whose rows all start at 0."""
    rows, memory, zero = found.groups()
    count = rows.count("\n")
    if rows != "".join(f"    {memory}[{row}] = {zero};\n" for row in range(count)):
        return found[0]
    return (
        f"  initial begin : {memory}_start\n    integer row;\n"
        f"    for (row = 0; row < {count}; row = row + 1) {memory}[row] = {zero};\n  end\n"
    )
