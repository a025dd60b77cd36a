"""The folder in which commands of these tests run."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser
import pytest

from support.host.model_files import not_model
from support.host.onnx_models import model_of, node, tensor

A = np.array([1, 2, 3], np.uint8)

MIXED = """<ir_version: 10, opset_import: ["": 18]>
mixed (int32[n] a, int32[n] b) => (int32[n] y) <int32 k = {7}> {
    x = BitwiseXor(a, b)
    s = Add(x, k)
    t = Mul(s, k)
    y = BitwiseAnd(t, x)
}"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make the current folder with models and arrays, and with files that are none."""

    def bound(binding: Any) -> str:
        model = not_model()
        model["commands"][0]["bindings"]["InputTensor"] = binding
        return json.dumps(model)

    head = b"{'descr': '|u1', 'fortran_order': False, 'shape': (1099511627776,)}\n"
    add = model_of([node("Add", "a a", "y")], {"a": ("u1", [1])}, {"y": ("u1", [1])})
    mixed = onnx.parser.parse_model(MIXED)
    graph = model_of(
        [node("BitwiseXor", "a k", "x"), node("BitwiseNot", "x", "y")],
        {"a": ("u1", ["n"])},
        {"y": ("u1", ["n"]), "x": ("u1", ["n"])},
        [tensor("k", np.array(3, np.uint8))],
    ).SerializeToString()
    files = {
        "m.json": json.dumps(not_model()),
        "broken.json": "{",
        "page.json": "# bitlane\n",
        "unbound.json": bound("none"),
        "offset.json": bound({"name": "in", "elementOffset": 3}),
        "late.json": bound({"name": "in", "elementOffset": 16}),
        "x.onnx": graph,
        "bad.onnx": graph[:-1],
        "add.onnx": add.SerializeToString(),
        "mixed.onnx": mixed.SerializeToString(),
        "text.npy": "1 2 3",
        "huge.npy": b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head,
    }
    mixed.ir_version = 99
    files["new.onnx"] = mixed.SerializeToString()
    for name, content in files.items():
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    arrays = {"a": A, "long": A.astype(np.uint16), "flat": A[None], "i": np.arange(8, dtype="i4")}
    for name, array in arrays.items():
        np.save(tmp_path / f"{name}.npy", array)
    np.save(tmp_path / "three.npy", np.full(8, 3, np.int32))
    np.save(tmp_path / "objects.npy", np.array([print]), allow_pickle=True)
    (tmp_path / "folder.npy").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path
