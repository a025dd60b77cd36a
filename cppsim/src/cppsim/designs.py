"""Compiled designs in the cache, which are found by their fingerprint.

An entry has the library and its layout: the places of signals, memories and messages. A start with
a warm cache takes one walk of the design, and writes neither a netlist nor C++.
"""

import gc
import io
import pickle
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from amaranth.hdl import MemoryData, Signal

from .amaranth_internals import SignalDict
from .compiling.cache import source_digest
from .compiling.library import Builder, builder, content_key
from .cpp.simulation import SimulationSource, write_simulation
from .errors import SimulationError, in_one_line
from .netlist.covered import Measured
from .netlist.design import PlainDesign
from .netlist.fingerprint import Fingerprint, fingerprint
from .netlist.lowered import Lowered
from .netlist.lowering import lower

Compiled = tuple[Lowered, SimulationSource]
"""A lowered design and its C++, which has a library unless `written` returned it."""

_LAYOUT = "layout.pickle"

_CODE = source_digest(
    "amaranth.hdl",
    "cppsim.amaranth_internals",
    "cppsim.compiling",
    "cppsim.cpp",
    "cppsim.designs",
    "cppsim.netlist",
)
"""The digest of all code between a prepared design and its entry, as it was loaded."""

_LOGIC = ("steps", "stored", "registers")
"""Attributes of a `SimulationSource` that few simulations need: half of the time of a layout."""


def built(design: Any, measured: Measured = Measured.NOTHING) -> Compiled:
    """Return ``design`` with its library, compiled unless an equal one is in the cache.

    The library counts what is ``measured``. Raises ``SimulationError`` if it cannot be compiled.
    """
    with uncollected():
        mark = _mark(design)
        content = [mark.digest, _CODE]
        if measured is not Measured.NOTHING:
            content.append(measured.value)
        fill = partial(_fill, design, mark, measured)
        folder = builder().folder(content, fill)
        if not (folder / _LAYOUT).is_file():  # another process has removed the entry meanwhile
            folder = builder().folder(content, fill)
        return _read(folder, mark)


def written(design: Any, measured: Measured = Measured.NOTHING) -> Compiled:
    """Return the lowered ``design`` and its C++, with counters of the points that are ``measured``.

    Raises ``SimulationError`` if it has no plain form.
    """
    with in_one_line(SimulationError):
        lowered = lower(design, idle=True, measured=measured)
        return lowered, write_simulation(lowered)


def _mark(design: Any) -> Fingerprint:
    with in_one_line(SimulationError):
        return fingerprint(design)


@contextmanager
def uncollected() -> Iterator[None]:
    """Put garbage collections off: a design is many objects, and nearly none of them is garbage.

    To lower 5,000 signals takes 8.8 s with collections, and 5.0 s without; to elaborate and prepare
    the 64-bit core, 370 ms and 295 ms.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


# --- an entry ---------------------------------------------------------------------------------


def _fill(design: Any, mark: Fingerprint, measured: Measured, folder: Path) -> None:
    lowered, source = written(design, measured)
    builder(source.text).compile_text(source.text, folder)
    (folder / _LAYOUT).write_bytes(layout(lowered, source, mark.objects))


def layout(lowered: Lowered, source: SimulationSource, objects: Sequence[Any]) -> bytes:
    """Return what `_read` needs of a design; numbers stand for its ``objects``."""
    memories = lowered.design.memories
    logic = _dumped([getattr(source, name) for name in _LOGIC], memories)
    lowered = replace(lowered, design=PlainDesign(memories=memories))
    source = replace(source, text=content_key(source.text), steps=[], stored={}, registers=[])
    return _dumped((lowered, source, logic), objects)


def _read(folder: Path, mark: Fingerprint) -> Compiled:
    with in_one_line(SimulationError):  # another process may have removed the entry
        lowered, source, logic = _loaded((folder / _LAYOUT).read_bytes(), mark.objects)
    source.library = Builder.library(folder)
    return lowered, _KeptSource(source, partial(_loaded, logic, lowered.design.memories))


class _KeptSource(SimulationSource):
    """A source from the cache, whose logic is loaded when it is first needed."""

    def __init__(self, source: SimulationSource, load: Any) -> None:
        for field in fields(source):
            if field.name not in _LOGIC:
                setattr(self, field.name, getattr(source, field.name))
        self._load = load

    def __getattr__(self, name: str) -> Any:
        if name not in _LOGIC:
            raise AttributeError(name)
        for each, value in zip(_LOGIC, self._load(), strict=True):
            setattr(self, each, value)
        return getattr(self, name)


class _Pickler(pickle.Pickler):
    """Writes numbers in place of ``objects``."""

    def __init__(self, file: io.BytesIO, objects: Sequence[Any]) -> None:
        super().__init__(file, protocol=5)
        self._numbers = {id(thing): number for number, thing in enumerate(objects)}

    def persistent_id(self, thing: Any) -> int | None:
        number = self._numbers.get(id(thing))
        # Asked of every object: a FIFO's layout takes 0.3 ms, and 0.5 with `isinstance`.
        if number is None and type(thing) in (Signal, MemoryData):
            raise SimulationError(f"{thing!r} is not in the design")
        return number

    def reducer_override(self, thing: Any) -> Any:
        kind: Any = type(thing)
        if kind is SignalDict:
            # Its own form holds numbers of this process.
            return SignalDict, (list(thing.items()),)
        if "__dataclass_fields__" in kind.__dict__ and "__slots__" in kind.__dict__:
            # In half of the time of the form that dataclasses have.
            return kind, tuple(getattr(thing, name) for name in kind.__slots__)
        return NotImplemented


class _Unpickler(pickle.Unpickler):
    def __init__(self, content: bytes, objects: Sequence[Any]) -> None:
        super().__init__(io.BytesIO(content))
        self._objects = objects

    def persistent_load(self, number: Any) -> Any:
        return self._objects[number]


def _dumped(thing: Any, objects: Sequence[Any]) -> bytes:
    content = io.BytesIO()
    _Pickler(content, objects).dump(thing)
    return content.getvalue()


def _loaded(content: bytes, objects: Sequence[Any]) -> Any:
    return _Unpickler(content, objects).load()
