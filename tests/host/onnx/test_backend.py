"""The interface of an ONNX backend: devices by name, models, single nodes, and closed devices."""

import pickle
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx.backend.base
import pytest

import bitlane
import bitlane.onnx.backend
from bitlane import Device
from bitlane.errors import LinkError, SettingError
from bitlane.onnx import OnnxError, OnnxMissingError
from support.host.arrays import model
from support.host.onnx_models import model_of, node, tensor

NOT = model_of([node("BitwiseNot", "a", "y")], {"a": ("u1", ["n"])}, {"y": ("u1", ["n"])})
A = np.array([0, 1, 255], np.uint8)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Device]]:
    """Return the opened devices by name; all are models."""
    devices: dict[str, list[Device]] = {}
    shared = model()

    def open_device(url: str) -> Device:
        devices.setdefault(url, []).append(model())
        return devices[url][-1]

    def default_device() -> Device:
        devices.setdefault("the default", []).append(shared)
        return shared

    monkeypatch.setattr(bitlane.onnx.backend, "open_device", open_device)
    monkeypatch.setattr(bitlane.onnx.backend, "default_device", default_device)
    return devices


def test_it_is_a_backend_as_onnx_defines_one() -> None:
    assert issubclass(bitlane.onnx.Backend, onnx.backend.base.Backend)
    assert issubclass(bitlane.onnx.PreparedGraph, onnx.backend.base.BackendRep)


def test_devices_are_bitlanes_and_the_one_of_onnxs_tools(opened: dict[str, list[Device]]) -> None:
    supported = [
        name
        for name in ("CPU", "sim", "sim:pysim?width=32", "serial:/dev/ttyUSB1", "CUDA", "CUDA:1")
        if bitlane.onnx.supports_device(name)
    ]
    assert supported == ["CPU", "sim", "sim:pysim?width=32", "serial:/dev/ttyUSB1"]
    assert bitlane.onnx.is_compatible(NOT)
    assert bitlane.onnx.is_compatible(NOT, model())
    assert not bitlane.onnx.is_compatible(NOT, "CUDA")
    assert opened == {}


def test_the_default_device_stays_open(opened: dict[str, list[Device]]) -> None:
    (y,) = bitlane.onnx.run_model(NOT, [A])
    assert y.tolist() == [255, 254, 0]
    assert [device.closed for device in opened["the default"]] == [False]


def test_a_device_opened_for_a_model_is_closed_with_it(opened: dict[str, list[Device]]) -> None:
    with bitlane.onnx.prepare(NOT, "sim") as prepared:
        assert prepared.run([A])[0].tolist() == [255, 254, 0]
        assert not opened["sim"][0].closed
    assert opened["sim"][0].closed
    with pytest.raises(LinkError, match="closed"):
        prepared.run([A])
    prepared.close()
    bitlane.onnx.run_model(NOT, [A], "sim")
    assert [device.closed for device in opened["sim"]] == [True, True]


def test_a_device_of_the_callers_stays_open() -> None:
    device = model()
    with bitlane.onnx.prepare(NOT, device) as prepared:
        (array,) = prepared.arrays([device.asarray(A)])
        assert array.pending
        assert (array ^ A).get().tolist() == [255, 255, 255]
    assert not device.closed


def test_no_device_is_opened_for_a_model_that_is_refused(opened: dict[str, list[Device]]) -> None:
    with pytest.raises(OnnxError):
        bitlane.onnx.run_model(onnx.ModelProto(), [A], "sim")
    assert opened == {}


def test_a_device_without_room_for_the_constants_is_closed(opened: dict[str, list[Device]]) -> None:
    large = np.zeros(1 << 20, np.uint8)
    graph = model_of([], {}, {"k": ("u1", [1 << 20])}, [tensor("k", large)])
    with pytest.raises(bitlane.OutOfDeviceMemory):
        bitlane.onnx.prepare(graph, "sim")
    assert opened["sim"][0].closed


def test_outputs_are_found_by_number_and_by_name(opened: dict[str, list[Device]]) -> None:
    nodes = [node("BitwiseNot", "a", "y"), node("BitwiseXor", "a a", "0")]
    outputs = {"y": ("u1", [3]), "0": ("u1", [3])}
    got = bitlane.onnx.run_model(model_of(nodes, {"a": ("u1", [3])}, outputs), {"a": A})
    assert isinstance(got, tuple)
    assert [x.tolist() for x in got] == [[255, 254, 0], [0, 0, 0]]
    assert got.y is got["y"] is got[0]
    assert got["0"] is got[1]


def test_a_node_runs_by_itself(opened: dict[str, list[Device]]) -> None:
    shift = node("BitShift", "a b", "y", direction="RIGHT")
    a, b = np.array([-128, 64], np.int8), np.array([-1, 3], np.int8)
    assert bitlane.onnx.run_node(shift, [a, b])[0].tolist() == [-1, 8]
    with pytest.raises(OnnxError, match=r"input 'a': int8; expected tensor\(uint8\)"):
        bitlane.onnx.run_node(shift, [a, b], opset_version=11)
    unsigned = bitlane.onnx.run_node(shift, [A, A], opset_version=11)
    assert unsigned[0].tolist() == [0, 0, 0]
    with pytest.raises(OnnxError, match="inputs: 1; expected 2"):
        bitlane.onnx.run_node(shift, [a])
    with pytest.raises(OnnxError, match="opset_version: opset 1000; expected 1 to"):
        bitlane.onnx.run_node(shift, [a, b], opset_version=1000)


