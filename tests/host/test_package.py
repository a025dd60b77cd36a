"""Errors and files of the package, and the command that installs an extra.

Errors survive a trip through a pool of processes; what holds a device refuses one. Files are
written whole or not at all; headers of NumPy's files are checked, sizes too.
"""

import importlib
import json
import os
import pickle
import stat
import traceback
import tracemalloc
from importlib.metadata import Distribution, PackageNotFoundError
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bitlane
from bitlane import dml, errors
from bitlane.errors import BitlaneError, DeviceFault, DmlError, DmlTypeError, NpyError
from bitlane.files import expect_writable, expected_instead, parse_size, write_atomically
from bitlane.installation import how_to_install, how_to_install_elsewhere
from bitlane.model_file import ModelFileError
from bitlane.npy import read_npy
from bitlane.version import __version__
from bitlane_rtl.abi import Port, Status
from support.host.arrays import model
from support.host.model_link import ModelDriver

NAMED = [getattr(bitlane, name) for name in bitlane.__all__]
OWN = (DmlError, DmlTypeError, DeviceFault)
"""Errors with constructors that take more than a message."""
PUBLIC = [x for x in NAMED if isinstance(x, type) and issubclass(x, Exception) and x not in OWN]

ERRORS: list[BitlaneError] = [
    DmlError("InputTensor", "Sizes", (1, 2), "one size", hresult="DXGI_ERROR_UNSUPPORTED"),
    DmlTypeError("BufferTensorDesc", "Flags", "x" * 99, "an integer"),
    ModelFileError("m.json", "commands[0].type", "'x'", "dispatch, print or writeFile"),
    DeviceFault("READ_ERROR at 0x40", Status.READ_ERROR, 3, Port.READ_A, 0x40),
    *(kind("thing: 1; expected 2") for kind in PUBLIC),
]


of_every_kind = pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)


@of_every_kind
def test_every_error_can_be_sent_to_another_process(error: BitlaneError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert (str(again), again.args, vars(again)) == (str(error), error.args, vars(error))


def test_what_holds_a_device_says_to_open_it_in_the_worker() -> None:
    device = dml.Device(ModelDriver())
    index = bitlane.BinaryIndex(model(), 64)
    for thing in (model(), model().asarray([1]), device, device.create_buffer(4), index):
        with pytest.raises(BitlaneError, match=r"open the device there: bitlane\.open\(url\)") as e:
            pickle.dumps(thing)
        assert isinstance(e.value, TypeError)


@of_every_kind
def test_tracebacks_show_the_name_that_users_write(error: BitlaneError) -> None:
    (line,) = traceback.format_exception_only(error)
    module, name = line.partition(":")[0].rsplit(".", 1)
    assert module in ("bitlane", "bitlane.model_file")
    assert getattr(importlib.import_module(module), name) is type(error)


def test_errors_that_reach_users_are_public() -> None:
    for name in ("RowTooLongError", "NoRunError", "WorkerLostError", "CheckFailed"):
        assert issubclass(getattr(bitlane, name), BitlaneError)
    raised = {x for x in vars(errors).values() if isinstance(x, type) and x.__module__ == "bitlane"}
    assert {x for x in raised if issubclass(x, BitlaneError)} <= set(NAMED)
    assert len(PUBLIC) >= 22


def test_messages_name_bitlane_open_as_users_call_it() -> None:
    with pytest.raises(TypeError, match=r"^open\(\) missing 1 required positional argument: 'url'"):
        bitlane.open()  # type: ignore[call-arg]
    assert repr(bitlane.open).startswith("<function open at ")


# --- files ------------------------------------------------------------------------------------


def test_files_get_the_usual_permissions(tmp_path: Path) -> None:
    (tmp_path / "usual").write_bytes(b"")
    write_atomically(tmp_path / "a", b"1")
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("usual", "a")]
    assert modes[0] == modes[1]


