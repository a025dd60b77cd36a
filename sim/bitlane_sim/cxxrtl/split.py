"""Split wires of a flat netlist where their drivers meet, as Yosys's `splitnets -driver` does.

CXXRTL orders the evaluation by whole wires. Where parts of one wire depend on each other, or a part
comes from a register and another one from logic, it needs several passes for a cycle; split, it
does not. The Yosys that comes with Amaranth has no `splitnets`.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

__all__ = ["split_wires"]

# Ports of cells that drive something.
_OUTPUTS = ("\\Y", "\\Q", "\\DATA", "\\RD_DATA")
_REFERENCE = re.compile(r"([\\$]\S+)(?: \[(\d+)(?::(\d+))?\])?")
_INIT = re.compile(r"  attribute \\init \d+'([01x]+)$")


@dataclass(slots=True)
class _Wire:
    width: int
    output: bool
    init: str = ""
    edges: set[int] = field(default_factory=set)

    @property
    def pieces(self) -> list[tuple[int, int]]:
        """First and last bit of every piece, lowest first."""
        cuts = sorted(self.edges | {0, self.width})
        return [(low, high - 1) for low, high in pairwise(cuts)]


def split_wires(netlist: str, names: Collection[str]) -> str:
    """``netlist``, an RTLIL text without processes, with the wires ``names`` split.

    Names are those of RTLIL, with their leading backslash or dollar. Wires that cannot be split,
    because they are inputs or have one driver, stay as they are.
    """
    lines = netlist.splitlines()
    wires = _find(lines, set(names))
    for line in lines:
        driven = _driven(line)
        for name, high, low in _references(driven, wires):
            wires[name].edges |= {low, high + 1}
    wires = {name: wire for name, wire in wires.items() if len(wire.pieces) > 1}
    return "\n".join(_rewrite(lines, wires)) + "\n"


def _find(lines: list[str], names: set[str]) -> dict[str, _Wire]:
    wires: dict[str, _Wire] = {}
    init = ""
    for line in lines:
        match = _INIT.match(line)
        if match:
            init = match[1]
        elif line.startswith("  wire "):
            words = line.split()
            if words[-1] in names and "input" not in words:
                width = int(words[words.index("width") + 1]) if "width" in words else 1
                wires[words[-1]] = _Wire(width, "output" in words, init)
            init = ""
    return wires


def _driven(line: str) -> str:
    """The part of a line that names what is driven."""
    words = line.split(maxsplit=2)
    if len(words) < 3 or words[0] != "connect":
        return ""
    if line.startswith("    "):
        return words[2] if words[1] in _OUTPUTS else ""
    rest = line.strip().removeprefix("connect ")
    if rest.startswith("{"):
        return rest[: rest.index(" }") + 2]
    match = _REFERENCE.match(rest)
    return match[0] if match else ""


def _references(text: str, wires: dict[str, _Wire]) -> Iterator[tuple[str, int, int]]:
    for match in _REFERENCE.finditer(text):
        if match[1] in wires:
            yield match[1], *_range(match, wires[match[1]].width)


def _range(match: re.Match[str], width: int) -> tuple[int, int]:
    if match[2] is None:
        return width - 1, 0
    high = int(match[2])
    return high, int(match[3]) if match[3] is not None else high


def _piece(name: str, low: int, high: int) -> str:
    return f"$split{name}${high}${low}"


def _rewrite(lines: list[str], wires: dict[str, _Wire]) -> Iterator[str]:
    def replace(match: re.Match[str]) -> str:
        wire = wires.get(match[1])
        if wire is None:
            return match[0]
        high, low = _range(match, wire.width)
        parts = []
        for first, last in wire.pieces:
            begin, end = max(first, low), min(last, high)
            if begin <= end:
                part = _piece(match[1], first, last)
                whole = (begin, end) == (first, last)
                parts.append(part if whole else f"{part} [{end - first}:{begin - first}]")
        # Ranges of a wire and of its pieces both count from the least significant bit.
        return parts[0] if len(parts) == 1 else "{ " + " ".join(reversed(parts)) + " }"

    attributes: list[str] = []
    for line in lines:
        if line.startswith("  attribute "):
            attributes.append(line)
            continue
        name = line.rsplit(maxsplit=1)[-1] if line.startswith("  wire ") else ""
        wire = wires.get(name)
        if wire is None:
            yield from attributes
        if wire is not None:
            for first, last in wire.pieces:
                if wire.init:
                    bits = wire.init[wire.width - 1 - last : wire.width - first]
                    yield f"  attribute \\init {len(bits)}'{bits}"
                yield f"  wire width {last - first + 1} {_piece(name, first, last)}"
            if wire.output:
                yield line
        elif line.lstrip().startswith("connect "):
            head = re.match(r"    connect \\\S+ ", line)
            start = head.end() if head else 0
            yield line[:start] + _REFERENCE.sub(replace, line[start:])
        elif line == "end":
            for name, wire in wires.items():
                if wire.output:
                    parts = [_piece(name, *piece) for piece in reversed(wire.pieces)]
                    yield f"  connect {name} {{ {' '.join(parts)} }}"
            yield line
        else:
            yield line
        attributes.clear()
