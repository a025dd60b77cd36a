"""`bitlane run` and `check`: options, exit codes, and what becomes of the device."""

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest

import bitlane.command_line.check
import bitlane.command_line.lower
import bitlane.command_line.run
from bitlane.model_file import ModelFileError, load_model
from bitlane_rtl.abi import Op
from support.command_line import CommandLine
from support.host.model_driver import NotingLink
from support.host.model_runner import buffer, not_model


class Terminal:
    """A terminal that runs `bitlane run` on a model of the device, in the model's folder."""

    def __init__(self, run: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
        self._run = run
        self.link = NotingLink()
        self.urls: list[str] = []
        self.take(not_model())
        monkeypatch.setattr(bitlane.command_line.run, "open_link", self._open)

    def _open(self, url: str) -> NotingLink:
        self.urls.append(url)
        self.link.closed = False
        return self.link

    def take(self, model: object) -> None:
        """Replace the model."""
        Path("m.json").write_text(model if isinstance(model, str) else json.dumps(model))

    def __call__(self, *words: str, code: int = 0) -> str:
        """Return the text on standard output."""
        ended = self._run("run", "m.json", *words)
        assert (ended.code, ended.err) == (code, "")
        return ended.out

    def refuse(self, message: str, *words: str, urls: Sequence[str] = ()) -> None:
        """Expect that the options are refused after ``urls`` have been opened."""
        assert re.search(message, self._run.refuse("run", "m.json", *words))
        assert self.urls == [*urls]


@pytest.fixture
def terminal(tmp_path: Path, run: CommandLine, monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.chdir(tmp_path)
    return Terminal(run, monkeypatch)


def test_runs_and_checks_on_the_simulator(terminal: Terminal) -> None:
    lines = terminal().splitlines()
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
    terminal()
    terminal("--device", "sim")
    assert terminal.urls == ["sim:pysim", "sim"]


def test_tells_that_a_check_failed(terminal: Terminal) -> None:
    terminal.link.flip = 0
    assert "1 of 4 bytes differ" in terminal(code=1)
    terminal("--no-check")


def test_counts_no_cycles_without_counters(terminal: Terminal) -> None:
    terminal.link = NotingLink(busy_cycles=None)
    assert terminal("--no-check").splitlines()[1].endswith(" ms median (CPU)")


def test_opens_no_device_for_a_bad_file(terminal: Terminal) -> None:
    terminal.take("{")
    terminal.refuse("line 1, column 2")


def test_closes_the_device_after_a_refusal(terminal: Terminal) -> None:
    model = not_model()
    model["commands"][0]["bindings"]["InputTensor"] = {"name": "in", "elementOffset": 16}
    terminal.take(model)
    terminal.refuse("InputTensor", urls=["sim"])
    assert terminal.link.closed


def test_feature_levels_are_directmls(terminal: Terminal) -> None:
    terminal("--feature-level", "6_4", "--no-check")
    terminal.refuse("FeatureLevel", "--feature-level", "2_1", urls=["sim"])
    terminal.refuse("invalid choice: '7_0'", "--feature-level", "7_0", urls=["sim"])


@pytest.mark.parametrize(
    ("device", "url"),
    [
        ("sim", "sim?vcd=w.vcd"),
        ("sim:pysim", "sim:pysim?vcd=w.vcd"),
        ("sim:compiled?width=32", "sim:compiled?width=32&vcd=w.vcd"),
    ],
)
def test_asks_the_simulator_for_waveforms(device: str, url: str, terminal: Terminal) -> None:
    terminal("--device", device, "--vcd", "w.vcd")
    assert terminal.urls == [url]


@pytest.mark.parametrize("file", ["a+b.vcd", "a&width=32.vcd", "100%.vcd", "o/my wave.vcd", "é#?"])
def test_any_name_of_a_waveform_file_reaches_the_simulator(file: str, terminal: Terminal) -> None:
    terminal("--device", "sim?width=32", "--vcd", file)
    (url,) = terminal.urls
    assert parse_qsl(url.partition("?")[2]) == [("width", "32"), ("vcd", file)]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--device", "serial:x", "--vcd", "w.vcd"], "serial:x is not a simulated device"),
        (["--trace", "a", "--report", "./a"], r"--report: a is --trace's; expected another file"),
        (["--vcd", "a", "--trace", "a"], r"--trace: a is --vcd's; expected another file"),
        (["--trace", "m.json"], r"--trace: m\.json is MODEL's; expected another file"),
        (["--iterations", "0"], "--iterations: 0; expected 1 or more"),
        (["--iterations", "-3"], "--iterations: -3; expected 1 or more"),
    ],
)
def test_options_that_do_not_fit(words: list[str], message: str, terminal: Terminal) -> None:
    terminal.refuse(message, *words)


