"""Waveforms of a VCD file as a viewer shows them, to compare simulators."""

import re
from collections.abc import Iterable
from itertools import groupby
from operator import itemgetter

Waveform = list[tuple[int, str]]
"""A variable's value from each time on at which it changes, without glitches."""


def waveforms(text: str) -> dict[str, Waveform]:
    """Return each variable's waveform by path and kind.

    Raises ``ValueError`` for bad lines, and if time 0 is there twice.
    """
    header, body = text.split("$enddefinitions $end\n")
    codes = dict(_declared(header))
    found: dict[str, dict[int, str]] = {code: {} for code in codes.values()}
    now = -1
    for line in body.splitlines():
        if line.startswith("#"):
            if int(line[1:]) < now or (line == "#0" and not now):
                raise ValueError(f"{line} comes after #{now}")
            now = int(line[1:])
        elif not line.startswith("$"):
            value, code = _change(line)
            found[code][now] = value
    return {path: _without_repeats(found[code].items()) for path, code in codes.items()}


def _declared(header: str) -> Iterable[tuple[str, str]]:
    scopes: list[str] = []
    for line in header.splitlines():
        match line.split():
            case ["$scope", _, name, "$end"]:
                scopes.append(name)
            case ["$upscope", "$end"]:
                scopes.pop()
            case ["$var", kind, size, code, name, *_, "$end"]:
                yield f"{'.'.join([*scopes, name])}: {kind} {size}", code


def _change(line: str) -> tuple[str, str]:
    """Return the value and the code of a line."""
    if match := re.fullmatch(r"([01])(\S+)|[bs](\S*) (\S+)", line):
        scalar, scalar_code, value, code = match.groups()
        return (value, code) if scalar is None else (scalar, scalar_code)
    raise ValueError(f"{line!r} is not a change of a value")


def _without_repeats(changes: Iterable[tuple[int, str]]) -> Waveform:
    return [next(same) for _, same in groupby(changes, key=itemgetter(1))]