def test_a_link_stays_a_link_and_a_file_keeps_its_mode(tmp_path: Path) -> None:
    file, link = tmp_path / "private", tmp_path / "link"
    file.write_bytes(b"old")
    file.chmod(0o600)
    link.symlink_to(file)
    write_atomically(link, b"new")
    assert link.is_symlink()
    assert file.read_bytes() == b"new"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "private"]


def test_what_is_no_file_is_never_replaced(tmp_path: Path) -> None:
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    for target in (pipe, link, tmp_path):
        with pytest.raises(OSError, match="it is not a file"):
            write_atomically(target, b"new")
    assert pipe.is_fifo()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "pipe"]


def test_what_cannot_be_written_is_known_and_nothing_is_left(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"")
    for path, wanted in (
        (tmp_path, "a file, not a folder"),
        (file / "a", f"a file in a folder; {file} is none"),
        (Path("/proc/a"), "a folder that can be written to; /proc cannot"),
        (tmp_path / "a", None),
        (tmp_path / "new" / "folder" / "a", None),
    ):
        assert expected_instead(path) == wanted
    assert list(tmp_path.iterdir()) == [file]


def test_an_options_folder_has_to_be_there(tmp_path: Path) -> None:
    expect_writable("--json", tmp_path / "a")
    with pytest.raises(BitlaneError, match=f"--json: .*; expected a folder .*; {tmp_path}/new is"):
        expect_writable("--json", tmp_path / "new" / "a")


# --- numbers of bytes as people write them ----------------------------------------------------


@pytest.mark.parametrize(
    ("text", "size"),
    [
        *(("0", 0), ("4096", 4096), ("0x10", 16)),
        *(("64KiB", 65536), ("2MiB", 2 << 20), ("0x2GiB", 2 << 30)),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "KiB", "x", "1.5MiB", "1GB", "1kib", "-1", "-1KiB"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(ValueError):
        parse_size(text)


# --- NumPy's array files --------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def file_of(header: str, content: bytes = b"\0\0\0") -> Path:
    """Write a .npy file with this header, the text of a Python dictionary; return its path."""
    text = header.encode("latin-1")
    path = Path("x.npy")
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + content)
    return path


def test_an_array_comes_as_it_was_written() -> None:
    header = "{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }\n"
    assert read_npy(file_of(header, b"\1\2\3")).tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    "header",
    [
        "",
        "{",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (3,)",
        "  {}\n x",
        "1 +",
        "'''",
        "\0",
        "[]",
        "{1: 2, 'descr': '|u1'}",
        "{'descr': '|O', 'fortran_order': False, 'shape': (3,)}",
        "{'descr': 'nonsense', 'fortran_order': False, 'shape': (3,)}",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (4,)}",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (-1,)}",
        "{'descr': '|u1', 'fortran_order': False, 'shape': ('3',)}",
        f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({2**62}, {2**62})}}",
        f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({2**80},)}}",
        f"{{'descr': '|u1', 'fortran_order': False, 'shape': {'(' * 300}3{',)' * 300}}}",
        "__import__('os').mkdir('made')",
        "{'descr': (), 'fortran_order': False, 'shape': (3,)}",
        "{'descr': [('a',)], 'fortran_order': False, 'shape': (3,)}",
        "{'descr': ('|u1', (3,)), 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '|V0', 'fortran_order': False, 'shape': (3,)}",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (0, 1" + "0" * 23 + ")}",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (" + "1," * 70 + ")}",
    ],
)
def test_headers_that_are_none(header: str) -> None:
    with pytest.raises(NpyError, match=r"^a NumPy array file"):
        read_npy(file_of(header))
    assert [path.name for path in Path().iterdir()] == ["x.npy"]


def test_a_file_that_was_cut_off() -> None:
    path = Path("x.npy")
    np.save(path, np.arange(5))
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        with pytest.raises(NpyError):
            read_npy(path)


