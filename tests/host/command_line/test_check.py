"""`bitlane check`: what running would refuse is refused, and nothing is done to any device."""

import argparse
import json
from pathlib import Path
from typing import Any

import pytest

import bitlane.command_line.check
from bitlane.command_line.check import add_check
from bitlane.model_file import ModelFileError, load_model
from bitlane_rtl.abi import Op
from support.host.model_driver import NotingLink
from support.host.model_runner import buffer, not_model


def check(folder: Path, model: Any, *arguments: str) -> int:
    path = folder / "m.json"
    path.write_text(model if isinstance(model, str) else json.dumps(model))
    parser = argparse.ArgumentParser(prog="bitlane")
    add_check(parser.add_subparsers())
    namespace = parser.parse_args(["check", str(path), *arguments])
    code: int = namespace.run(namespace)
    return code


def test_says_what_has_been_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = not_model()
    model["commands"] *= 2
    model["dispatchables"]["unused"] = model["dispatchables"]["not"]
    assert check(tmp_path, model) == 0
    path = tmp_path / "m.json"
    assert capsys.readouterr().out == (
        f"{path}: 2 resources, 2 dispatchables, 2 dispatches: nothing is wrong\n"
    )


def test_needs_no_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BITLANE_DEVICE", "serial:/dev/none")
    model = not_model()
    model["resources"]["in"] = buffer("UINT8", {"valueCount": 1 << 30, "value": 0})
    assert check(tmp_path, model) == 0


def test_writes_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    model = not_model([{"type": "writeFile", "resource": "out", "targetPath": "a/b.npy"}])
    assert check(tmp_path, model) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["m.json"]


@pytest.mark.parametrize(
    ("binding", "message"),
    [
        ("none", r"commands\[0\]\.bindings\.InputTensor is \"none\"; expected a resource: in, out"),
        ({"name": "in", "elementOffset": 3}, r"InputTensor\.elementOffset is 3 bytes; expected a"),
    ],
)  # fmt: skip
def test_refuses_what_running_refuses(binding: object, message: str, tmp_path: Path) -> None:
    model = not_model()
    model["commands"][0]["bindings"]["InputTensor"] = binding
    with pytest.raises(ModelFileError, match=message):
        check(tmp_path, model)


def test_refuses_what_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=r"line 1, column 2"):
        check(tmp_path, "{")
    with pytest.raises(ModelFileError, match="FeatureLevel"):
        check(tmp_path, not_model(), "--feature-level", "2_1")


def test_says_that_onnx_models_are_not_checked(tmp_path: Path) -> None:
    model = tmp_path / "m.ONNX"
    model.write_bytes(b"\x08\x0a\xff")
    with pytest.raises(ModelFileError, match="the file is an ONNX model; expected a model file of"):
        load_model(model)


def test_a_device_is_asked_what_it_is_and_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = NotingLink(ops=frozenset({Op.XOR}))
    monkeypatch.setattr(bitlane.command_line.check, "open_link", lambda url: link)
    with pytest.raises(ModelFileError, match=r"Type\) is NOT; expected .* built with: XOR"):
        check(tmp_path, not_model(), "--device", "sim")
    assert {kind for kind, *_ in link.traffic} == {"read"}
    assert link.calls == []
    assert link.closed