# --- Iterations and JSON ------------------------------------------------------------------------


def test_iterations_are_told_with_their_medians(terminal: Terminal) -> None:
    line = terminal("--iterations", "5").splitlines()[1]
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
    found = json.loads(terminal("--json", "--iterations", "3"))
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
    found = json.loads(terminal("--json", code=1))
    assert not found["passed"]
    assert found["checks"] == [{"name": "not", "bytes": 4, "different": 1}]


def test_json_has_no_numbers_that_are_none(terminal: Terminal) -> None:
    model = not_model([{"type": "print", "resource": "in"}])
    model["resources"]["in"] = buffer("FLOAT32", [1.5, "nan", "inf", "-inf"])
    terminal.take(model)
    (shown,) = json.loads(terminal("--json"))["resources"]
    assert shown["values"] == [1.5, "nan", "inf", "-inf"]


# --- check ------------------------------------------------------------------------------------


Check = Callable[..., str]


@pytest.fixture
def check(tmp_path: Path, run: CommandLine, monkeypatch: pytest.MonkeyPatch) -> Check:
    """Return a function that returns the output of `bitlane check`, or the line that refuses."""
    monkeypatch.chdir(tmp_path)

    def of(model: Any, *options: str, refuses: bool = False) -> str:
        Path("m.json").write_text(model if isinstance(model, str) else json.dumps(model))
        words = ("check", "m.json", *options)
        if refuses:
            return run.refuse(*words)
        code, text, error = run(*words)
        assert (code, error) == (0, "")
        return text

    return of


def test_says_what_has_been_found(check: Check) -> None:
    model = not_model()
    model["commands"] *= 2
    model["dispatchables"]["unused"] = model["dispatchables"]["not"]
    expected = "m.json: 2 resources, 2 dispatchables, 2 dispatches: nothing is wrong\n"
    assert check(model) == expected


