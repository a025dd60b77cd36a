"""Write docs/status.md from what the tree knows: boards, recorded builds, tests and proofs.

    python -m support.docs.status

first adds the reports of ``build/*/report.json``, which ``bitlane build`` writes, to the file of
builds, ``docs/measurements/builds.json``. Builds nothing itself.

The tables of the page on models are made from the code, too: operators of ONNX, levels of DirectML.
"""

import ast
import json
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from textwrap import fill
from typing import Any

from onnx import defs

from bitlane import dml
from bitlane.api import method_name
from bitlane.driver import LARGEST_GEOMETRY, DryRunDriver
from bitlane.errors import DmlError
from bitlane.onnx.operators import OPERATORS
from bitlane.onnx.types import TYPES
from bitlane.version import __version__
from bitlane_boards import Board, boards
from bitlane_boards.board import Family
from bitlane_rtl.abi import BIT_OPS, COUNT_OPS, Op
from bitlane_sim.figures import record
from support.boards.session import BUILT, NETWORK_BUILT, SLOW
from support.docs.pages import ROOT

_ONNX = {
    ("BOOL",): "bool",
    tuple(x for x in TYPES if "INT" in x): "integers",
    tuple(x for x in TYPES if x.startswith("UINT")): "unsigned integers",
    tuple(x for x in TYPES if "FLOAT" in x or x == "DOUBLE"): "float16 to float64",
}


def operator_table() -> list[str]:
    """Return the lines of the table of ONNX's operators."""
    lines = ["| Operator | Opset | Types | Moves | |", "|---|---|---|---|---|"]
    for name, operator in OPERATORS.items():
        versions = operator.versions
        schemas = [defs.get_schema(name, version, "") for version in versions]
        for types, alike in groupby(zip(versions, schemas, strict=True), lambda x: _types(x[1])):
            first = next(alike)[0]
            later = [
                x for x in versions if x > first and _types(defs.get_schema(name, x, "")) != types
            ]
            opsets = f"{first} to {later[0] - 1}" if later else f"from {first}"
            moves = "yes" if operator.moves else ""
            lines.append(f"| `{name}` | {opsets} | {types} | {moves} | {operator.rule} |")
    return lines


def _types(schema: defs.OpSchema) -> str:
    """Return the types of the elements that an operator reads, as far as devices have them."""
    formal = schema.inputs[1 if schema.name == "Where" else 0]
    for each in schema.type_constraints:
        if each.type_param_str == formal.type_str:
            kinds = OPERATORS[schema.name].kinds
            known = [
                x
                for x, dtype in TYPES.items()
                if f"tensor({x.lower()})" in each.allowed_type_strs and dtype.kind in kinds
            ]
            return ", ".join(_named(known))
    raise AssertionError(schema.name)


def _named(types: Sequence[str]) -> Iterator[str]:
    left = list(types)
    for group, name in _ONNX.items():
        if set(group) <= set(left):
            yield name
            left = [x for x in left if x not in group]
    yield from (x.lower() for x in left)


_OPERATORS = {
    "Shifts": (
        dml.ElementWiseBitShiftLeftOperatorDesc,
        dml.ElementWiseBitShiftRightOperatorDesc,
    ),
    "`NOT`": (dml.ElementWiseBitNotOperatorDesc,),
    "`AND`, `OR`, `XOR`": (
        dml.ElementWiseBitAndOperatorDesc,
        dml.ElementWiseBitOrOperatorDesc,
        dml.ElementWiseBitXorOperatorDesc,
    ),
    "`COUNT`": (dml.ElementWiseBitCountOperatorDesc,),
}

_DML = {
    (): "none",
    ("UINT16", "UINT32", "UINT8"): "UINT8 to UINT32",
    ("UINT16", "UINT32", "UINT64", "UINT8"): "UINT8 to UINT64",
    tuple(sorted(str(x.name) for x in dml.DataType if x.name != "UNKNOWN")): "all eleven types",
}


