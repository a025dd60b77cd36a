"""Random expressions give the same bits fused, a node at a time, and in NumPy, on any circuit."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bitlane.driver.driver import Driver
from bitlane.jobs.lowering import UnsupportedError
from bitlane_rtl.abi import BIT_OPS, Lane, Mode, Op
from support.host.expressions import (
    Program,
    expect_numpys,
    later,
    now_and_then,
    one_by_one,
    programs,
)
from support.models.device import ModelLink
from support.seeds import examples

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
    for finish in (later, one_by_one, now_and_then):
        try:
            expect_numpys(driver, program, finish)
        except UnsupportedError:
            assert abilities, "the circuit has everything"
        assert driver.allocator.pieces == 0, "memory was not given back"


@given(programs())
def test_on_a_circuit_that_has_everything(program: Program) -> None:
    check(program)


@given(programs(8), ABILITIES)
@examples(0.4)
def test_on_lesser_circuits(program: Program, abilities: dict[str, Any]) -> None:
    check(program, **abilities)


@given(programs(8), st.sets(st.sampled_from(sorted(BIT_OPS)), min_size=1))
@examples(0.4)
def test_on_circuits_with_fewer_operations(program: Program, ops: set[Op]) -> None:
    check(program, ops=frozenset(ops))
