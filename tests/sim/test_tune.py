"""Tuning CXXRTL's output: each change where it belongs, and a refusal of what is not known."""

from pathlib import Path

import pytest

from bitlane_sim.cxxrtl.toolchain import cxxrtl_headers
from bitlane_sim.cxxrtl.tune import state_of, tune_model, wide_headers
from bitlane_sim.evaluator import SimulationError


@pytest.mark.parametrize(
    ("narrow", "wide"),
    [
        ("value<64>{0x1u,0x2u}", "value<64>{0x200000001ull}"),
        ("wire<96>{0xffffffffu,0u,7u}", "wire<96>{0xffffffffull,0x7ull}"),
        ("value<8>{0x5u}", "value<8>{0x5u}"),
        ("value<4>{}", "value<4>{}"),
    ],
)
def test_literals_are_joined_to_chunks_of_64_bits(narrow: str, wide: str) -> None:
    assert tune_model(f"x = {narrow};") == f"x = {wide};"


def test_write_that_writes_nothing_is_skipped() -> None:
    call = "memory_p_m.update(at.index, p_a.slice<7,0>().concat(p_b).val(), {mask}, 0);"
    mask = "and_uu<1>(p_en, f(p_c.slice<3,2>(), p_d)).repeat<8>().val()"
    assert tune_model(call.format(mask=mask)) == (
        f"if (!({mask}).is_zero()) " + call.format(mask=mask)
    )


def test_every_evaluation_sees_an_edge() -> None:
    assert tune_model("bool posedge_p_clk = this->posedge_p_clk();") == (
        "constexpr bool posedge_p_clk = true; (void)posedge_p_clk;"
    )


def test_registers_and_memories_are_told_apart() -> None:
    state = state_of(
        "if (p_a.commit(observer)) changed = true;\n"
        "prev_p_clk = p_clk;\n"
        "if (memory_p_m.commit(observer)) changed = true;\n"
    )
    assert (state.registers, state.memories) == (["p_a"], ["memory_p_m"])


def test_headers_of_another_cxxrtl_are_refused(tmp_path: Path) -> None:
    for name, text in wide_headers(cxxrtl_headers()).items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    # These are wide already: what should be changed is not there.
    with pytest.raises(SimulationError, match="of this Yosys is not known here: no 'typedef"):
        wide_headers(tmp_path)