def level_table() -> list[str]:
    """Return the lines of the table of DirectML's feature levels: one line for equal neighbours."""
    lines = [f"| Level | {' | '.join(_OPERATORS)} | Axes |", f"|---{'|---' * len(_OPERATORS)}|---|"]
    for cells, alike in groupby(dml.FeatureLevel, _level_cells):
        levels = list(alike)
        named = f"{levels[0]} to {levels[-1]}" if len(levels) > 1 else str(levels[0])
        lines.append(f"| {named} | {' | '.join(cells)} |")
    return lines


def _level_cells(level: dml.FeatureLevel) -> list[str]:
    """Return the types of each kind of operator at ``level``, and the numbers of axes."""
    with DryRunDriver(LARGEST_GEOMETRY) as driver, dml.Device(driver, level) as device:
        cells = [_accepted(device, kinds) for kinds in _OPERATORS.values()]
        ranks = [n for n in range(1, 10) if _takes(device, _shift(n))]
    axes = f"{ranks[0]} to {ranks[-1]}" if len(ranks) > 1 else str(*ranks)
    return [*cells, axes or "none"]


def _accepted(device: dml.Device, kinds: Sequence[type]) -> str:
    """Return the types of the inputs of operators, which take the same."""
    found = set()
    for kind in kinds:
        taken = [
            dtype for dtype in dml.DataType if dtype.name != "UNKNOWN" and _any(device, kind, dtype)
        ]
        names = sorted(x.name for x in taken)
        found.add(_DML.get(tuple(names), ", ".join(names)))
    (one,) = found
    return one


def _any(device: dml.Device, kind: type, dtype: dml.DataType) -> bool:
    x = dml.BufferTensorDesc(dtype, [1, 1, 1, 4])
    if kind is dml.ElementWiseBitCountOperatorDesc:
        return _takes(device, kind(x, dml.BufferTensorDesc(dml.DataType.UINT32, [1, 1, 1, 4])))
    unary = kind is dml.ElementWiseBitNotOperatorDesc
    return _takes(device, kind(x, x) if unary else kind(x, x, x))


def _shift(rank: int) -> object:
    try:
        x = dml.BufferTensorDesc(dml.DataType.UINT32, [2] * rank)
    except DmlError:
        return None
    return dml.ElementWiseBitShiftLeftOperatorDesc(x, x, x)


def _takes(device: dml.Device, desc: object) -> bool:
    try:
        device.create_operator(desc)  # type: ignore[arg-type]
    except DmlError:
        return False
    return True


PAGE = ROOT / "docs" / "status.md"

BUILDS = ROOT / "docs" / "measurements" / "builds.json"

Build = Mapping[str, Any]
"""A recorded build: ``date``, ``commit``, and the report of ``bitlane build``."""

_KEPT = ("clock_mhz", "achieved_mhz", "cells", "blocks", "line_clocks_mhz", "versions")
"""Figures of a report that the file of builds keeps."""

NETLISTS = {
    Family.ICE40: "from the bitstream",
    Family.ECP5: "as routed",
    Family.GOWIN: "as synthesised",
}
"""The netlists that `tests/verify/netlists` compares with the RTL, cycle by cycle."""

INTERFACES = {
    "operators, all layouts": "tests/system/test_arrays_on_simulator.py",
    "arrays on a device": "tests/system/test_expressions_on_simulator.py",
    "comparisons": "tests/host/arrays/test_calls.py",
    "searches": "tests/verify/search/test_agreement.py",
    "`BinaryIndex`": "tests/verify/search/test_faiss_suite.py",
    "DirectML's objects": "tests/system/test_dml_on_simulator.py",
    "model files": "tests/system/test_cli.py",
    "ONNX models": "tests/system/test_onnx_on_simulator.py",
    "ONNX, with ONNX Runtime": "tests/host/onnx/test_onnxruntime.py",
    "pools": "tests/system/test_pool.py",
    "Dask": "tests/system/test_dask.py",
    "the device `numpy`": "tests/sim/numpy_device/test_beside_the_circuit.py",
    "serial link": "tests/host/links/test_faults.py",
    "network link": "tests/host/links/test_contract.py",
    "exported Verilog": "tests/cocotb/test_cores.py",
    "exported Wishbone core": "tests/cocotb/test_cores.py",
    "exported stream core": "tests/cocotb/test_stream_core.py",
    "C driver": "tests/sim/test_c_driver.py",
    "C program under Linux": "tests/system/test_examples.py",
    "system on chip": "tests/system/test_examples.py",
    "LiteX": "tests/boards/litex/test_litex_simulated.py",
    "only the circuit computes": "tests/system/test_no_host_computation.py",
    "bus errors": "tests/system/test_faults_on_simulator.py",
    "wrong records": "tests/system/test_resealed_records.py",
}
"""Interfaces of bitlane, and the test that says most about each."""

