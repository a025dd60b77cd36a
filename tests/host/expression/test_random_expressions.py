"""Random expressions give the same bits fused, a node at a time, and in NumPy, on any circuit."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bitlane.driver.driver import Driver
from bitlane.expression.evaluate import evaluate
from bitlane.expression.form import Expression, Stored
from bitlane.jobs.lowering import UnsupportedError
from bitlane_rtl.abi import Lane, Mode, Op
from support.host.expressions import Program, play, programs
from support.host.tensors import download, upload
from support.models.device import ModelLink

MEMORY = 1 << 18

ABILITIES = st.fixed_dictionaries(
    {
        "data_bytes": st.sampled_from([4, 8, 16, 64]),
        "loops": st.integers(1, 6),
        "read_ports": st.integers(1, 2),
        "length_bits": st.sampled_from([12, 24]),
        "modes": st.sets(st.sampled_from(Mode)).map(lambda x: frozenset({Mode.DENSE, *x})),
        "lanes": st.sampled_from([frozenset(Lane), frozenset({Lane.BITS_8, Lane.BITS_32})]),
    }
)


def check(program: Program, **abilities: Any) -> None:
    """Run a program in one job, a node at a time, and in one job when some values are there."""
    driver = Driver(ModelLink(memory_bytes=MEMORY, **abilities))
    for finish in (_later, _one_by_one, _now_and_then):
        try:
            _expect_numpys(driver, program, finish)
        except UnsupportedError:
            assert abilities, "the circuit has everything"
        assert driver.allocator.pieces == 0, "memory was not given back"


Finish: TypeAlias = Callable[[Driver, Expression, list[Stored]], Expression]


def _later(driver: Driver, node: Expression, kept: list[Stored]) -> Expression:
    return node


def _one_by_one(driver: Driver, node: Expression, kept: list[Stored]) -> Expression:
    return evaluate(driver, [node])[0]


def _now_and_then(driver: Driver, node: Expression, kept: list[Stored]) -> Expression:
    """Values are computed at once, and two of them are always still there."""
    kept += evaluate(driver, [node])
    del kept[:-2]
    return node


def _expect_numpys(driver: Driver, program: Program, finish: Finish) -> None:
    kept: list[Stored] = []
    wanted = play(
        program, lambda array: upload(driver, array), lambda node: finish(driver, node, kept)
    )
    results = evaluate(driver, [node for _, node in wanted])
    for (array, _), result in zip(wanted, results, strict=True):
        assert np.array_equal(download(driver, result), array)


@given(programs())
@settings(max_examples=100, deadline=None)
def test_on_a_circuit_that_has_everything(program: Program) -> None:
    check(program)


@given(programs(8), ABILITIES)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_on_lesser_circuits(program: Program, abilities: dict[str, Any]) -> None:
    check(program, **abilities)


@given(programs(8), st.sets(st.sampled_from(Op), min_size=1))
@settings(max_examples=40, deadline=None)
def test_on_circuits_with_fewer_operations(program: Program, ops: set[Op]) -> None:
    check(program, ops=frozenset(ops))
