"""The command that installs an extra, by how bitlane itself was installed."""

import json
from importlib.metadata import Distribution, PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest

from bitlane.installation import how_to_install, how_to_install_elsewhere
from bitlane.version import __version__

REQUIRES = [
    "numpy>=2.0",
    "pyserial>=3.5; extra == 'serial'",
    "amaranth<0.6,>=0.5.8; extra == 'sim'",
    "cppsim<0.2,>=0.1; extra == 'sim'",
    "bitlane[serial,sim]; extra == 'boards'",
    'bitlane[boards] ; extra == "all"',
    "onnx>=1.19; extra == 'onnx'",
]


class Installed(Distribution):
    """A distribution of bitlane with these requirements, and where it came from."""

    def __init__(self, origin: str | None) -> None:
        self._origin = origin

    def read_text(self, filename: str) -> str | None:
        return self._origin if filename == "direct_url.json" else None

    def locate_file(self, path: Any) -> Any:
        return Path(path)

    @property
    def requires(self) -> list[str]:
        return REQUIRES


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a clone" / "cppsim").mkdir(parents=True)
    return tmp_path / "a clone"


def install(monkeypatch: pytest.MonkeyPatch, origin: object, *, cppsim: bool = False) -> None:
    text = origin if origin is None or isinstance(origin, str) else json.dumps(origin)

    def distribution(name: str) -> Distribution:
        if name == "bitlane" or cppsim:
            return Installed(text)
        raise PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.distribution", distribution)


def of_folder(folder: Path, *, editable: bool) -> dict[str, object]:
    info = {"editable": True} if editable else {}
    return {"url": folder.as_uri(), "dir_info": info}


@pytest.mark.parametrize("extra", ["sim", "boards", "all"])
@pytest.mark.parametrize(("editable", "option"), [(True, "-e "), (False, "")])
def test_cppsim_comes_from_the_folder_that_bitlane_came_from(
    monkeypatch: pytest.MonkeyPatch, folder: Path, extra: str, editable: bool, option: str
) -> None:
    install(monkeypatch, of_folder(folder, editable=editable))
    expected = f"pip install {option}'{folder}/cppsim' 'bitlane[{extra}]'"
    assert how_to_install(extra) == expected


@pytest.mark.parametrize("extra", ["serial", "onnx"])
def test_an_extra_without_cppsim_needs_no_folder(
    monkeypatch: pytest.MonkeyPatch, folder: Path, extra: str
) -> None:
    install(monkeypatch, of_folder(folder, editable=True))
    assert how_to_install(extra) == f"pip install 'bitlane[{extra}]'"


def test_cppsim_is_not_installed_again(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    install(monkeypatch, of_folder(folder, editable=True), cppsim=True)
    assert how_to_install("sim") == "pip install 'bitlane[sim]'"


@pytest.mark.parametrize(
    "origin",
    [
        None,
        "",
        "{",
        {"url": "https://example.org/bitlane.whl", "archive_info": {}},
        {"url": "file:///no/such/folder", "dir_info": {}},
        {"url": "https://example.org/bitlane", "dir_info": {}},
    ],
)
def test_without_a_folder_an_index_has_all(monkeypatch: pytest.MonkeyPatch, origin: object) -> None:
    install(monkeypatch, origin)
    assert how_to_install("sim") == "pip install 'bitlane[sim]'"


def test_folders_on_the_path_are_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def distribution(name: str) -> Distribution:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.distribution", distribution)
    assert how_to_install("onnx") == "pip install 'bitlane[onnx]'"


@pytest.mark.parametrize("cppsim", [False, True])
def test_another_environment_gets_the_same_bitlane(
    monkeypatch: pytest.MonkeyPatch, folder: Path, cppsim: bool
) -> None:
    install(monkeypatch, of_folder(folder, editable=True), cppsim=cppsim)
    assert how_to_install_elsewhere("onnx") == f"pip install '{folder}[onnx]'"
    assert how_to_install_elsewhere("boards") == f"pip install '{folder}/cppsim' '{folder}[boards]'"


def test_another_environment_gets_the_same_version_from_an_index(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    install(monkeypatch, None)
    assert how_to_install_elsewhere("onnx") == f"pip install 'bitlane[onnx]=={__version__}'"
