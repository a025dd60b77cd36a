"""Random models in groups on a device and ONNX Runtime: the bytes that ONNX Runtime alone gives."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto

import bitlane
from bitlane import Device
from bitlane.onnx import OnnxError, prepare
from bitlane.onnx.model import DeviceGroup
from support.host.arrays import same
from support.host.onnx_models import mixed, model_of, node


def alone(model: ModelProto, given: dict[str, Any]) -> list[Any]:
    """Return the outputs of a model by ONNX Runtime alone."""
    import onnxruntime  # not in the quick tier, which imports the module

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    content = model.SerializeToString()
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    results: list[Any] = session.run(None, given)
    return results


def compare(seeds: Iterable[int]) -> Counter[int]:
    """Compare graphs byte by byte; return how many have so many groups of the device."""
    groups = Counter[int]()
    with bitlane.open("numpy") as device:
        for seed in seeds:
            model, given = mixed(seed)
            model.ir_version = 10
            prepared = prepare(model, device, rest="onnxruntime")
            wanted = alone(model, given)
            for info, x, y in zip(model.graph.output, prepared.run(given), wanted, strict=True):
                assert same(x, y), f"seed {seed}: {info.name}"
            groups[sum(isinstance(each, DeviceGroup) for each in prepared.graph.groups)] += 1
    return groups


@pytest.mark.slow
def test_random_graphs_give_the_same_bytes() -> None:
    groups = compare(range(150))
    assert len(groups) > 3


@pytest.mark.deep
def test_many_random_graphs_give_the_same_bytes() -> None:
    groups = compare(range(1000, 3000))
    print(sorted(groups.items()))
    assert len(groups) > 5


@pytest.mark.slow
def test_what_onnx_runtime_refuses_is_named(device: Device) -> None:
    nodes = [node("BitwiseNot", "a", "x"), node("Odd", "x", "y", domain="own")]
    model = model_of(nodes, {"a": ("i4", [4])}, {"y": ("i4", [4])}, opset=18)
    model.opset_import.add(domain="own", version=1)
    with pytest.raises(OnnxError, match=r"rest 'onnxruntime': .*Odd") as caught:
        prepare(model, device, rest="onnxruntime")
    assert str(caught.value).isprintable()


@pytest.mark.slow
def test_wrong_shapes_are_named(device: Device) -> None:
    nodes = [node("BitwiseNot", "a", "x"), node("Add", "x b", "y")]
    declared: Any = {"a": ("i4", ["n"]), "b": ("i4", ["m"])}
    model = model_of(nodes, declared, {"y": ("i4", ["k"])}, opset=18)
    prepared = prepare(model, device, rest="onnxruntime")
    with pytest.raises(OnnxError, match=r"rest 'onnxruntime': .*Add"):
        prepared.run([np.zeros(3, np.int32), np.zeros(4, np.int32)])
