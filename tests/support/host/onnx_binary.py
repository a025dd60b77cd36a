"""A binary network for scikit-learn's digits: trained with NumPy, and written as ONNX's models."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, helper

from support.host.onnx_models import node, tensor

Floats = NDArray[np.float32]

BIPOLAR = "qonnx.custom_op.general"
"""The domain of QONNX' operators."""


class Network(NamedTuple):
    """Layers of weights 1 and -1; each sum is compared with its threshold, the last one is not."""

    weights: Sequence[Floats]
    thresholds: Sequence[Floats]

    def activations(self, rows: NDArray[np.bool_]) -> list[Any]:
        """Return the truth values of each layer for ``rows``, and at last the scores."""
        found: list[Any] = []
        x = rows
        for weights, threshold in zip(self.weights, self.thresholds, strict=False):
            x = np.where(x, 1, -1) @ weights.astype(np.int64) >= threshold
            found.append(x)
        found.append(np.where(x, 1, -1) @ self.weights[-1].astype(np.int64))
        return found


def digits() -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Return 1,797 digits of 64 pixels that are dark or not, and the number that each one is."""
    from sklearn.datasets import load_digits

    loaded: Any = load_digits()
    return np.asarray(loaded.data > 7), np.asarray(loaded.target, np.int64)


def train(
    rows: NDArray[np.bool_], labels: NDArray[np.int64], sizes: Sequence[int], steps: int = 400
) -> Network:
    """Return a network with layers of ``sizes``, the last of 10.

    The gradient passes through the signs as if they were not there (straight-through estimator).
    """
    choose = np.random.default_rng(0)
    widths = [rows.shape[1], *sizes]
    latent = [choose.normal(0, 0.5, (n, m)).astype(np.float32) for n, m in pairwise(widths)]
    shifts = [np.zeros(m, np.float32) for m in sizes[:-1]]
    for _ in range(steps):
        batch = choose.integers(0, len(rows), 128)
        xs, sums = [np.where(rows[batch], 1, -1).astype(np.float32)], []
        for weights, shift in zip(latent, [*shifts, np.float32(0)], strict=True):
            sums.append(xs[-1] @ np.where(weights >= 0, 1, -1).astype(np.float32) - shift)
            xs.append(np.where(sums[-1] >= 0, 1, -1).astype(np.float32))
        scores = sums[-1] / np.sqrt(widths[-2])
        odds = np.exp(scores - scores.max(1, keepdims=True))
        error = odds / odds.sum(1, keepdims=True)
        error[np.arange(len(batch)), labels[batch]] -= 1
        error = (error / np.sqrt(widths[-2])).astype(np.float32)
        for at in reversed(range(len(latent))):
            signs = np.where(latent[at] >= 0, 1, -1).astype(np.float32)
            below = error @ signs.T
            latent[at] = np.clip(latent[at] - 0.01 * xs[at].T @ error, -1, 1)
            if at < len(shifts):
                shifts[at] += np.float32(0.01) * error.sum(0)
            if at:
                error = below * (np.abs(sums[at - 1]) <= np.sqrt(widths[at]))
    signs_of = [np.where(weights >= 0, 1, -1).astype(np.float32) for weights in latent]
    return Network(signs_of, [np.round(shift) for shift in shifts])


def as_where(network: Network, *, bipolar: bool = False) -> ModelProto:
    """Return the model of a network: pixels as float32, scores and the truth values of each layer.

    ``bipolar``: signs as QONNX writes them, else as ONNX's own operators.
    """
    nodes: list[NodeProto] = []
    constants = [tensor("one", np.float32(1)), tensor("minus", np.float32(-1))]
    outputs = []
    x, width = "pixels", network.weights[0].shape[0]
    constants.append(tensor("half", np.full(width, 7.5, np.float32)))
    for at, weights in enumerate(network.weights):
        threshold = "half" if not at else f"t{at}"
        if at:
            constants.append(tensor(threshold, network.thresholds[at - 1]))
        nodes += _signs(at, x, threshold, bipolar=bipolar)
        constants.append(tensor(f"w{at}", weights))
        w = f"w{at}"
        if bipolar:
            nodes.append(_bipolar(w, f"v{at}"))
            w = f"v{at}"
        nodes.append(node("MatMul", f"s{at} {w}", f"y{at}"))
        if not bipolar:
            outputs.append(helper.make_tensor_value_info(f"c{at}", 9, ["n", weights.shape[0]]))
        x = f"y{at}"
    outputs.append(helper.make_tensor_value_info(x, 1, ["n", network.weights[-1].shape[1]]))
    inputs = [helper.make_tensor_value_info("pixels", 1, ["n", width])]
    graph = helper.make_graph(nodes, "digits", inputs, outputs, constants)
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid(BIPOLAR, 1)]
    model = helper.make_model(graph, opset_imports=opsets if bipolar else opsets[:1])
    model.ir_version = 10
    return model


def _signs(at: int, x: str, threshold: str, *, bipolar: bool) -> list[NodeProto]:
    """Return the nodes of s, which is 1 where x is not below the threshold, else -1."""
    if bipolar:
        return [node("Sub", f"{x} {threshold}", f"d{at}"), _bipolar(f"d{at}", f"s{at}")]
    return [
        node("GreaterOrEqual", f"{x} {threshold}", f"c{at}"),
        node("Where", f"c{at} one minus", f"s{at}"),
    ]


def _bipolar(x: str, y: str) -> NodeProto:
    return helper.make_node("BipolarQuant", [x, "one"], [y], domain=BIPOLAR)
