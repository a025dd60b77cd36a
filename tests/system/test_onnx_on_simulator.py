"""ONNX's own tests of the operators, on the simulated circuit, compared byte by byte."""

import unittest
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import pytest
from onnx.backend.test import BackendTest
from onnx.reference import ReferenceEvaluator

import bitlane
from bitlane.onnx import Backend, PreparedGraph
from bitlane.onnx.golden import reference_outputs
from support.host.onnx_models import made_up
from support.system.devices import DEFAULT, NARROW, opened

pytestmark = pytest.mark.slow

OFFICIAL = 88
PATTERNS = (
    r"^test_bitwise_(not|and|or|xor)_",
    r"^test_bitshift_(left|right)_",
    r"^test_bitcast_",
    r"^test_not_[234]d_",
    r"^test_(and|or|xor)([234]d|_bcast)",
    r"^test_equal_((bcast|u?int\d+)_)?(cpu|cuda)",
)


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
    def prepare(cls, model: Any, device: Any = "CPU", **options: object) -> PreparedGraph:
        assert device == "CPU"
        prepared = Checked(super().prepare(model, cls.device, **options).graph, cls.device)
        prepared.model = model
        return prepared


class Checked(PreparedGraph):
    model: Any

    def run(self, inputs: Any, **options: object) -> tuple[Any, ...]:
        results = super().run(inputs, **options)
        names = [x.name for x in self.graph.inputs]
        expect_same(results, reference_outputs(self.model, dict(zip(names, inputs, strict=True))))
        return results


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
