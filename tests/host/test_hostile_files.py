"""Damaged and hostile files give one line, execute nothing, and take little memory."""

import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import bitlane.command_line.run
from bitlane import BinaryIndex, BitlaneError, Device
from bitlane.command_line import DONE, UNUSABLE
from bitlane.command_line.check import check_model
from bitlane.command_line.run import run_model
from bitlane.errors import NpyError
from bitlane.npy import read_npy
from bitlane.onnx import load, prepare
from support.command_line import CommandLine
from support.host import hostile
from support.host.arrays import model
from support.host.model_link import NotingLink
from support.host.refusals import uses
from support.seeds import examples, stride

SEED = st.integers(0, 2**32 - 1)
"""Seed of the choices of a file: hypothesis prints the one that fails."""

MOST_BYTES = 64 << 20
"""Of Python and NumPy, for files of at most some megabytes."""

LONGEST = 4000
"""Characters of a message."""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(autouse=True)
def bounded() -> Iterator[None]:
    """Trace memory; each test asserts its peak by `expect_bounded`."""
    tracemalloc.start()
    yield
    tracemalloc.stop()


def expect_bounded() -> None:
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.reset_peak()
    assert peak < MOST_BYTES


def expect_line(text: str) -> None:
    assert text.isprintable(), repr(text)
    assert len(text) < LONGEST


def refusal(call: Callable[[], object], *errors: type[Exception]) -> str:
    """Return the message of one of ``errors``, or nothing."""
    message = ""
    try:
        call()
    except errors as error:
        message = str(error)
        for each in getattr(error, "all", (error,)):
            expect_line(str(each))
    expect_bounded()
    return message


def remove_all() -> None:
    for path in sorted(Path().rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()


@pytest.mark.filterwarnings("ignore")
@examples(2)
@given(seed=SEED)
def test_model_files(
    seed: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    choose, link = Random(seed), NotingLink()
    monkeypatch.setattr(bitlane.command_line.run, "open_link", lambda url: link)
    remove_all()
    for name, content in hostile.sources(choose).items():
        Path(name).write_bytes(content)
    Path("m.json").write_bytes(hostile.model_file(choose))
    before = sorted(Path().rglob("*"))
    checked = refusal(lambda: check_model("m.json"), BitlaneError)
    assert sorted(Path().rglob("*")) == before
    ran = refusal(lambda: run_model("m.json", "sim"), BitlaneError)
    if ran:
        assert link.calls == []
        assert sorted(Path().rglob("*")) == before
    if not checked and ran:
        # Only a device that lacks the memory refuses what `check` accepts.
        assert "device memory" in ran
    assert ran or not checked
    lines = capsys.readouterr().out.split("\n")
    # LiteX, if another test has loaded it, tells in colours that a module of its own is old.
    own = [line for line in lines if not line.startswith("Compat:")]
    assert [line for line in own if not line.isprintable()] == []


def load_array(device: Device, path: Path) -> object:
    return read_npy(path)


def load_index(device: Device, path: Path) -> object:
    return BinaryIndex.load(device, str(path))


def load_onnx(device: Device, path: Path) -> object:
    return prepare(load(path), device)


@pytest.mark.parametrize(
    ("content", "read", "error"),
    [
        (hostile.npy, load_array, NpyError),
        (hostile.index, load_index, BitlaneError),
        (hostile.onnx_model, load_onnx, BitlaneError),
    ],
)
@examples(3 / stride(2))
@given(seed=SEED)
@pytest.mark.filterwarnings("ignore")
def test_files(content: Any, read: Any, error: type[Exception], seed: int) -> None:
    device, path = model(), Path("file")
    path.write_bytes(content(Random(seed)))
    before = uses(device)
    message = refusal(lambda: read(device, path), error)
    if message and "device memory" not in message:
        assert uses(device) == before


@examples(0.5)
@given(seed=SEED)
def test_the_command_shows_lines(seed: int, run: CommandLine) -> None:
    Path("m.onnx").write_bytes(hostile.onnx_model(Random(seed)))
    Path("m.json").write_bytes(hostile.model_file(Random(seed)))
    for words in (("run", "m.onnx", "--device", "none:"), ("check", "m.json")):
        ended = run(*words)
        assert ended.code in (DONE, UNUSABLE)
        for line in (ended.out + ended.err).splitlines():
            assert line.startswith(("bitlane: ", "m.json: "))
            expect_line(line)
