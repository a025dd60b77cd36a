"""Compiled designs in the cache, which are found by their fingerprint.

An entry has the library and its layout: the places of signals, memories and messages. A start with
a warm cache takes one walk of the design, and writes neither a netlist nor C++.
"""

import gc
import io
import os
import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from amaranth.hdl import MemoryData, Signal

from .amaranth_internals import SignalDict
from .compiling import Builder, builder, content_key, source_digest
from .cpp.simulation import Postponed, SimulationSource, write_simulation
from .errors import SimulationError, in_one_line
from .native.interpreted import write_interpretation
from .netlist import NotPlain, PlainDesign
from .netlist.covered import Measured
from .netlist.fingerprint import Fingerprint, fingerprint
from .netlist.lowered import Lowered
from .netlist.lowering import lower

Compiled = tuple[Lowered, SimulationSource]
"""A lowered design and its C++, which has a library unless `written` returned it."""

_LAYOUT = "layout.pickle"

CODE_DIGEST = source_digest(
    "amaranth.hdl",
    "cppsim.amaranth_internals",
    "cppsim.compiling",
    "cppsim.cpp",
    "cppsim.designs",
    "cppsim.native",
    "cppsim.netlist",
)
"""The digest of all code between a prepared design and its entry, as it was loaded."""

_VARIABLE = "CPPSIM_INTERPRET"
_MOST = (1 << 62) - 1

_FIRST, _MORE = 2_000_000, 500
"""Instructions to interpret before compiling pays: of any design, and a character of its C++.

Executing them takes a tenth of the time of g++.
"""

_LOGIC = ("steps", "stored", "registers")
"""Attributes of a `SimulationSource` that few simulations need: half of the time of a layout."""


def built(design: Any, measured: Measured = Measured.NOTHING) -> Compiled:
    """Return ``design`` with its library if that is in the cache, else with its interpretation.

    The library of a design that is ``measured``, or has operations on more than 64 bits, is
    compiled at once; it counts what is ``measured``. Raises ``SimulationError`` if the design
    cannot be compiled.
    """
    with uncollected():
        mark = _mark(design)
        content = [mark.digest, CODE_DIGEST]
        if measured is not Measured.NOTHING:
            content.append(measured.value)
        patience = _patience()
        if patience == 0 or measured is not Measured.NOTHING:
            return _read(_folder(content, partial(_fill, design, mark, measured)), mark)
        known = builder().known(content)
        if known is not None and (known / _LAYOUT).is_file():  # as in `_folder`
            return _read(known, mark)
        fill = partial(_fill_interpreted, design, mark)
        return _read(_folder([*content, "interpreted"], fill), mark, content, patience)


def _folder(content: Sequence[str], fill: Callable[[Path], None]) -> Path:
    folder = builder().folder(content, fill)
    if not (folder / _LAYOUT).is_file():  # another process has removed the entry meanwhile
        folder = builder().folder(content, fill)
    return folder


def _patience() -> int | None:
    """Return the instructions to interpret before a design is compiled; None: those that pay.

    Raises ``SimulationError`` if the variable is not a whole number.
    """
    given = os.environ.get(_VARIABLE)
    if not given:
        return None
    if not given.isdecimal():
        raise SimulationError(f"{_VARIABLE}: {given!r} is not a number of instructions; expected 0")
    return min(int(given), _MOST)


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


def _fill_interpreted(design: Any, mark: Fingerprint, folder: Path) -> None:
    """As `_fill`, with programs and the C++ in place of the library, unless it needs one."""
    lowered, source = written(design)
    content = layout(lowered, source, mark.objects)
    try:
        content += pickle.dumps((write_interpretation(lowered, source), source.text), protocol=5)
    except NotPlain:
        builder(source.text).compile_text(source.text, folder)
    (folder / _LAYOUT).write_bytes(content)


def _compiled(key: Sequence[str], content: bytes, text: str) -> Path:
    """Return the library of the C++ ``text``, in the entry of ``key`` with this layout."""

    def fill(folder: Path) -> None:
        builder(text).compile_text(text, folder)
        (folder / _LAYOUT).write_bytes(content)

    return Builder.library(_folder(key, fill))


def layout(lowered: Lowered, source: SimulationSource, objects: Sequence[Any]) -> bytes:
    """Return what `_read` needs of a design; numbers stand for its ``objects``."""
    memories = lowered.design.memories
    logic = _dumped([getattr(source, name) for name in _LOGIC], memories)
    lowered = replace(lowered, design=PlainDesign(memories=memories))
    source = replace(source, text=content_key(source.text), steps=[], stored={}, registers=[])
    return _dumped((lowered, source, logic), objects)


def _read(
    folder: Path,
    mark: Fingerprint,
    compiled: Sequence[str] = (),
    patience: int | None = None,
) -> Compiled:
    """Return the design in ``folder``, which is interpreted if it has no library.

    After ``patience`` instructions it is compiled, to the entry of the key ``compiled``.
    """
    with in_one_line(SimulationError):  # another process may have removed the entry
        content = (folder / _LAYOUT).read_bytes()
        stream = io.BytesIO(content)
        lowered, source, logic = _Unpickler(stream, mark.objects).load()
        end = stream.tell()
        if end < len(content):
            program, text = pickle.load(stream)
            if patience is None:
                patience = _FIRST + _MORE * len(text)
            compile_ = partial(_compiled, compiled, content[:end], text)
            source.postponed = Postponed(program, patience, compile_)
        else:
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
    def __init__(self, content: io.BytesIO, objects: Sequence[Any]) -> None:
        super().__init__(content)
        self._objects = objects

    def persistent_load(self, number: Any) -> Any:
        return self._objects[number]


def _dumped(thing: Any, objects: Sequence[Any]) -> bytes:
    content = io.BytesIO()
    _Pickler(content, objects).dump(thing)
    return content.getvalue()


def _loaded(content: bytes, objects: Sequence[Any]) -> Any:
    return _Unpickler(io.BytesIO(content), objects).load()
