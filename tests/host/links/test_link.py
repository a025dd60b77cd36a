"""Finding the link that a URL names."""

from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from bitlane.errors import LinkError
from bitlane.links import link as link_module
from bitlane.links.link import WITHOUT_CIRCUIT, BytesLike, Link, open_link
from support.host.model_link import ModelLink


def fake_opener(url: str) -> ModelLink:
    link = ModelLink()
    link.description = url
    return link


def install(monkeypatch: pytest.MonkeyPatch, **links: str) -> None:
    entries = {name: EntryPoint(name, value, "bitlane.links") for name, value in links.items()}
    monkeypatch.setattr(link_module, "_installed", lambda: entries)


def test_the_scheme_finds_the_link(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, model=f"{__name__}:fake_opener")
    monkeypatch.setattr(EntryPoint, "load", lambda self: fake_opener)
    for url in ("model:/dev/x:3", "model?width=64&vcd=a:b"):
        assert open_link(url).description == url
    with pytest.raises(LinkError, match="no link has the scheme 'usb'"):
        open_link("usb?x=1")


def test_an_unknown_scheme_names_those_that_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, sim="x:y", serial="x:y")
    with pytest.raises(LinkError, match="no link has the scheme 'usb'; installed: serial, sim"):
        open_link("usb:1")
    install(monkeypatch)
    with pytest.raises(LinkError, match="installed: none"):
        open_link("")


def test_an_exchange_is_its_writes_and_then_its_reads() -> None:
    link = ModelLink()
    base = link.memory_base
    results = link.exchange([(base, b"abc"), (base + 8, b"de")], [(base + 8, 2), (base, 4)])
    assert [result.tobytes() for result in results] == [b"de", b"abc\0"]
    assert link.exchange([], []) == []
    parts = [("write", 0, 3), ("write", 8, 2), ("read", 8, 2), ("read", 0, 4)]
    assert link.traffic == [(kind, base + at, size) for kind, at, size in parts]


class Silent(Link):
    """A link with the defaults of every link."""

    def read(self, address: int, size: int) -> NDArray[np.uint8]:
        raise NotImplementedError

    def write(self, address: int, data: BytesLike) -> None:
        raise NotImplementedError

    def wait(self, timeout: float) -> bool:
        raise NotImplementedError

    def close(self) -> None:
        self.closed = True


def test_a_link_is_local_open_and_without_a_simulated_clock_unless_it_says_so() -> None:
    with Silent() as link:
        assert (link.remote, link.closed, link.slow) == (False, False, False)
        assert (link.cycles, link.recording, link.memory_view) == (None, None, None)


def test_a_link_without_its_packages_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, sim="bitlane_without_such_a_module:open_link")
    advice = (
        r"needs the Python package bitlane_without_such_a_module, .* 'bitlane\[sim\]' brings it"
    )
    with pytest.raises(LinkError, match=f"{advice}; {WITHOUT_CIRCUIT}$"):
        open_link("sim")
    install(monkeypatch, serial="bitlane_without_such_a_module:open_link")
    with pytest.raises(LinkError, match=r"'bitlane\[serial\]' brings it$"):
        open_link("serial:/dev/ttyUSB1")


def test_a_folder_with_the_name_of_a_lacking_package_is_not_taken_for_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Python finds the folder ``cppsim`` of a clone, but the package is in ``cppsim/src``."""
    (tmp_path / "without_a_package").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    install(monkeypatch, sim="without_a_package.part:open_link")
    with pytest.raises(LinkError, match="needs the Python package without_a_package, which is not"):
        open_link("sim")


def test_a_link_of_another_project_without_its_packages_names_that_project(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / "usb_lanes-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: usb-lanes\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text("[bitlane.links]\nusb = bitlane_without_it:open\n")
    monkeypatch.syspath_prepend(tmp_path)
    expected = "bitlane_without_it, .*; expected all that usb-lanes needs, whose link it is$"
    with pytest.raises(LinkError, match=expected):
        open_link("usb:1")
