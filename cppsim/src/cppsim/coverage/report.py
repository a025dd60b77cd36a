"""Coverage as text: LCOV's tracefiles, and tables."""

import re
from collections.abc import Iterator, Mapping

from .points import CoveragePoint

_KINDS = {"statement": "statements", "branch": "branches", "toggle": "toggles"}


def lcov(test: str, counts: Mapping[CoveragePoint, int]) -> str:
    """Return the records of a tracefile for one test."""
    lines: dict[str, dict[int, int]] = {}
    branches: dict[str, dict[tuple[int, int, int], int]] = {}
    for point, count in counts.items():
        statements = lines.setdefault(point.file, {})
        others = branches.setdefault(point.file, {})
        if point.kind == "statement":
            statements[point.line] = statements.get(point.line, 0) + count
        else:
            key = (point.line, point.group, point.number)
            others[key] = others.get(key, 0) + count
    return "".join(
        f"{text}\n"
        for file in sorted(lines)
        for text in _records(test, file, lines[file], branches[file])
    )


def _records(
    test: str, file: str, lines: Mapping[int, int], branches: Mapping[tuple[int, int, int], int]
) -> Iterator[str]:
    # LCOV takes letters, digits and underscores.
    yield f"TN:{re.sub(r'[^A-Za-z0-9_]', '_', test)}"
    yield f"SF:{file}"
    for (line, block, number), count in sorted(branches.items()):
        yield f"BRDA:{line},{block},{number},{count}"
    yield f"BRF:{len(branches)}"
    yield f"BRH:{sum(map(bool, branches.values()))}"
    for line, count in sorted(lines.items()):
        yield f"DA:{line},{count}"
    yield f"LF:{len(lines)}"
    yield f"LH:{sum(map(bool, lines.values()))}"
    yield "end_of_record"


def table(counts: Mapping[CoveragePoint, int]) -> str:
    """Return a line for each module: points that were hit, of how many."""
    rows: dict[str, dict[str, list[int]]] = {}
    for point, count in counts.items():
        for path in (point.path, _TOTAL):
            hit = rows.setdefault(path, {}).setdefault(point.kind, [0, 0])
            hit[0] += count > 0
            hit[1] += 1
    if not rows:
        return "nothing was measured\n"
    total = rows.pop(_TOTAL)
    rows = {**dict(sorted(rows.items())), _TOTAL: total}
    width = max(map(len, [*rows, _HEAD]))
    head = "".join(f"{name:>16}" for name in _KINDS.values())
    lines = [f"{_HEAD:{width}}{head}"]
    for path, found in rows.items():
        cells = ("{} of {}".format(*found[kind]) if kind in found else "-" for kind in _KINDS)
        lines.append(f"{path:{width}}" + "".join(f"{cell:>16}" for cell in cells))
    return "".join(f"{line}\n" for line in lines)


_HEAD, _TOTAL = "module", "all"


def missing(counts: Mapping[CoveragePoint, int]) -> str:
    """Return a line for each point that was never hit."""
    return "".join(
        f"{point.file}:{point.line}: {point.kind} {point.path}: {point.name}\n"
        for point, count in counts.items()
        if not count
    )
