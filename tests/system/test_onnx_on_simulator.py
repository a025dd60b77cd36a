"""ONNX's own tests of the operators, on the simulated circuit, compared byte by byte."""

import unittest
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import pytest
from onnx import ModelProto, numpy_helper
from onnx.backend.test import BackendTest
from onnx.backend.test.case.node import collect_testcases
from onnx.reference import ReferenceEvaluator

import bitlane
from bitlane.onnx import Backend, OnnxError
from bitlane.onnx.operators import OPERATORS
from support.host.onnx_models import golden, made_up
from support.system.devices import DEFAULT, NARROW, opened

pytestmark = pytest.mark.slow

OFFICIAL = 143
PATTERNS = (
    r"^test_bitwise_(not|and|or|xor)_",
    r"^test_bitshift_(left|right)_",
    r"^test_bitcast_",
    r"^test_not_[234]d_",
    r"^test_(and|or|xor)([234]d|_bcast)",
    r"^test_equal_((bcast|u?int\d+)_)?(cpu|cuda)",
    r"^test_(concat|expand|gather|reshape|slice|squeeze|transpose|unsqueeze|where)_(?!elements|nd)",
    r"^test_slice_(cpu|cuda)",
    r"^test_squeeze_(cpu|cuda)",
    r"^test_identity_(cpu|cuda)",
)

SETTINGS = {
    "Expand": (1,),
    "Gather": (1,),
    "Reshape": (1,),
    "Slice": (1, 2, 3, 4),
    "Squeeze": (1,),
    "Unsqueeze": (1,),
}
"""The inputs of operators that a plan depends on: ONNX's tests give them when the model runs."""


def expect_same(got: Sequence[Any], wanted: Sequence[Any]) -> None:
    """Equal in number, type, shape and every byte."""
    assert len(got) == len(wanted)
    for mine, other in zip(got, wanted, strict=True):
        assert isinstance(mine, np.ndarray)
        assert (mine.dtype, mine.shape) == (other.dtype, other.shape)
        assert mine.tobytes() == other.tobytes()


class Bytewise(BackendTest):
    """ONNX's runner, whose own comparison lets a low bit pass: it allows a thousandth."""

    @classmethod
    def assert_similar_outputs(
        cls, ref_outputs: Sequence[Any], outputs: Sequence[Any], *args: Any, **kwargs: Any
    ) -> None:
        expect_same(outputs, ref_outputs)


class OnSimulator(Backend):
    """The backend on one open device; what it gives is what the golden model gives, too."""

    device: ClassVar[bitlane.Device]

    @classmethod
    def prepare(cls, model: Any, device: Any = "CPU", **options: Any) -> Any:
        assert (device, options) == ("CPU", {})
        return Checked(model, cls.device)


class Checked:
    """A model that is prepared when its settings are known, which then are constants."""

    def __init__(self, model: ModelProto, device: bitlane.Device) -> None:
        self._model = model
        self._device = device

    def run(self, inputs: Any, **options: object) -> tuple[Any, ...]:
        given = dict(zip([x.name for x in self._model.graph.input], inputs, strict=True))
        model = with_constants(self._model, given)
        tensors = {x.name: given[x.name] for x in model.graph.input}
        results = Backend.run_model(model, tensors, self._device)
        expect_same(results, golden(model, tensors))
        return results


def with_constants(model: ModelProto, given: Mapping[str, Any]) -> ModelProto:
    """Return ``model`` with the settings of its nodes, which are ``given``, as initializers."""
    changed = ModelProto()
    changed.CopyFrom(model)
    graph = changed.graph
    names = {
        node.input[at]
        for node in graph.node
        for at in SETTINGS.get(node.op_type, ())
        if at < len(node.input)
    }
    tensors = [x for x in graph.input if x.name not in names]
    settings = [x.name for x in graph.input if x.name in names]
    graph.initializer.extend(numpy_helper.from_array(given[name], name) for name in settings)
    del graph.input[:]
    graph.input.extend(tensors)
    return changed


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # ONNX makes its expectations as it is loaded
def test_all_of_onnxs_own_tests_pass() -> None:
    runner = Bytewise(OnSimulator)
    for pattern in PATTERNS:
        runner.include(pattern)
    ran = unittest.TestResult()
    with opened(DEFAULT) as OnSimulator.device:
        runner.test_suite.run(ran)
    assert [(case.id(), text) for case, text in [*ran.failures, *ran.errors]] == []
    assert ran.testsRun - len(ran.skipped) == OFFICIAL


def test_any_graph_gives_what_onnxs_reference_gives() -> None:
    with opened(NARROW) as device:
        for seed in range(1000, 1060):
            graph, given = made_up(seed)
            wanted = [np.asarray(x) for x in ReferenceEvaluator(graph).run(None, given)]
            got = bitlane.onnx.run_model(graph, given, device)
            try:
                expect_same(got, wanted)
            except AssertionError as error:
                raise AssertionError(f"seed {seed}: {error}\n{graph}") from error


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_models_of_onnxs_tests_that_hold_other_operators() -> None:
    found = Counter[str]()
    with opened(DEFAULT) as device:
        for case in collect_testcases(None):
            kinds = {node.op_type for node in case.model.graph.node}
            if not kinds & OPERATORS.keys() or kinds <= OPERATORS.keys():
                continue
            if case.name.startswith(SKIPPED):
                continue
            for inputs, _ in case.data_sets:
                given = dict(zip([x.name for x in case.model.graph.input], inputs, strict=False))
                try:
                    prepared = bitlane.onnx.prepare(case.model, device, rest="reference")
                except OnnxError as error:
                    kind = "refused" if "data type" in str(error) else f"{case.name}: {error}"
                    found[kind] += 1
                    continue
                wanted = ReferenceEvaluator(case.model).run(None, given)
                expect_same(prepared.run(given), [np.asarray(x) for x in wanted])
                found["cut" if len(prepared.graph.groups) > 1 else "whole"] += 1
    assert found == MIXED


SKIPPED = ("test_bernoulli", "test_range_")
"""Random results; and loops of which onnx's reference gives another shape than the model has."""

MIXED = {"cut": 142, "whole": 239, "refused": 5}
"""Cases in groups on both sides, with all of it on one side, and of types that are refused."""