_HEAD = f"""# Status

Version {__version__}: **simulated, proven and built; no board has run it yet.** The
[glossary](glossary.md) explains the words.

<!-- Written by `make status` from the boards, docs/measurements/builds.json and the tests. Do not
edit. -->

## Boards

*Margin*: the slack of the clock in the last recorded build, with seed 1. *Netlist*: that netlist
passes `bitlane validate` at simulated pins, and equals the RTL in every cycle. *Pins*: the RTL
passes `bitlane validate` at simulated pins. *Hardware*: nobody has tried yet.
"""

_TESTED = """
*Two operators*: computed over the board's network instead. *Faster line*: simulated with fewer
clocks a bit than the board's bridge takes. *4 units*: with a search array of 4 units. `make check`
takes some of these boards, `make verify` all of them.

## Be the first

With one of these boards, in the environment of [`make demo`](first_hour_numpy.md):

    pip install 'bitlane[boards]'
    bitlane build icebreaker
    bitlane flash icebreaker
    bitlane validate serial:/dev/ttyUSB1 > report.txt

Send `report.txt`, what `bitlane info serial:/dev/ttyUSB1` prints, and the revision that is printed
on the board, as [a report](../CONTRIBUTING.md#reporting-a-fault), also if all is well.

## Operators

Tests compare the NumPy model of each operator [with Python's
integers](../tests/host/test_reference.py), and the simulated circuit with the model; so does
`bitlane validate` on each board. *Example*: model files that `make demo` runs.
"""

_INTERFACES = """
## Interfaces

Each by the test that shows most of it, in simulation or on the loopback interface:
"""

_PROOFS = """
## Proofs

Each finds a planted bug. Claims *for all time* are unbounded; the others are bounded: they hold for
as many cycles after a reset as the table says, or *partly* for as many.
"""


def page(builds: Mapping[str, Build]) -> str:
    """Return the page in Markdown. ``builds``: the recorded ones by the names of boards."""
    known = boards().values()
    columns = ("Board", "Chip", "Clock", "Margin", "Netlist", "Pins", "Hardware")
    text = [_HEAD, *_table(columns, (_board(each, builds.get(each.name)) for each in known))]
    text += [*_origin(builds), _TESTED]
    names = ("`device.`", "DirectML", "ONNX", "Example")
    text += _table(names, (_operator(op) for op in sorted(BIT_OPS - COUNT_OPS | {Op.COUNT})))
    text += [
        _INTERFACES,
        *_table(("Interface", "Test"), (_interface(*each) for each in INTERFACES.items())),
    ]
    text += [_PROOFS, *_table(("Claim", "Holds"), map(_proof, proofs()))]
    return "\n".join(text) + "\n"


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return ["| " + " | ".join(cells) + " |" for cells in (heads, ["---"] * len(heads), *rows)]


def _board(board: Board, build: Build | None) -> list[str]:
    tested = board.name in (*BUILT, NETWORK_BUILT)
    margin = "not recorded"
    if build is not None:
        report = build["report"]
        margin = f"{report['achieved_mhz'] / report['clock_mhz'] - 1:.0%}"
    netlist = NETLISTS[board.family] if tested else "no"
    if board.name == NETWORK_BUILT:
        netlist += ", two operators"
    pins = "yes"
    if board.name in SLOW:
        pins += ", faster line"
    if board.configuration.search:
        pins += ", 4 units"
    clock = f"{board.clock_hz / 1e6:g} MHz"
    return [f"`{board.name}`", board.family.value, clock, margin, netlist, pins, "no"]


