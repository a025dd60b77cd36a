"""`bitlane run`: options, exit codes, and what becomes of the device."""

import argparse
import json
from pathlib import Path
from urllib.parse import parse_qsl

import pytest

import bitlane.command_line.run
from bitlane.errors import BitlaneError
from bitlane.model_file import ModelFileError
from support.host.model_driver import NotingLink
from support.host.model_runner import not_model


class Terminal:
    """A terminal that runs `bitlane run` on a model of the device."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.path = folder / "m.json"
        self.path.write_text(json.dumps(not_model()))
        self.model = NotingLink()
        self.urls: list[str] = []
        monkeypatch.setattr(bitlane.command_line.run, "open_link", self._open)

    def _open(self, url: str) -> NotingLink:
        self.urls.append(url)
        return self.model

    def __call__(self, *arguments: str) -> int:
        parser = argparse.ArgumentParser(prog="bitlane")
        bitlane.command_line.run.add_run(parser.add_subparsers())
        namespace = parser.parse_args(["run", str(self.path), *arguments])
        code: int = namespace.run(namespace)
        return code


@pytest.fixture
def terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Terminal:
    return Terminal(tmp_path, monkeypatch)


def test_runs_and_checks_on_the_simulator(
    terminal: Terminal, capsys: pytest.CaptureFixture[str]
) -> None:
    assert terminal() == 0
    lines = capsys.readouterr().out.splitlines()
    assert terminal.urls == ["sim"]
    assert lines[0] == "Running on 'model of the contract'"
    assert lines[1].startswith("Dispatch 'not': 1 iterations, ")
    assert lines[1].endswith(" ms median (CPU), 123 cycles")
    assert lines[2:] == ["Check 'not': 4 bytes equal"]
    assert terminal.model.closed


def test_runs_on_the_default_device_of_the_environment(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BITLANE_DEVICE", "sim:pysim")
    assert terminal() == 0
    assert terminal("--device", "sim") == 0
    assert terminal.urls == ["sim:pysim", "sim"]


def test_tells_that_a_check_failed(terminal: Terminal, capsys: pytest.CaptureFixture[str]) -> None:
    terminal.model.flip = 0
    assert terminal() == 1
    assert "1 of 4 bytes differ" in capsys.readouterr().out
    assert terminal("--no-check") == 0


def test_counts_no_cycles_without_counters(
    terminal: Terminal, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal.model = NotingLink(cycles=None)
    assert terminal("--no-check") == 0
    assert capsys.readouterr().out.splitlines()[1].endswith(" ms median (CPU)")


def test_opens_no_device_for_a_bad_file(terminal: Terminal) -> None:
    terminal.path.write_text("{")
    with pytest.raises(ModelFileError, match="line 1, column 2"):
        terminal()
    assert terminal.urls == []


def test_closes_the_device_after_a_refusal(
    terminal: Terminal, capsys: pytest.CaptureFixture[str]
) -> None:
    model = not_model()
    model["commands"][0]["bindings"]["InputTensor"] = {"name": "in", "elementOffset": 16}
    terminal.path.write_text(json.dumps(model))
    with pytest.raises(ModelFileError):
        terminal()
    assert terminal.model.closed
    assert capsys.readouterr().out == ""


def test_feature_levels_are_directmls(terminal: Terminal) -> None:
    assert terminal("--feature-level", "6_4", "--no-check") == 0
    with pytest.raises(ModelFileError, match="FeatureLevel"):
        terminal("--feature-level", "2_1")
    with pytest.raises(SystemExit):
        terminal("--feature-level", "7_0")


@pytest.mark.parametrize(
    ("device", "url"),
    [
        ("sim", "sim?vcd=w.vcd"),
        ("sim:pysim", "sim:pysim?vcd=w.vcd"),
        ("sim:compiled?width=32", "sim:compiled?width=32&vcd=w.vcd"),
    ],
)
def test_asks_the_simulator_for_waveforms(device: str, url: str, terminal: Terminal) -> None:
    assert terminal("--device", device, "--vcd", "w.vcd") == 0
    assert terminal.urls == [url]


@pytest.mark.parametrize("file", ["a+b.vcd", "a&width=32.vcd", "100%.vcd", "o/my wave.vcd", "é#?"])
def test_any_name_of_a_waveform_file_reaches_the_simulator(file: str, terminal: Terminal) -> None:
    assert terminal("--device", "sim?width=32", "--vcd", file) == 0
    (url,) = terminal.urls
    assert parse_qsl(url.partition("?")[2]) == [("width", "32"), ("vcd", file)]


def test_boards_have_no_waveforms(terminal: Terminal) -> None:
    with pytest.raises(BitlaneError, match="serial:x is no simulated device"):
        terminal("--device", "serial:x", "--vcd", "w.vcd")
    assert terminal.urls == []


# --- Iterations and JSON ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--trace", "a", "--report", "./a"], r"--report: a is --trace's; expected another file"),
        (["--vcd", "a", "--trace", "a"], r"--trace: a is --vcd's; expected another file"),
        (["--trace", "m.json"], r"--trace: m\.json is MODEL's; expected another file"),
    ],
)
def test_no_file_is_written_over_another(
    words: list[str], message: str, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(terminal.path.parent)
    with pytest.raises(BitlaneError, match=message):
        terminal(*words)
    assert terminal.urls == []


def test_iterations_are_told_with_their_medians(
    terminal: Terminal, capsys: pytest.CaptureFixture[str]
) -> None:
    assert terminal("--iterations", "5") == 0
    line = capsys.readouterr().out.splitlines()[1]
    assert line.startswith("Dispatch 'not': 5 iterations, ")
    assert line.endswith(" ms median (CPU), 123 cycles")
    assert terminal.model.calls.count("NOT") == 5


@pytest.mark.parametrize("number", ["0", "-3"])
def test_iterations_are_one_or_more(terminal: Terminal, number: str) -> None:
    with pytest.raises(BitlaneError, match=rf"--iterations: {number}; expected 1 or more"):
        terminal("--iterations", number)
    assert terminal.urls == []


def test_json_is_one_object_and_all_of_the_output(
    terminal: Terminal, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(terminal.path.parent)
    model = not_model()
    model["commands"] += [
        {"type": "print", "resource": "out"},
        {"type": "writeFile", "resource": "out", "targetPath": "out.bin"},
    ]
    terminal.path.write_text(json.dumps(model))
    assert terminal("--json", "--iterations", "3") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["dispatches"][0].pop("milliseconds") > 0
    assert found == {
        "device": "model of the contract",
        "passed": True,
        "dispatches": [{"name": "not", "iterations": 3, "cycles": 123}],
        "checks": [{"name": "not", "bytes": 4, "different": 0}],
        "resources": [{"name": "out", "type": "UINT8", "values": [254, 253, 252]}],
        "files": [{"name": "out", "path": "out.bin"}],
    }


def test_json_tells_of_a_check_that_failed(
    terminal: Terminal, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal.model.flip = 0
    assert terminal("--json") == 1
    found = json.loads(capsys.readouterr().out)
    assert not found["passed"]
    assert found["checks"] == [{"name": "not", "bytes": 4, "different": 1}]


def test_json_has_no_numbers_that_are_none(
    terminal: Terminal, capsys: pytest.CaptureFixture[str]
) -> None:
    model = not_model([{"type": "print", "resource": "in"}])
    model["resources"]["in"] = {
        "initialValuesDataType": "FLOAT32",
        "initialValues": [1.5, "nan", "inf", "-inf"],
    }
    terminal.path.write_text(json.dumps(model))
    assert terminal("--json") == 0
    (shown,) = json.loads(capsys.readouterr().out)["resources"]
    assert shown["values"] == [1.5, "nan", "inf", "-inf"]
