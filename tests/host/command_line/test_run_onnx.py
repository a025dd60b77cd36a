"""`bitlane run MODEL.onnx`: files in, files out, and what is said of bad ones."""

from pathlib import Path

import numpy as np
import pytest

import bitlane.command_line.run_onnx
from bitlane import Device
from bitlane.command_line.cli import CHECK_FAILED, DONE
from bitlane.driver.driver import Driver
from support.command_line import CommandLine
from support.host.model_driver import NotingLink
from support.host.onnx_models import model_of, node, tensor

A = np.array([1, 2, 3], np.uint8)


class Terminal:
    """A terminal that runs `bitlane run` in a separate folder, on a model of the device."""

    def __init__(self, run: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
        self.link = NotingLink()
        self.urls: list[str] = []
        self._run = run
        monkeypatch.setattr(bitlane.command_line.run_onnx, "open_device", self._open)

    def _open(self, url: str) -> Device:
        self.urls.append(url)
        self.link.closed = False
        return Device(Driver(self.link))

    def __call__(self, *words: str) -> tuple[int, str, str]:
        """Return the exit code, and the text on standard output and standard error."""
        return self._run("run", *words)

    def refusal(self, *words: str) -> str:
        """Return the line on standard error; expect that no device was opened."""
        line = self._run.refuse("run", *words)
        assert self.urls == []
        return line.removeprefix("bitlane: ")


@pytest.fixture
def terminal(tmp_path: Path, run: CommandLine, monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.chdir(tmp_path)
    graph = model_of(
        [node("BitwiseXor", "a k", "x"), node("BitwiseNot", "x", "y")],
        {"a": ("u1", ["n"])},
        {"y": ("u1", ["n"]), "x": ("u1", ["n"])},
        [tensor("k", np.array(3, np.uint8))],
    )
    Path("m.onnx").write_bytes(graph.SerializeToString())
    np.save("a.npy", A)
    return Terminal(run, monkeypatch)


def test_it_runs_and_checks_and_writes(terminal: Terminal) -> None:
    code, out, text = terminal("m.onnx", "--input", "a=a.npy", "--output", "y=out/y.npy")
    assert (code, text, terminal.urls) == (DONE, "", ["sim"])
    lines = out.splitlines()
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
    code, out, _ = terminal("m.onnx", "--input", "a=a.npy")
    assert code == CHECK_FAILED
    assert "1 of 3 bytes differ, first byte " in out
    code, out, _ = terminal("m.onnx", "--input", "a=a.npy", "--no-check")
    assert code == DONE
    assert "Check" not in out


def test_waveforms_are_asked_for(terminal: Terminal) -> None:
    code, _, _ = terminal("m.onnx", "--input", "a=a.npy", "--vcd", "w.vcd")
    assert (code, terminal.urls) == (DONE, ["sim?vcd=w.vcd"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "input 'a': nothing given; expected uint8 of shape (n,)"),
        (("--input", "b=a.npy"), "input 'b': the model has none; expected 'a'"),
        (("--input", "a=a.npy", "--input", "b=a.npy"), "input 'b': the model has none; expected"),
        (("--input", "a=a.npy", "--input", "a=a.npy"), "--input a=a.npy: a is there already"),
        (
            ("--input", "a=a.npy", "--output", "z=z.npy"),
            "--output: m.onnx has no 'z'; expected 'y'",
        ),
        (("--input", "a"), "--input a: expected NAME=FILE.npy"),
        (("--input", "=a.npy"), "--input =a.npy: expected NAME=FILE.npy"),
        (
            ("--input", "a=a.npy", "--output", "x=z.npy", "--output", "y=./z.npy"),
            "--output: two go to the same file; expected one for each",
        ),
        (
            ("--input", "a=a.npy", "--output", "y=/proc/y.npy"),
            "--output y=/proc/y.npy: expected a folder that can be written to; /proc cannot",
        ),
        (("--input", "a=a.npy", "--output", "y=y.bin"), "--output y=y.bin: expected NAME=FILE.npy"),
        (("--input", "a=none.npy"), "none.npy: No such file"),
        (("--input", "a=long.npy"), "input 'a': uint16; expected uint8 of shape (n,)"),
        (("--input", "a=flat.npy"), "'a': shape (1, 3); expected uint8 of shape (n,)"),
        (("--input", "a=objects.npy"), "--input: objects.npy; expected a NumPy array file ("),
        (
            ("--input", "a=text.npy"),
            "text.npy; expected a NumPy array file (it does not start like",
        ),
        (("--input", "a=huge.npy"), "--input: huge.npy; expected"),
    ],
)
def test_bad_words_and_files(words: tuple[str, ...], message: str, terminal: Terminal) -> None:
    np.save("long.npy", A.astype(np.uint16))
    np.save("flat.npy", A[None])
    np.save("objects.npy", np.array([print]), allow_pickle=True)
    Path("text.npy").write_text("1 2 3")
    head = b"{'descr': '|u1', 'fortran_order': False, 'shape': (1099511627776,)}\n"
    Path("huge.npy").write_bytes(b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head)
    assert message in terminal.refusal("m.onnx", *words)


def test_a_bad_model_is_named(terminal: Terminal) -> None:
    Path("bad.onnx").write_bytes(Path("m.onnx").read_bytes()[:-1])
    assert terminal.refusal("bad.onnx").startswith("bad.onnx: not ONNX's format, or cut off")
    add = model_of([node("Add", "a a", "y")], {"a": ("u1", [1])}, {"y": ("u1", [1])})
    Path("add.onnx").write_bytes(add.SerializeToString())
    assert terminal.refusal("add.onnx").startswith("add.onnx: node 0 (Add): an operator that")
    assert terminal.refusal("none.onnx").startswith("none.onnx: No such file")


def test_model_files_take_no_tensors(terminal: Terminal) -> None:
    message = terminal.refusal("m.json", "--input", "a=a.npy")
    assert message.startswith("--input, --output: m.json is not an ONNX model; expected MODEL.onnx")


def test_a_result_that_cannot_be_written_is_known_before_anything_runs(terminal: Terminal) -> None:
    Path("y.npy").mkdir()
    message = terminal.refusal("m.onnx", "--input", "a=a.npy", "--output", "y=y.npy")
    assert message.startswith("--output y=y.npy: expected a file, not a folder")


@pytest.mark.parametrize(
    "option", [("--feature-level", "3_0"), ("--feature-level", "4_1"), ("--json",)]
)
def test_options_of_model_files_are_refused(terminal: Terminal, option: tuple[str, ...]) -> None:
    message = terminal.refusal("m.onnx", "--input", "a=a.npy", *option)
    assert message == f"{option[0]}: m.onnx is an ONNX model; expected a model file"


def test_booleans_of_other_bytes_pass_the_check(terminal: Terminal) -> None:
    nodes = [node("Not", "a", "n"), node("Xor", "a n", "y")]
    outputs = {"n": ("?", [5]), "y": ("?", [5])}
    Path("b.onnx").write_bytes(model_of(nodes, {"a": ("?", [5])}, outputs).SerializeToString())
    np.save("b.npy", np.array([0, 1, 2, 128, 255], np.uint8).view(bool))
    code, out, _ = terminal("b.onnx", "--input", "a=b.npy", "--output", "n=n.npy")
    assert code == DONE
    assert "Check 'n': 5 bytes equal" in out
    assert np.load("n.npy").view(np.uint8).tolist() == [1, 0, 0, 0, 0]