def _origin(builds: Mapping[str, Build]) -> list[str]:
    """Return the dates and commits of the builds, as a paragraph."""
    names: dict[tuple[str, str], list[str]] = {}
    for name, each in builds.items():
        names.setdefault((each["date"], each["commit"]), []).append(f"`{name}`")
    shown = [f"{', '.join(each)} on {date} at {commit}" for (date, commit), each in names.items()]
    return ["", fill(f"Recorded builds: {'; '.join(shown)}.", 100)] if shown else []


def _operator(op: Op) -> list[str]:
    name = f"ELEMENT_WISE_BIT_{op.name}"
    files = sorted((ROOT / "examples").glob("*.json"))
    examples = [
        f"[{file.stem}](../examples/{file.name})"
        for file in files
        if re.search(rf'{name}"', file.read_text(encoding="utf-8"))
    ]
    onnx = {"AND", "OR", "XOR", "NOT"}
    also = f"`Bitwise{op.name.title()}`" if op.name in onnx else "-"
    if op.name.startswith("SHIFT"):
        also = "`BitShift`"
    shown = ", ".join(examples) or "-"
    return [f"`{method_name(op)}`", f"`{name}`" if examples else "-", also, shown]


def _interface(name: str, test: str) -> list[str]:
    return [name, f"[{claim(ROOT / test)}](../{test})"]


def claim(test: Path) -> str:
    """Return the first sentence of a file of tests, which says what they show."""
    doc = ast.get_docstring(ast.parse(test.read_text(encoding="utf-8"))) or ""
    return doc.splitlines()[0].replace("|", "\\|").replace("``", "`").removesuffix(".")


def proofs() -> list[Path]:
    """Return the files of proofs, without that of the prover itself."""
    files = sorted((ROOT / "tests" / "formal").glob("test_*.py"))
    return [file for file in files if file.name != "test_prover.py"]


def _proof(file: Path) -> list[str]:
    return [f"[{claim(file)}](../{file.relative_to(ROOT).as_posix()})", extent(file)]


def extent(file: Path) -> str:
    """Return for how long the proofs in ``file`` hold."""
    text = file.read_text(encoding="utf-8")
    constants = dict(re.findall(r"^(\w+) = (\d+)$", text, flags=re.M))
    found = {constants.get(word, word) for word in re.findall(r"\bBounded\((\w+)\)", text)}
    bounded = " and ".join(sorted(f"for {cycles} cycles" for cycles in found))
    unbounded = re.search(r"\b(Induction\(\w+\)|Reached\b(?!,$))", text, flags=re.M)
    if not unbounded:
        return f"**{bounded}**"
    return f"**partly {bounded}**" if bounded else "for all time"


def recorded() -> dict[str, Build]:
    """Return the builds of the file, in the order of boards."""
    if not BUILDS.exists():
        return {}
    rows = json.loads(BUILDS.read_text(encoding="utf-8"))["rows"]
    return {name: rows[name] for name in boards() if name in rows}


def collect(folder: Path) -> None:
    """Add the reports of seed 1 below ``folder`` to the file of builds."""
    # The last change of a circuit: commits of other files leave it, and a rebase renames them.
    words = ["git", "log", "-1", "--abbrev=8", "--format=%h", "--", "rtl", "boards"]
    commit = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    rows = dict(recorded())
    for file in sorted(folder.glob("*/report.json")):
        report = json.loads(file.read_text(encoding="utf-8"))
        date = datetime.fromtimestamp(file.stat().st_mtime, UTC).strftime("%Y-%m-%d")
        if report["seed"] == 1 and report["board"] in boards():
            kept = {key: report[key] for key in _KEPT}
            rows[report["board"]] = {"date": date, "commit": commit.strip(), "report": kept}
    text = json.dumps(record("builds", rows), indent=2)
    BUILDS.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    collect(ROOT / "build")
    PAGE.write_text(page(recorded()), encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")
