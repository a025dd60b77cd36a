"""`bitlane check`: what running would refuse is refused, and nothing is done to any device."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import bitlane.command_line.check
from bitlane.model_file import ModelFileError, load_model
from bitlane_rtl.abi import Op
from support.host.command import Bitlane
from support.host.model_driver import NotingLink
from support.host.model_runner import buffer, not_model

Check = Callable[..., str]


@pytest.fixture
def check(tmp_path: Path, run: Bitlane, monkeypatch: pytest.MonkeyPatch) -> Check:
    """Return a function that returns the output of `bitlane check`, or the line that refuses."""
    monkeypatch.chdir(tmp_path)

    def of(model: Any, *options: str, refuses: bool = False) -> str:
        Path("m.json").write_text(model if isinstance(model, str) else json.dumps(model))
        words = ("check", "m.json", *options)
        if refuses:
            return run.refusal(*words)
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


def test_a_device_is_read_and_left_alone(check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    link = NotingLink(ops=frozenset({Op.XOR}))
    monkeypatch.setattr(bitlane.command_line.check, "open_link", lambda url: link)
    line = check(not_model(), "--device", "sim", refuses=True)
    assert re.search(r"Type\) is NOT; expected .* built with: XOR", line)
    assert {kind for kind, *_ in link.traffic} == {"read"}
    assert link.calls == []
    assert link.closed
