"""Expressions on the simulated circuit: NumPy's bits, and the cycles that were estimated."""

from collections.abc import Callable

import pytest
from hypothesis import given

import bitlane
from bitlane.compiler import (
    Constant,
    Expression,
    add_up,
    apply,
    copy_ordered,
    evaluate,
    fuse,
    narrow,
    pass_costs,
    plan_passes,
    truth_of,
    widen,
    window,
)
from bitlane.driver import Driver
from bitlane_rtl.abi import Op
from support.host.expressions import (
    Program,
    expect_numpys,
    later,
    now_and_then,
    one_by_one,
    programs,
    upload,
)
from support.seeds import examples
from support.system.devices import DEFAULT, NARROW, noise, opened

PYSIM = "sim:pysim?memory=16KiB"


@examples(0.4)
@given(programs(10))
def test_the_circuit_gives_numpys_bits(device: bitlane.Device, program: Program) -> None:
    for finish in (later, one_by_one, now_and_then):
        expect_numpys(device.driver, program, finish)


@pytest.mark.slow
def test_pysim_gives_numpys_bits() -> None:
    with opened(PYSIM) as device:

        @examples(0.05)
        @given(programs(4))
        def check(program: Program) -> None:
            expect_numpys(device.driver, program)

        check()


# --- the estimate -----------------------------------------------------------------------------

ROWS, COLUMNS = 96, 64

Make = Callable[[Expression, Expression], Expression]

DENSE: dict[str, Make] = {
    "one operand": lambda a, b: apply(Op.NOT, a),
    "two operands": lambda a, b: apply(Op.XOR, a, b),
    "a constant": lambda a, b: apply(Op.SHIFT_LEFT, a, Constant(b"\1\0\0\0")),
    "a row": lambda a, b: apply(Op.AND, a, window(b, 0, (COLUMNS,), (4,))),
    "a count": lambda a, b: apply(Op.COUNT, apply(Op.OR, a, b)),
    "a count of bytes in words": lambda a, b: apply(
        Op.COUNT, window(a, 0, (ROWS * COLUMNS // 2,), (1,), 1), itemsize=4
    ),
    "a test": lambda a, b: truth_of(apply(Op.XOR, a, b), negate=True),
    "a sum of tests": lambda a, b: add_up(truth_of(apply(Op.XOR, a, b)), (0, 1)),
    "a chain": lambda a, b: apply(
        Op.NAND, apply(Op.XNOR, a, b), apply(Op.SHIFT_RIGHT, apply(Op.NOT, b), a)
    ),
    "odd addresses": lambda a, b: apply(
        Op.XOR, window(a, 3, (4000,), (4,)), window(b, 5, (4000,), (4,))
    ),
}

WALKS: dict[str, Make] = {
    "rows with gaps": lambda a, b: apply(Op.XOR, window(a, 4, (ROWS, 48), (256, 4)), _rows(b)),
    "a transposed operand": lambda a, b: copy_ordered(
        window(a, 0, (COLUMNS, ROWS), (4, 256)), (0, 1)
    ),
    "zeros above": lambda a, b: widen(window(a, 0, (ROWS, 64), (256, 2), 2), 4, signed=False),
    "signs above": lambda a, b: widen(window(a, 0, (ROWS, 64), (256, 1), 1), 4, signed=True),
    "low bytes": lambda a, b: narrow(a, 2),
}


def _rows(node: Expression) -> Expression:
    return window(node, 0, (ROWS, 48), (204, 4))


def _cycles(driver: Driver, make: Make) -> tuple[int, int]:
    """Return the cycles that are estimated, and those that it takes."""
    content = noise(4 * ROWS * COLUMNS, 1).view("<u4").reshape(ROWS, COLUMNS)
    root = make(upload(driver, content), upload(driver, content[::-1].copy()))
    passes = pass_costs(
        plan_passes(fuse([root], driver.geometry), driver.geometry), driver.geometry
    )
    driver.clear_counters()
    evaluate(driver, [root])
    return sum(each.cycles for each in passes), driver.counters()["BUSY_CYCLES"]


@pytest.mark.parametrize("url", [DEFAULT, NARROW])
@pytest.mark.parametrize("name", DENSE | WALKS)
def test_passes_take_about_the_cycles_that_were_estimated(url: str, name: str) -> None:
    """Dense ones take those cycles, and a few to start."""
    with opened(url) as device:
        estimated, measured = _cycles(device.driver, (DENSE | WALKS)[name])
    most = max(8, measured // 300) if name in DENSE else 0.1 * measured
    assert abs(estimated - measured) <= most, (estimated, measured)
