"""`bitlane run`, `check` and `lower`: options, output, and what becomes of the device."""

import json
import re
import sys
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import numpy as np
import pytest

from bitlane.links import Link
from bitlane.model_file import ModelFileError, load_model
from bitlane.onnx.whole import OTHERWISE
from bitlane_rtl.abi import Op
from support.command_line import CommandLine, contents, opens
from support.host.model_files import buffer, not_model
from support.host.model_link import NotingLink
from support.host.onnx_models import model_of, node

pytestmark = pytest.mark.usefixtures("folder")


class Terminal:
    """A terminal in a folder with models, whose commands open a ``link``."""

    def __init__(self, run: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
        self._run, self.refuse = run, run.refuse
        self.link = NotingLink()
        self.urls = opens(monkeypatch, self._open)

    def _open(self, _: str) -> Link:
        self.link.closed = False
        return self.link

    def take(self, model: Any) -> None:
        """Replace the model file."""
        Path("m.json").write_text(json.dumps(model))

    def __call__(self, *words: str, code: int = 0) -> str:
        """Return the text on standard output; expect none on standard error."""
        ended = self._run(*words)
        assert (ended.code, ended.err) == (code, "")
        return ended.out

    def run(self, *words: str, code: int = 0) -> list[str]:
        """Return the lines of `bitlane run` of the model file."""
        return self("run", "m.json", *words, code=code).splitlines()

    def errors(self, *words: str) -> list[str]:
        """Return the lines on standard error of a command that ends with code 2."""
        ended = self._run(*words)
        assert (ended.code, ended.out) == (2, "")
        return ended.err.splitlines()


@pytest.fixture
def terminal(run: CommandLine, monkeypatch: pytest.MonkeyPatch) -> Terminal:
    return Terminal(run, monkeypatch)


def test_runs_and_checks_on_the_simulator(terminal: Terminal) -> None:
    lines = terminal.run()
    assert terminal.urls == ["sim"]
    assert lines[0] == "Running on 'model of the contract'"
    assert lines[1].startswith("Dispatch 'not': 1 iterations, ")
    assert lines[1].endswith(" ms median (CPU), 123 cycles")
    assert lines[2:] == ["Check 'not': 4 bytes equal"]
    assert terminal.link.closed


def test_the_environment_names_the_device(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BITLANE_DEVICE", "sim:pysim")
    terminal.run()
    terminal.run("--device", "sim")
    assert terminal.urls == ["sim:pysim", "sim"]


def test_tells_that_a_check_failed(terminal: Terminal) -> None:
    terminal.link.flip = 0
    assert "1 of 4 bytes differ" in terminal.run(code=1)[-1]
    terminal.run("--no-check")


def test_counts_no_cycles_without_counters(terminal: Terminal) -> None:
    terminal.link = NotingLink(busy_cycles=None)
    assert terminal.run("--no-check")[1].endswith(" ms median (CPU)")


def test_closes_the_device_after_a_refusal(terminal: Terminal) -> None:
    assert "InputTensor" in terminal.refuse("run", "late.json")
    assert terminal.urls == ["sim"]
    assert terminal.link.closed


def test_feature_levels_are_directmls(terminal: Terminal) -> None:
    terminal.run("--feature-level", "6_4", "--no-check")


@pytest.mark.parametrize(
    ("device", "url"),
    [
        ("sim", "sim?vcd=w.vcd"),
        ("sim:pysim", "sim:pysim?vcd=w.vcd"),
        ("sim:compiled?width=32", "sim:compiled?width=32&vcd=w.vcd"),
    ],
)
@pytest.mark.parametrize("words", [("m.json",), ("x.onnx", "--input", "a=a.npy")])
def test_asks_the_simulator_for_waveforms(
    device: str, url: str, words: tuple[str, ...], terminal: Terminal
) -> None:
    terminal("run", *words, "--device", device, "--vcd", "w.vcd")
    assert terminal.urls == [url]


@pytest.mark.parametrize("file", ["a+b.vcd", "a&width=32.vcd", "100%.vcd", "o/my wave.vcd", "é#?"])
def test_any_name_of_a_waveform_file_reaches_the_simulator(file: str, terminal: Terminal) -> None:
    terminal.run("--device", "sim?width=32", "--vcd", file)
    (url,) = terminal.urls
    assert parse_qsl(url.partition("?")[2]) == [("width", "32"), ("vcd", file)]


# --- Iterations and JSON ------------------------------------------------------------------------


def test_iterations_are_told_with_their_medians(terminal: Terminal) -> None:
    line = terminal.run("--iterations", "5")[1]
    assert line.startswith("Dispatch 'not': 5 iterations, ")
    assert line.endswith(" ms median (CPU), 123 cycles")
    assert terminal.link.calls.count("NOT") == 5


def test_json_is_one_object_and_all_of_the_output(terminal: Terminal) -> None:
    model = not_model()
    model["commands"] += [
        {"type": "print", "resource": "out"},
        {"type": "writeFile", "resource": "out", "targetPath": "out.bin"},
    ]
    terminal.take(model)
    found = json.loads(terminal("run", "m.json", "--json", "--iterations", "3"))
    assert found["dispatches"][0].pop("milliseconds") > 0
    assert found == {
        "device": "model of the contract",
        "passed": True,
        "dispatches": [{"name": "not", "iterations": 3, "cycles": 123}],
        "checks": [{"name": "not", "bytes": 4, "different": 0}],
        "resources": [{"name": "out", "type": "UINT8", "values": [254, 253, 252]}],
        "files": [{"name": "out", "path": "out.bin"}],
    }


def test_json_tells_of_a_check_that_failed(terminal: Terminal) -> None:
    terminal.link.flip = 0
    found = json.loads(terminal("run", "m.json", "--json", code=1))
    assert not found["passed"]
    assert found["checks"] == [{"name": "not", "bytes": 4, "different": 1}]


def test_json_has_no_numbers_that_are_none(terminal: Terminal) -> None:
    model = not_model([{"type": "print", "resource": "in"}])
    model["resources"]["in"] = buffer("FLOAT32", [1.5, "nan", "inf", "-inf"])
    terminal.take(model)
    (shown,) = json.loads(terminal("run", "m.json", "--json"))["resources"]
    assert shown["values"] == [1.5, "nan", "inf", "-inf"]


# --- check ------------------------------------------------------------------------------------


def test_says_what_has_been_found(terminal: Terminal) -> None:
    model = not_model()
    model["commands"] *= 2
    model["dispatchables"]["unused"] = model["dispatchables"]["not"]
    terminal.take(model)
    expected = "m.json: 2 resources, 2 dispatchables, 2 dispatches: nothing is wrong\n"
    assert terminal("check", "m.json") == expected


def test_has_no_effects(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BITLANE_DEVICE", "serial:/dev/none")
    model = not_model([{"type": "writeFile", "resource": "out", "targetPath": "a/b.npy"}])
    model["resources"]["in"] = buffer("UINT8", {"valueCount": 1 << 30, "value": 0})
    terminal.take(model)
    before = contents()
    terminal("check", "m.json")
    assert (contents(), terminal.urls) == (before, [])


def test_says_that_onnx_models_are_not_checked(folder: Path) -> None:
    model = folder / "m.ONNX"
    model.write_bytes(b"\x08\x0a\xff")
    with pytest.raises(ModelFileError, match="the file is an ONNX model; expected a model file of"):
        load_model(model)


def test_all_errors_are_listed_in_order(terminal: Terminal) -> None:
    model = not_model()
    model["surplus"] = 1
    model["resources"] |= {"bad": buffer("UINT8", [256], kind=1), "good": buffer("UINT8", [1])}
    model["resources"]["number"] = 3
    sizes = {"DataType": "UINT8", "Sizes": [0]}
    kind = "DML_OPERATOR_ELEMENT_WISE_BIT_NOT"
    desc = {"InputTensor": sizes, "OutputTensor": sizes}
    model["dispatchables"]["empty"] = {"type": kind, "desc": desc}
    model["dispatchables"]["other"] = {"type": "DML_OPERATOR_GEMM"}

    def dispatch(name: str, **bindings: Any) -> dict[str, Any]:
        return {"type": "dispatch", "dispatchable": name, "bindings": bindings}

    model["commands"] = [
        dispatch("empty"),
        dispatch("not", InputTensor="none", OutputTensor="bad", C=1),
        {"type": "print", "resource": "bad", "verbose": 3},
        dispatch("not", InputTensor="good", OutputTensor="out"),
        {"type": "writeFile", "resource": "good", "targetPath": "a.txt"},
    ]
    terminal.take(model)
    errors = terminal.errors("check", "m.json")
    places = [re.match(r"bitlane: m\.json: (\S+)", line) for line in errors]
    assert [place and place[1] for place in places] == [
        "surplus",
        "resources.bad.kind",
        "resources.bad.initialValues[0]",
        "resources.number",
        "dispatchables.empty.desc.InputTensor.Sizes[0]",
        "dispatchables.empty.desc.OutputTensor.Sizes[0]",
        "dispatchables.other.type",
        "commands[1].bindings.C",
        "commands[1].bindings.InputTensor",
        "commands[4].targetPath",
        "commands[3].bindings.InputTensor",
    ]
    assert "surplus" in terminal.refuse("run", "m.json", "--device", "none:")


def test_names_of_a_model_are_no_commands_to_the_terminal(terminal: Terminal) -> None:
    """Neither in results, nor in commands, nor in errors."""
    name = "\x1b]0;x\x07\u202e\nü"
    text = json.dumps(not_model()).replace('"not"', json.dumps(name)).replace('"in"', '"\\u009b"')
    model = json.loads(text)
    model["commands"] += [
        {"type": "print", "resource": "\x9b", "verbose": True},
        {"type": "writeFile", "resource": "\x9b", "targetPath": "\x1b[2J.bin"},
    ]
    terminal.take(model)
    lines = terminal.run()
    assert [line.count("ü") for line in lines[1:3]] == [1, 1]
    assert r"Dispatch '\x1b]0;x\x07\u202e\nü'" in lines[1]
    assert r"Resource '\x9b' written to '\x1b[2J.bin'" in lines
    lowered = terminal("lower", "m.json").splitlines()
    assert r"Dispatch '\x1b]0;x\x07\u202e\nü'" in "".join(lowered)
    model["commands"][0]["bindings"]["InputTensor"] = name
    model["resources"]["\x9b"]["initialValues"] = []
    terminal.take(model)
    errors = terminal.errors("check", "m.json")
    assert r"resources.\x9b.initialValues is []" in errors[0]
    assert [line for line in (*lines, *lowered, *errors) if not line.isprintable()] == []


def test_a_device_is_read_and_left_alone(terminal: Terminal) -> None:
    terminal.link = NotingLink(ops=frozenset({Op.XOR}))
    line = terminal.refuse("check", "m.json", "--device", "sim")
    assert re.search(r"Type\) is NOT; expected .* built with: XOR", line)
    assert {kind for kind, *_ in terminal.link.traffic} == {"read"}
    assert terminal.link.calls == []
    assert terminal.link.closed


# --- ONNX models ------------------------------------------------------------------------------


RUN_X = ("run", "x.onnx", "--input", "a=a.npy")


def test_it_runs_and_checks_and_writes(terminal: Terminal) -> None:
    lines = terminal(*RUN_X, "--output", "y=out/y.npy").splitlines()
    assert terminal.urls == ["sim"]
    assert lines[0] == "Running on 'model of the contract'"
    assert lines[1].startswith("pass ")
    assert lines[-7].startswith("unfused  2 passes ")
    assert lines[-6].startswith("Graph 'graph': 1 iterations, ")
    assert lines[-6].endswith(" ms median (CPU), 246 cycles")
    assert lines[-5:] == [
        "Check 'y': 3 bytes equal",
        "Check 'x': 3 bytes equal",
        "Output 'y' written to 'out/y.npy'",
        "Output 'x': uint8 of shape (3,)",
        "[2 1 0]",
    ]
    written = np.load("out/y.npy")
    assert written.dtype == np.uint8
    assert written.tolist() == [253, 254, 255]
    assert terminal.link.closed


def test_a_wrong_bit_of_the_device_is_found(terminal: Terminal) -> None:
    terminal.link.flip = 0
    assert "1 of 3 bytes differ, first byte " in terminal(*RUN_X, code=1)
    assert "Check" not in terminal(*RUN_X, "--no-check")


def test_booleans_of_other_bytes_pass_the_check(terminal: Terminal) -> None:
    nodes = [node("Not", "a", "n"), node("Xor", "a n", "y")]
    outputs = {"n": ("?", [5]), "y": ("?", [5])}
    Path("b.onnx").write_bytes(model_of(nodes, {"a": ("?", [5])}, outputs).SerializeToString())
    np.save("b.npy", np.array([0, 1, 2, 128, 255], np.uint8).view(bool))
    out = terminal("run", "b.onnx", "--input", "a=b.npy", "--output", "n=n.npy")
    assert "Check 'n': 5 bytes equal" in out
    assert np.load("n.npy").view(np.uint8).tolist() == [1, 0, 0, 0, 0]


# --- nodes that a device lacks ------------------------------------------------------------------


RUN_MIXED = (
    *("run", "mixed.onnx", "--input", "a=i.npy", "--input", "b=three.npy"),
    *("--device", "numpy", "--rest"),
)
LACKING = (
    "node 1 (Add): an operator that bitlane does not have",
    "node 2 (Mul): an operator that bitlane does not have",
)


def test_check_lists_all_nodes_that_are_lacking(terminal: Terminal) -> None:
    assert terminal.errors("check", "mixed.onnx") == [
        f"bitlane: mixed.onnx: {LACKING[0]}",
        f"bitlane: mixed.onnx: {LACKING[1]}; {OTHERWISE}",
    ]


def test_check_lists_the_groups(terminal: Terminal) -> None:
    assert terminal("check", "mixed.onnx", "--rest", "reference").splitlines() == [
        "group 1, device: node 0 (BitwiseXor)",
        "group 2, reference: 2 nodes",
        *(f"  {each}" for each in LACKING),
        "group 3, device: node 3 (BitwiseAnd)",
        "mixed.onnx: 4 nodes, 3 groups: nothing is wrong",
    ]


def test_check_reports_what_onnx_says(terminal: Terminal) -> None:
    first, *others = terminal.errors("check", "new.onnx")
    assert first.startswith("bitlane: new.onnx: model: onnx.checker: ")
    # Nor can ONNX infer the types of such a model.
    assert len(others) == 3
    assert "onnx.checker" in terminal.refuse("check", "new.onnx", "--rest", "reference")


def test_lower_prints_the_commands_of_each_group(run: CommandLine) -> None:
    options = ("--rest", "reference", "--length", "n=8", "--device", "numpy")
    code, out, err = run("lower", "mixed.onnx", *options)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].startswith("For beats of 64 bits, ")
    assert lines[1:5] == [
        "group 1, device: node 0 (BitwiseXor)",
        "  reads 'a', 'b' (64 bytes), gives 'x' (32 bytes)",
        "  0 XOR, 8 bits, run 32, fence",
        "    A DENSE   0x00000000 to 0x0000001f",
    ]
    assert f"  {LACKING[1]}" in lines
    assert "  0 AND, 8 bits, run 32, fence" in lines


def test_lower_takes_a_group_that_reads_all_values(terminal: Terminal) -> None:
    model = model_of([node("Not", "a", "y")], {"a": ("?", [5])}, {"y": ("?", [5])})
    Path("n.onnx").write_bytes(model.SerializeToString())
    assert "  0 XOR, 8 bits, run 5, fence" in terminal("lower", "n.onnx").splitlines()


def test_run_says_what_is_not_checked(run: CommandLine) -> None:
    code, out, err = run(*RUN_MIXED, "reference")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert "group 2, reference: 2 nodes" in lines
    assert lines[-5:] == [
        "Check 'x': 32 bytes equal",
        "Not checked: 't' of another backend",
        "Check 'y': 32 bytes equal",
        "Output 'y': int32 of shape (8,)",
        "[2 2 0 0 2 2 4 4]",
    ]


def test_run_names_what_is_not_installed(run: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    assert run.refuse(*RUN_MIXED, "onnxruntime").endswith(
        "rest: 'onnxruntime' needs the Python package onnxruntime, which is not installed: pip"
        " install 'bitlane[onnxruntime]' brings it"
    )
