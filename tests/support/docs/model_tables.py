"""The tables of the page on models, made from the code: operators of ONNX, levels of DirectML."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from onnx import defs

from bitlane import dml
from bitlane.driver import DryRunDriver
from bitlane.driver.dry_run import LARGEST
from bitlane.errors import DmlError
from bitlane.onnx.operators import OPERATORS
from bitlane.onnx.types import TYPES

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
    with DryRunDriver(LARGEST) as driver, dml.Device(driver, level) as device:
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