def test_has_no_effects(check: Check, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BITLANE_DEVICE", "serial:/dev/none")
    model = not_model([{"type": "writeFile", "resource": "out", "targetPath": "a/b.npy"}])
    model["resources"]["in"] = buffer("UINT8", {"valueCount": 1 << 30, "value": 0})
    check(model)
    assert [path.name for path in tmp_path.iterdir()] == ["m.json"]


@pytest.mark.parametrize(
    ("binding", "message"),
    [
        ("none", r"commands\[0\]\.bindings\.InputTensor is \"none\"; expected a resource: in, out"),
        ({"name": "in", "elementOffset": 3}, r"InputTensor\.elementOffset is 3 bytes; expected a"),
    ],
)  # fmt: skip
def test_refuses_what_running_refuses(binding: object, message: str, check: Check) -> None:
    model = not_model()
    model["commands"][0]["bindings"]["InputTensor"] = binding
    assert re.search(message, check(model, refuses=True))


def test_refuses_what_is_no_model(check: Check) -> None:
    assert "line 1, column 2" in check("{", refuses=True)
    assert "FeatureLevel" in check(not_model(), "--feature-level", "2_1", refuses=True)


def test_says_that_onnx_models_are_not_checked(tmp_path: Path) -> None:
    model = tmp_path / "m.ONNX"
    model.write_bytes(b"\x08\x0a\xff")
    with pytest.raises(ModelFileError, match="the file is an ONNX model; expected a model file of"):
        load_model(model)


def test_all_errors_are_listed_in_order(run: CommandLine, tmp_path: Path) -> None:
    model = not_model()
    model["surplus"] = 1
    model["resources"] |= {"bad": buffer("UINT8", [256], kind=1), "good": buffer("UINT8", [1])}
    model["resources"]["number"] = 3
    sizes = {"DataType": "UINT8", "Sizes": [0]}
    kind = "DML_OPERATOR_ELEMENT_WISE_BIT_NOT"
    desc = {"InputTensor": sizes, "OutputTensor": sizes}
    model["dispatchables"]["empty"] = {"type": kind, "desc": desc}
    model["dispatchables"]["other"] = {"type": "DML_OPERATOR_GEMM"}
    model["commands"] = [
        {"type": "dispatch", "dispatchable": "empty", "bindings": {}},
        {
            "type": "dispatch",
            "dispatchable": "not",
            "bindings": {"InputTensor": "none", "OutputTensor": "bad", "C": 1},
        },
        {"type": "print", "resource": "bad", "verbose": 3},
        {
            "type": "dispatch",
            "dispatchable": "not",
            "bindings": {"InputTensor": "good", "OutputTensor": "out"},
        },
        {"type": "writeFile", "resource": "good", "targetPath": "a.txt"},
    ]
    (tmp_path / "m.json").write_text(json.dumps(model))
    ended = run("check", str(tmp_path / "m.json"))
    assert (ended.code, ended.out) == (2, "")
    places = [re.search(r"m\.json: (\S+)", line) for line in ended.err.splitlines()]
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
    assert all(line.startswith("bitlane: ") for line in ended.err.splitlines())
    line = run.refuse("run", str(tmp_path / "m.json"), "--device", "none:")
    assert "surplus" in line


def test_names_of_a_model_are_no_commands_to_the_terminal(
    terminal: Terminal, run: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither in results, nor in commands, nor in errors."""
    name = "\x1b]0;x\x07\u202e\nü"
    text = json.dumps(not_model()).replace('"not"', json.dumps(name)).replace('"in"', '"\\u009b"')
    model = json.loads(text)
    model["commands"] += [
        {"type": "print", "resource": "\x9b", "verbose": True},
        {"type": "writeFile", "resource": "\x9b", "targetPath": "\x1b[2J.bin"},
    ]
    terminal.take(model)
    lines = terminal().splitlines()
    assert [line for line in lines if not line.isprintable()] == []
    assert [line.count("ü") for line in lines[1:3]] == [1, 1]
    assert r"Dispatch '\x1b]0;x\x07\u202e\nü'" in lines[1]
    assert r"Resource '\x9b' written to '\x1b[2J.bin'" in lines
    monkeypatch.setattr(bitlane.command_line.lower, "open_link", lambda url: NotingLink())
    lowered = run("lower", "m.json").out
    assert [line for line in lowered.splitlines() if not line.isprintable()] == []
    assert r"Dispatch '\x1b]0;x\x07\u202e\nü'" in lowered
    model["commands"][0]["bindings"]["InputTensor"] = name
    model["resources"]["\x9b"]["initialValues"] = []
    terminal.take(model)
    lines = run("check", "m.json").err.splitlines()
    assert [line for line in lines if not line.isprintable()] == []
    assert r"resources.\x9b.initialValues is []" in lines[0]


def test_one_model_at_a_time(run: CommandLine) -> None:
    for command in ("run", "check", "lower"):
        line = run.refuse(command, "a.json", "b.json", "c.json")
        assert "2 files after a.json; expected one MODEL at a time" in line
        assert "unrecognized arguments: b.json --x" in run.refuse(command, "a", "b.json", "--x")


def test_a_page_is_not_a_model(check: Check) -> None:
    assert 'line 1, column 1 is "# bitlane"; expected JSON' in check("# bitlane\n", refuses=True)


def test_a_device_is_read_and_left_alone(check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    link = NotingLink(ops=frozenset({Op.XOR}))
    monkeypatch.setattr(bitlane.command_line.check, "open_link", lambda url: link)
    line = check(not_model(), "--device", "sim", refuses=True)
    assert re.search(r"Type\) is NOT; expected .* built with: XOR", line)
    assert {kind for kind, *_ in link.traffic} == {"read"}
    assert link.calls == []
    assert link.closed
