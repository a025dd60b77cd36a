"""FAISS's binary indexes on bitlane's: a module `faiss` for FAISS's own tests.

Names that it lacks are those of FAISS itself.
"""

import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

import faiss
import numpy as np

import bitlane
from bitlane import BinaryIndex, BitlaneError, Device


class SearchParameters:
    def __init__(self, sel: Any = None) -> None:
        self.sel = sel


class _Index:
    """The methods of FAISS's `IndexBinary`. Errors are RuntimeErrors, as FAISS's are."""

    is_trained = True

    def __init__(self, index: BinaryIndex) -> None:
        self.index = index

    d = property(lambda self: self.index.d)
    code_size = property(lambda self: self.index.code_size)
    ntotal = property(lambda self: self.index.ntotal)

    def add(self, x: Any) -> None:
        self.index.add(x)

    def reset(self) -> None:
        self.index.reset()

    def search(self, x: Any, k: int, *, params: Any = None) -> Any:
        return self.index.search(x, k, select=None if params is None else params.sel)

    def range_search(self, x: Any, thresh: int, *, params: Any = None) -> Any:
        return self.index.range_search(x, thresh, select=None if params is None else params.sel)

    def assign(self, x: Any, k: int, labels: None = None) -> Any:
        assert labels is None
        return self.index.assign(x, k)

    def reconstruct(self, key: int) -> Any:
        try:
            return self.index.reconstruct(key)
        except BitlaneError as error:
            raise RuntimeError(str(error)) from None

    def reconstruct_n(self, n0: int = 0, ni: int = -1) -> Any:
        return self.index.reconstruct_n(n0, ni)

    def remove_ids(self, x: Any) -> int:
        return self.index.remove_ids(x)


def module(device: Device) -> Any:
    """Return a module `faiss` whose binary indexes have their rows on ``device``."""

    class IndexBinaryFlat(_Index):
        use_heap = True

        def __init__(self, d: int) -> None:
            super().__init__(BinaryIndex(device, d))

    class IndexBinaryIDMap2(_Index):
        def __init__(self, sub_index: _Index) -> None:
            super().__init__(sub_index.index)

        def add_with_ids(self, x: Any, ids: Any) -> None:
            self.index.add_with_ids(x, ids)

    def serialize_index_binary(index: _Index) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "index")
            index.index.save(file)
            return np.frombuffer(file.read_bytes(), np.uint8)

    def deserialize_index_binary(data: Any) -> _Index:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "index")
            file.write_bytes(data.tobytes())
            return _Index(BinaryIndex.load(device, file))

    class Shim(ModuleType):
        def __getattr__(self, name: str) -> Any:
            return getattr(faiss, name)

    shim: Any = Shim("faiss")
    for each in (
        *(IndexBinaryFlat, IndexBinaryIDMap2, SearchParameters),
        *(serialize_index_binary, deserialize_index_binary),
    ):
        setattr(shim, each.__name__, each)
    shim.IndexBinaryIDMap = IndexBinaryIDMap2
    for name in dir(bitlane):
        if name.startswith("IDSelector"):
            setattr(shim, name, getattr(bitlane, name))
    shim.IDSelectorRange = lambda imin, imax, assume_sorted=False: bitlane.IDSelectorRange(
        imin, imax
    )
    return shim