def test_the_settings_of_a_node_are_its_inputs(opened: dict[str, list[Device]]) -> None:
    shape, wanted = np.array([3, 1]), [[0], [1], [255]]
    got = bitlane.onnx.run_node(node("Reshape", "a s", "y"), [A, shape])
    assert got[0].tolist() == wanted
    with pytest.raises(OnnxError, match=r"\(Add\): an operator that bitlane does not have"):
        bitlane.onnx.run_node(node("Add", "a a", "y"), [A, A])


def test_a_node_of_one_array_twice_gets_one_array(opened: dict[str, list[Device]]) -> None:
    xor = node("BitwiseXor", "a a", "y")
    assert bitlane.onnx.run_node(xor, [A, A])[0].tolist() == [0, 0, 0]
    for other in (A + 1, A[:1], A.view(np.int8)):
        with pytest.raises(OnnxError, match="input 'a': two arrays that differ; expected one"):
            bitlane.onnx.run_node(xor, [A, other])


@pytest.mark.parametrize("kind", ["<f2", "<f4", ">f8"])
def test_a_node_gets_a_nan_twice(opened: dict[str, list[Device]], kind: str) -> None:
    equal = node("Equal", "a a", "y")
    a = np.array([1, np.nan, -0.0], kind)
    for other in (a, a.copy(), a.astype(a.dtype.newbyteorder())):
        assert bitlane.onnx.run_node(equal, [a, other])[0].tolist() == [True, False, True]
    with pytest.raises(OnnxError, match="input 'a': two arrays that differ; expected one"):
        bitlane.onnx.run_node(equal, [a, np.abs(a)])


def test_a_node_gets_booleans_of_other_bytes_twice(opened: dict[str, list[Device]]) -> None:
    a = np.array([0, 1, 2], np.uint8).view(bool)
    assert bitlane.onnx.run_node(node("Xor", "a a", "y"), [a, a != 0])[0].tolist() == [False] * 3


def test_what_is_no_model_and_what_is_no_list_are_refused() -> None:
    for thing in ("model.onnx", b"", NOT.graph, None):
        with pytest.raises(OnnxError, match=r"model: of type \w+; expected a ModelProto"):
            bitlane.onnx.prepare(thing, model())
    device = model()
    for one in (A[None], device.asarray(A[None])):
        with pytest.raises(OnnxError, match="inputs: one array; expected a list of arrays"):
            bitlane.onnx.run_model(NOT, one, device)


def test_options_are_refused() -> None:
    with pytest.raises(SettingError, match="options: tune; expected none"):
        bitlane.onnx.prepare(NOT, model(), tune=True)
    with pytest.raises(SettingError, match="options: rtol; expected none"):
        bitlane.onnx.prepare(NOT, model()).run([A], rtol=1e-3)


def test_its_errors_can_be_sent_to_another_process() -> None:
    for kind in (OnnxError, OnnxMissingError):
        again = pickle.loads(pickle.dumps(kind("model: bad; expected good")))
        assert (type(again), str(again)) == (kind, "model: bad; expected good")


def test_without_onnx_it_says_what_to_install() -> None:
    script = (
        "import sys; sys.modules['onnx'] = None\n"
        "import bitlane\n"
        "for get in (lambda: bitlane.onnx, lambda: __import__('bitlane.onnx')):\n"
        "    try:\n"
        "        get()\n"
        "    except bitlane.BitlaneError as error:\n"
        "        print(isinstance(error, ImportError), error)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=600, check=False
    )
    line = (
        "True bitlane.onnx needs the Python package onnx, which is not installed:"
        " pip install 'bitlane[onnx]' brings it\n"
    )
    assert (ran.stderr, ran.stdout) == ("", 2 * line)


# --- examples/onnx_add.py ----------------------------------------------------------------------


EXAMPLES = Path(__file__).parents[3] / "examples"


def mixed(word: int, key: int = 0x9E3779B9) -> int:
    added = (word ^ word >> 15) + key
    return (added ^ added << 15) % 2**32


@pytest.mark.parametrize(
    "url", [pytest.param("numpy"), pytest.param("sim", marks=pytest.mark.slow)]
)
def test_the_example_prints_what_its_page_says(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    runpy.run_path(str(EXAMPLES / "onnx_add.py"))["main"](url)
    *lines, last = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith("group ")] == [
        "group 1, device: node 0 (BitShift), node 1 (BitwiseXor)",
        "group 2, reference: 1 node",
        "group 3, device: node 3 (BitShift), node 4 (BitwiseXor)",
    ]
    assert last == "mixed: " + " ".join(f"{mixed(word << 29):08x}" for word in range(8))
    assert f"`{last}`" in (EXAMPLES / "README.md").read_text(encoding="utf-8")
