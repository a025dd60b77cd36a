"""NumPy's array files that are none: one error, whatever NumPy makes of them."""

from pathlib import Path

import numpy as np
import pytest

from bitlane.errors import NpyError
from bitlane.model_file.images import read_npy


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
    ],
)
@pytest.mark.filterwarnings("ignore:overflow encountered")  # NumPy's own product of the axes
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
