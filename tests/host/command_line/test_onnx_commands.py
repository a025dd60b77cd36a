"""`bitlane check`, `lower` and `run` of ONNX models with nodes that a device lacks."""

from pathlib import Path

import numpy as np
import onnx.parser
import pytest

from bitlane.command_line.cli import DONE
from bitlane.onnx.whole import OTHERWISE
from support.command_line import CommandLine

MIXED = """<ir_version: 10, opset_import: ["": 18]>
mixed (int32[n] a, int32[n] b) => (int32[n] y) <int32 k = {7}> {
    x = BitwiseXor(a, b)
    s = Add(x, k)
    t = Mul(s, k)
    y = BitwiseAnd(t, x)
}"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    onnx.save(onnx.parser.parse_model(MIXED), "m.onnx")
    np.save("a.npy", np.arange(8, dtype=np.int32))
    np.save("b.npy", np.full(8, 3, np.int32))
    Path("m.json").write_text("{}", encoding="utf-8")


RUN = ("m.onnx", "--input", "a=a.npy", "--input", "b=b.npy", "--device", "numpy")


def test_check_lists_all_nodes_that_are_lacking(run: CommandLine) -> None:
    code, out, err = run("check", "m.onnx")
    assert (code, out) == (2, "")
    assert err.splitlines() == [
        "bitlane: m.onnx: node 1 (Add): an operator that bitlane does not have",
        "bitlane: m.onnx: node 2 (Mul): an operator that bitlane does not have; " + OTHERWISE,
    ]


def test_check_lists_the_groups(run: CommandLine) -> None:
    code, out, err = run("check", "m.onnx", "--rest", "reference")
    assert (code, err) == (DONE, "")
    assert out.splitlines() == [
        "group 1, device: node 0 (BitwiseXor)",
        "group 2, reference: 2 nodes",
        "  node 1 (Add): an operator that bitlane does not have",
        "  node 2 (Mul): an operator that bitlane does not have",
        "group 3, device: node 3 (BitwiseAnd)",
        "m.onnx: 4 nodes, 3 groups: nothing is wrong",
    ]


def test_check_reports_what_onnx_says(run: CommandLine) -> None:
    model = onnx.parser.parse_model(MIXED)
    model.ir_version = 99
    onnx.save(model, "bad.onnx")
    code, _, err = run("check", "bad.onnx")
    assert code == 2
    first, *others = err.splitlines()
    assert first.startswith("bitlane: bad.onnx: model: onnx.checker: ")
    # Nor can ONNX infer the types of such a model.
    assert len(others) == 3
    assert "onnx.checker" in run.refuse("check", "bad.onnx", "--rest", "reference")


def test_lower_prints_the_commands_of_each_group(run: CommandLine) -> None:
    options = ("--rest", "reference", "--length", "n=8", "--device", "numpy")
    code, out, err = run("lower", "m.onnx", *options)
    assert (code, err) == (DONE, "")
    lines = out.splitlines()
    assert lines[0].startswith("For beats of 64 bits, ")
    assert lines[1:5] == [
        "group 1, device: node 0 (BitwiseXor)",
        "  reads 'a', 'b' (64 bytes), gives 'x' (32 bytes)",
        "  0 XOR, 8 bits, run 32, fence",
        "    A DENSE   0x00000000 to 0x0000001f",
    ]
    assert "  node 2 (Mul): an operator that bitlane does not have" in lines
    assert "  0 AND, 8 bits, run 32, fence" in lines


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("m.onnx",), "node 1 (Add): an operator that bitlane does not have; nor does"),
        (("m.onnx", "--rest", "reference"), "without a length of n; expected one (--length n=LEN"),
        (
            ("m.onnx", "--rest", "reference", "--length", "n=8", "--length", "m=8"),
            "m.onnx: --length: no axis of an input is 'm'; expected 'n'",
        ),
        (("m.onnx", "--length", "n=x"), "--length n=x: expected NAME=LENGTH"),
        (("m.onnx", "--length", "=1"), "--length =1: expected NAME=LENGTH"),
        (("m.onnx", "--length", "n=1", "--length", "n=2"), "n is there already; expected it once"),
        (("m.json", "--length", "n=1"), "--length: m.json is not an ONNX model; expected MODEL."),
        (("m.json", "--rest", "reference"), "--rest: m.json is not an ONNX model; expected MODEL"),
        (("m.onnx", "--feature-level", "3_0"), "--feature-level: m.onnx is an ONNX model; expect"),
        (("m.onnx", "--rest", "tvm"), "rest: 'tvm'; expected None, 'onnxruntime' or 'reference'"),
    ],
)
def test_lower_refuses_in_one_line(run: CommandLine, words: tuple[str, ...], message: str) -> None:
    assert message in run.refuse("lower", *words, "--device", "numpy")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("m.onnx", "--device", "numpy"), "--device: m.onnx is an ONNX model; expected a model"),
        (("m.json", "--rest", "reference"), "--rest: m.json is not an ONNX model; expected MODEL"),
        (("m.onnx", "--feature-level", "3_0"), "--feature-level: m.onnx is an ONNX model; expect"),
        (("m.onnx", "--rest", "tvm"), "rest: 'tvm'; expected None, 'onnxruntime' or 'reference'"),
    ],
)
def test_check_refuses_in_one_line(run: CommandLine, words: tuple[str, ...], message: str) -> None:
    assert message in run.refuse("check", *words)


def test_run_says_what_is_not_checked(run: CommandLine) -> None:
    code, out, err = run("run", *RUN, "--rest", "reference")
    assert (code, err) == (DONE, "")
    lines = out.splitlines()
    assert "group 2, reference: 2 nodes" in lines
    assert lines[-5:] == [
        "Check 'x': 32 bytes equal",
        "Not checked: 't' of another backend",
        "Check 'y': 32 bytes equal",
        "Output 'y': int32 of shape (8,)",
        "[2 2 0 0 2 2 4 4]",
    ]


def test_run_names_the_option_and_what_is_not_installed(
    run: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "(--rest) computes such nodes off the device" in run.refuse("run", *RUN)
    monkeypatch.setitem(__import__("sys").modules, "onnxruntime", None)
    assert run.refuse("run", *RUN, "--rest", "onnxruntime").endswith(
        "rest: 'onnxruntime' needs the Python package onnxruntime, which is not installed: pip"
        " install 'bitlane[onnxruntime]' brings it"
    )
