"""A save file for GTKWave beside a waveform file: streams in groups, enumerations by their names.

Reads the waveform file's header alone.
"""

from collections import defaultdict
from collections.abc import Iterator
from enum import IntEnum
from itertools import takewhile
from pathlib import Path
from typing import Final

from vcd.gtkw import GTKWSave, make_translation_filter

from bitlane_rtl.abi import Lane, Mode, Op, Status

from ..system import Violation

_ENUMERATIONS: Final[dict[str, type[IntEnum]]] = {
    "op": Op,
    "lane": Lane,
    "mode": Mode,
    "code": Status,
    "violation": Violation,
}
"""Enumerations of the signals with these names."""

_BUSES: Final = ("m_axi__", "m_axi_b__")
"""Prefixes of the memory's channels, which are shown unfolded; other streams are folded."""

_Scopes = dict[str, dict[str, int]]
"""Bits by name, of the signals in each scope that hold numbers."""


def write_save_file(waves: Path) -> None:
    """Write the save file of ``waves``, a VCD file, and a file for each enumeration, beside it.

    They are called like it, with other suffixes. Raises ``OSError``.
    """
    scopes = _scopes(waves)
    filters = {}
    for name, kind in _ENUMERATIONS.items():
        filters[name] = waves.with_suffix(f".{name}.txt").absolute()
        bits = max(kind).bit_length()
        rows = [(member.value, member.name) for member in kind]
        filters[name].write_text(make_translation_filter(rows, size=bits), encoding="utf-8")
    with waves.with_suffix(".gtkw").open("w", encoding="utf-8") as file:
        save = GTKWSave(file)
        save.dumpfile(str(waves))
        for title, names in _streams(scopes):
            with save.group(title, closed=not title.rpartition(".")[2].startswith(_BUSES)):
                for name in names:
                    save.trace(name, alias=name.rpartition(".")[2])
        with save.group("enumerations"):
            for scope, signals in scopes.items():
                for name in _ENUMERATIONS.keys() & signals.keys():
                    alias = f"{scope.rpartition('.')[2]}.{name}"
                    full = f"{scope}.{_ranged(name, signals[name])}"
                    save.trace(full, alias=alias, translate_filter_file=str(filters[name]))


def _scopes(waves: Path) -> _Scopes:
    scopes: _Scopes = defaultdict(dict)
    path: list[str] = []
    with waves.open(encoding="utf-8") as file:
        for line in takewhile(lambda line: not line.startswith("$enddefinitions"), file):
            match line.split():
                case ["$scope", _, name, *_]:
                    path.append(name)
                case ["$upscope", *_]:
                    path.pop()
                case ["$var", "wire", bits, _, name, *_]:
                    scopes[".".join(path)][name] = int(bits)
    return scopes


def _streams(scopes: _Scopes) -> Iterator[tuple[str, list[str]]]:
    """Title and signals of each stream: valid and ready, then what they go with."""
    found = []
    for scope, signals in scopes.items():
        for name in signals:
            stream = name.removesuffix("valid")
            ends = f"{stream}valid", f"{stream}ready"
            if stream in ("", name) or ends[1] not in signals:
                continue
            rest = [x for x in signals if x.startswith(stream) and x not in ends]
            members = [f"{scope}.{_ranged(x, signals[x])}" for x in (*ends, *sorted(rest))]
            found.append((f"{scope}.{stream.rstrip('_')}", members))
    yield from sorted(found, key=lambda item: (item[0].count("."), item[0]))


def _ranged(name: str, bits: int) -> str:
    """A signal as GTKWave calls it."""
    return f"{name}[{bits - 1}:0]" if bits > 1 else name