def test_a_header_is_not_longer_than_numpy_reads() -> None:
    Path("x.npy").write_bytes(b"\x93NUMPY\2\0" + b"\xff" * 4 + b"{}")
    tracemalloc.start()
    try:
        with pytest.raises(NpyError, match="a header of 4294967295 bytes; expected at most 10000"):
            read_npy(Path("x.npy"))
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", ["|u1", "<f8", "<U1000000"])
def test_memory_is_taken_for_what_the_file_holds(kind: str) -> None:
    path = file_of(f"{{'descr': '{kind}', 'fortran_order': False, 'shape': (1000000000,)}}")
    tracemalloc.start()
    try:
        with pytest.raises(NpyError, match="expected no more elements than there are bytes"):
            read_npy(path)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", ["|b1", "<u2", ">i4", "<f8", ">f2"])
@pytest.mark.parametrize("shape", [(), (0, 3), (5,), (2, 3, 4)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_an_array_comes_back(kind: str, shape: tuple[int, ...], order: str) -> None:
    content = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(kind, order=order)
    np.save("x.npy", content)
    again = read_npy(Path("x.npy"))
    assert (again.dtype, again.shape) == (content.dtype, shape)
    assert np.array_equal(again, content)


# --- the command that installs an extra ---------------------------------------------------------


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


def install(monkeypatch: pytest.MonkeyPatch, origin: object, **installed: bool) -> None:
    """Let ``bitlane``, which came from ``origin``, be installed, and ``cppsim`` if it is true."""
    text = origin if origin is None or isinstance(origin, str) else json.dumps(origin)

    def distribution(name: str) -> Distribution:
        if installed.get(name, name == "bitlane"):
            return Installed(text)
        raise PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.distribution", distribution)


CPPSIM = ("sim", "boards", "all")
"""Extras that need cppsim."""


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    (tmp_path / "a clone" / "cppsim").mkdir(parents=True)
    return tmp_path / "a clone"


def known(origin: object, clone: Path) -> object:
    """Return what pip notes of an installation from ``clone``, or ``origin`` itself."""
    if origin not in ("editable", "folder"):
        return origin
    return {"url": clone.as_uri(), "dir_info": {"editable": True} if origin == "editable" else {}}


@pytest.mark.parametrize(
    ("origin", "cppsim", "extra", "expected"),
    [
        # cppsim comes from the folder that bitlane came from, unless it is installed.
        *(("editable", False, extra, f"-e 'FOLDER/cppsim' 'bitlane[{extra}]'") for extra in CPPSIM),
        *(("folder", False, extra, f"'FOLDER/cppsim' 'bitlane[{extra}]'") for extra in CPPSIM),
        *(("editable", False, extra, f"'bitlane[{extra}]'") for extra in ("serial", "onnx")),
        ("editable", True, "sim", "'bitlane[sim]'"),
        # Without a folder an index has all.
        *(
            (origin, False, "sim", "'bitlane[sim]'")
            for origin in (
                *(None, "", "{", {"url": "file:///no/such/folder", "dir_info": {}}),
                {"url": "https://example.org/bitlane.whl", "archive_info": {}},
                {"url": "https://example.org/bitlane", "dir_info": {}},
            )
        ),
    ],
)
def test_how_an_extra_is_installed(
    monkeypatch: pytest.MonkeyPatch,
    clone: Path,
    origin: object,
    cppsim: bool,
    extra: str,
    expected: str,
) -> None:
    install(monkeypatch, known(origin, clone), cppsim=cppsim)
    assert how_to_install(extra) == f"pip install {expected}".replace("FOLDER", str(clone))


def test_folders_on_the_path_are_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, None, bitlane=False)
    assert how_to_install("onnx") == "pip install 'bitlane[onnx]'"


@pytest.mark.parametrize("cppsim", [False, True])
def test_another_environment_gets_the_same_bitlane(
    monkeypatch: pytest.MonkeyPatch, clone: Path, cppsim: bool
) -> None:
    install(monkeypatch, known("editable", clone), cppsim=cppsim)
    assert how_to_install_elsewhere("onnx") == f"pip install '{clone}[onnx]'"
    assert how_to_install_elsewhere("boards") == f"pip install '{clone}/cppsim' '{clone}[boards]'"
    install(monkeypatch, None)
    assert how_to_install_elsewhere("onnx") == f"pip install 'bitlane[onnx]=={__version__}'"
