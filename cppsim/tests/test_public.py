"""The public modules: their names exist, and Amaranth is imported by those alone that need it."""

from importlib import import_module

import numpy as np
import pytest

import cppsim
from cppsim import stored
from support.processes import run_python
from support.zoo import Counter

MODULES = ("cppsim", "cppsim.build", "cppsim.circuits", "cppsim.stored")


@pytest.mark.parametrize("name", MODULES)
def test_all_names_of_a_module_exist_and_no_others(name: str) -> None:
    module = import_module(name)
    assert all(hasattr(module, each) for each in module.__all__)
    with pytest.raises(AttributeError, match=f"module '{name}' has no attribute 'nothing'"):
        module.nothing  # noqa: B018


@pytest.mark.parametrize("name", [*MODULES, "cppsim.errors"])
def test_a_module_is_imported_without_amaranth(name: str) -> None:
    code = f"import sys, {name}; print('amaranth' in sys.modules)"
    assert run_python("-c", code).stdout == "False\n"


def test_a_stored_design_has_what_a_batch_has() -> None:
    program = cppsim.Program().set("by", 3).step(5).get("count")
    batch = cppsim.Batch(Counter(), 3, "threads:1")
    design = stored.store(Counter())
    assert design.source().description.ports == batch.description.ports
    found = stored.Runner(design, 3, "threads:1").run(program)["count"]
    assert np.array_equal(found, batch.run(program)["count"])
    assert set(found.tolist()) == {15}
